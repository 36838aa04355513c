"""What consumers read across racks, and what each broker serves: as captured, and with and without fetch-from-follower.

A leader sends a consumer that names a rack to a replica in that rack (KIP-392). The consumer then reads there what it
would have read from the leader: the same records, in other responses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.report_page.question import Findings
from jobs.report_page.row_caps import first_rows
from jobs.terminal.screen import rounded_size
from jobs.terminal.wording import client_name, quantity
from schemas.tables.gold_racks import RACK_READS
from schemas.tables.values import BROKER_RACK, CLIENT_RACK, RACK_OF_NO_BROKER, REPLICAS

T = RACK_READS
CAPTURED, LEADERS, PREFERRED = "captured", "leaders", "preferred"
"""Who serves: the broker that did in the capture, only leaders, or the replicas that RackAwareReplicaSelector prefers.
"""
RACKS: Mapping[str, str] = {CAPTURED: T.broker_rack, LEADERS: T.leader_rack, PREFERRED: T.preferred_rack}
MOST_PREFERRED = "most_preferred"
"""As PREFERRED, but if several replicas are preferred, each of them counts as the one that serves."""
SELECTOR = "replica.selector.class=RackAwareReplicaSelector"
MOST_BROKERS, MOST_CROSSING = 1000, 10
STATE_RACK = "--captured=address.10.0.1.0/24.client.rack=RACK or client.NAME.client.rack=RACK"
"""The flag that states in which racks consumers are."""
WHAT_TO_DO: Mapping[str, str] = {
    CLIENT_RACK: f"state where they are, {STATE_RACK}",
    RACK_OF_NO_BROKER: f"no broker is in their rack; state it as brokers spell theirs, {STATE_RACK}",
    BROKER_RACK: "state the brokers' racks, --captured=broker.ID.broker.rack=RACK",
    REPLICAS: "no Metadata response shows the partitions' replicas; capture while consumers start, or for 5 min "
    "(metadata.max.age.ms)",
}
"""What to do about unknown reads, by the column `unknown_for`."""


def racked_reads(own_rows: OwnRows) -> DataFrame:
    """For each value of unknown_for: the bytes, the bytes from followers, the bytes across racks for each way to serve,
    the number of consumers, whether any broker's rack is known, and the number of consumers that are sent to a replica
    whose reads by them are not captured.
    """
    client, is_lost = F.struct(T.client_id, T.client_address), F.col(T.broker).isNull()
    crossing = [_sum(F.col(rack) != F.col(T.client_rack)).alias(who) for who, rack in RACKS.items()]
    return own_rows(T).groupBy(T.unknown_for).agg(
        F.sum(T.bytes).alias("bytes"),
        _sum(F.col(T.broker) != F.col(T.leader)).alias("from_followers"),
        *crossing,
        F.count_distinct(F.when(~is_lost, client)).alias("consumers"),
        F.max(F.col(T.leader_rack).isNotNull()).alias("has_racks"),
        F.count_distinct(F.when(is_lost, client)).alias("lost"),
    )  # fmt: skip


def broker_reads(own_rows: OwnRows) -> DataFrame:
    """Bytes that each broker serves: captured, leaders, preferred and most_preferred. Reads whose preferred replica is
    not known count for the leader.
    """
    preferred = F.split(F.coalesce(T.preferred, T.leader), ",")
    is_one = F.size(preferred) == 1
    served = [
        F.array(F.struct(F.lit(CAPTURED).alias("who"), F.col(T.broker).alias("by"))),
        F.array(F.struct(F.lit(LEADERS).alias("who"), F.col(T.leader).alias("by"))),
        F.transform(preferred, lambda by: F.struct(F.lit(MOST_PREFERRED).alias("who"), by.alias("by"))),
        F.when(is_one, F.array(F.struct(F.lit(PREFERRED).alias("who"), preferred[0].alias("by")))).otherwise(F.array()),
    ]
    each = own_rows(T).where(F.col(T.broker).isNotNull()).select(F.explode(F.concat(*served)).alias("of"), T.bytes)
    whos = [*RACKS, MOST_PREFERRED]
    sums = [_sum(F.col("of.who") == who).alias(who) for who in whos]
    return first_rows(each.groupBy(F.col("of.by").alias("broker")).agg(*sums), MOST_BROKERS, F.desc(CAPTURED), "broker")


def crossing_reads(own_rows: OwnRows) -> DataFrame:
    """The clients and topics with most bytes across racks, for each way to serve."""
    crossing = [_sum(F.col(rack) != F.col(T.client_rack)).alias(who) for who, rack in RACKS.items()]
    known = own_rows(T).where(F.col(T.unknown_for).isNull())
    summed = known.groupBy(T.client_id, T.topic).agg(*crossing).where((F.col(CAPTURED) > 0) | (F.col(LEADERS) > 0))
    return first_rows(summed, MOST_CROSSING, F.desc(F.greatest(CAPTURED, LEADERS)), T.client_id, T.topic)


def _sum(which: Column) -> Column:
    """The bytes of the rows for which `which` is true."""
    return F.coalesce(F.sum(F.when(which, F.col(T.bytes))), F.lit(0))


QUERIES = (racked_reads, broker_reads, crossing_reads)


def rack_reads(findings: Findings) -> Iterator[str]:
    """Sentences on what is read across racks, which broker would serve how much more, and what is not known; none for a
    cluster without racks.
    """
    rows = {row[T.unknown_for]: row for row in findings.of(racked_reads)}
    from_followers = sum(row["from_followers"] for row in rows.values())
    if (known := rows.get(None)) is not None and known["bytes"]:
        yield crossing_text(known)
    brokers = findings.of(broker_reads)
    if known is not None and known["bytes"] and any(row[CAPTURED] != row[MOST_PREFERRED] for row in brokers):
        yield f"with it, {most_more_text(brokers, MOST_PREFERRED)}"
    if from_followers:
        told = most_more_text(brokers, LEADERS)
        yield f"consumers read {rounded_size(from_followers)} from followers; from leaders alone, {told}"
    if any(row["has_racks"] for row in rows.values()):
        yield from (unknown_text(rows[why], what) for why, what in WHAT_TO_DO.items() if why in rows)
    if lost := sum(row["lost"] for row in rows.values()):
        are = "is" if lost == 1 else "are"
        yield (
            f"{quantity(lost, 'consumer')} {are} sent to a follower of which the capture has no reads: capture that "
            "broker, too, or state its node id"
        )


def crossing_text(known: Row) -> str:
    """What consumers read across racks, of the bytes for which that is known."""
    alone = f", {_none_or_size(known[LEADERS])} from leaders alone" if known["from_followers"] else ""
    return (
        f"consumers read {_none_or_size(known[CAPTURED])} across racks, of {rounded_size(known['bytes'])}{alone}; "
        f"{_none_or_size(known[PREFERRED])} with {SELECTOR}"
    )


def most_more_text(brokers: list[Row], who: str) -> str:
    """The broker whose bytes grow most compared with the capture, if these brokers serve. who: LEADERS or
    MOST_PREFERRED.
    """
    most = max(brokers, key=lambda row: (row[who] - row[CAPTURED], str(row["broker"])))
    return f"broker {most['broker']} serves {served_text(most, who)} instead of {rounded_size(most[CAPTURED])}"


def served_text(row: Row, who: str) -> str:
    """What a broker serves; a range if Kafka picks one of several replicas."""
    least, most = row[PREFERRED if who == MOST_PREFERRED else who], row[who]
    return rounded_size(least) if least == most else f"{rounded_size(least)} to {rounded_size(most)}"


def unknown_text(row: Row, what: str) -> str:
    """How many bytes may cross racks without our knowing it, and what to do."""
    read = f"{rounded_size(row['bytes'])} that {quantity(row['consumers'], 'consumer')} read"
    return f"of {read} it is not known what crosses racks: {what}"


def _none_or_size(count: int) -> str:
    return rounded_size(count) if count else "none"


def rack_lines(findings: Findings) -> Iterator[str]:
    """What each broker serves, and what the clients and topics with most such bytes read across racks, for each way to
    serve.
    """
    for row in findings.of(broker_reads):
        if any(row[CAPTURED] != row[who] for who in (LEADERS, MOST_PREFERRED)):
            yield (
                f"broker {row['broker']}: {rounded_size(row[CAPTURED])} served, {rounded_size(row[LEADERS])} from "
                f"leaders alone, {served_text(row, MOST_PREFERRED)} with {SELECTOR}"
            )
    for row in findings.of(crossing_reads):
        yield (
            f"{client_name(row[T.client_id])}, topic {row[T.topic]}: {_none_or_size(row[CAPTURED])} read across racks, "
            f"{_none_or_size(row[LEADERS])} from leaders alone, {_none_or_size(row[PREFERRED])} with {SELECTOR}"
        )
