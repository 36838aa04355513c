"""What consumers read from followers (KIP-392), and what each broker would serve if all read from leaders.

A leader sends a consumer that names a rack to a replica there, by `preferred_read_replica` of a response without any
record (ReplicaManager.findPreferredReadReplica, Kafka 4.3). What the consumer then reads there it would have read
at the leader: the same records, in other responses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.report_page.question import Findings
from jobs.report_page.row_caps import first_rows
from jobs.terminal.screen import rounded_size
from jobs.terminal.wording import quantity
from schemas.tables.silver import FETCH_PARTITIONS
from schemas.tables.values import CONSUMER

MOST_PAIRS = 1000
"""Most pairs of brokers: those that serve most."""
SENT_AWAY = "sent away"
"""In place of the broker that served, for the rows of consumers that a leader sent away and of which no read there is
in the capture."""


def served_bytes(own_rows: OwnRows) -> DataFrame:
    """(broker, leader, bytes, clients): record bytes that a broker served to consumers which a leader had sent to it;
    of those that nobody had sent, `leader` is null. clients: how many consumers.

    In rows whose broker is SENT_AWAY, `leader` sent consumers to a replica from which none of their reads is captured.
    """
    f = FETCH_PARTITIONS
    topic = F.coalesce(f.topic, f.topic_id)
    whose = [F.col(f.client_id), F.col(f.client_address), topic.alias("read_topic"), F.col(f.partition)]
    keys = [f.client_id, f.client_address, "read_topic", f.partition]
    of_consumers = own_rows(f).where(F.col(f.reader) == CONSUMER)
    sent = of_consumers.where(F.col(f.preferred_read_replica) >= 0).groupBy(
        *whose, F.col(f.preferred_read_replica).cast("string").alias("replica")
    ).agg(F.max_by(f.broker, f.request_time).alias("leader"))  # fmt: skip
    served = of_consumers.where(F.col(f.returned_bytes).isNotNull()).groupBy(*whose, f.broker).agg(
        F.sum(f.returned_bytes).alias("bytes")
    )  # fmt: skip
    both = served.withColumnRenamed(str(f.broker), "replica").join(sent, [*map(str, keys), "replica"], "full")
    client = F.struct(f.client_id, f.client_address)
    by_pair = both.groupBy(
        F.when(F.col("bytes").isNull(), SENT_AWAY).otherwise(F.col("replica")).alias("broker"), "leader"
    ).agg(F.sum("bytes").alias("bytes"), F.count_distinct(client).alias("clients"))  # fmt: skip
    return first_rows(by_pair, MOST_PAIRS, F.desc("bytes"), "broker", "leader")


def follower_reads(findings: Findings) -> Iterator[str]:
    """What consumers read from followers, and the broker that would serve most more without; nothing if none did."""
    rows = findings.of(served_bytes)
    from_followers = [row for row in rows if row["leader"] is not None and row["broker"] != SENT_AWAY]
    if any(row["bytes"] for row in from_followers):
        captured, leaders_alone = served_by_broker(rows)
        broker = max(sorted(leaders_alone), key=lambda name: leaders_alone[name] - captured[name])
        total = sum(row["bytes"] for row in from_followers)
        yield (
            f"consumers read {rounded_size(total)} from followers; from leaders alone, broker {broker} serves "
            f"{rounded_size(leaders_alone[broker])} instead of {rounded_size(captured[broker])}"
        )
    if lost := sum(row["clients"] for row in rows if row["broker"] == SENT_AWAY):
        are = "is" if lost == 1 else "are"
        yield (
            f"{quantity(lost, 'consumer')} {are} sent to a follower of which the capture has no reads: capture that "
            "broker, too, or state its node id"
        )


def served_by_broker(rows: list[Row]) -> tuple[Counter[str], Counter[str]]:
    """(record bytes that each broker served to consumers, those that it would serve if all read from leaders)."""
    captured, leaders_alone = Counter[str](), Counter[str]()
    for row in rows:
        if row["broker"] != SENT_AWAY:
            captured[row["broker"]] += row["bytes"]
            leaders_alone[row["leader"] or row["broker"]] += row["bytes"]
    return captured, leaders_alone


def bytes_by_broker(findings: Findings) -> list[str]:
    """For each broker what it served, and what it would serve; nothing if no consumer reads from followers."""
    captured, leaders_alone = served_by_broker(findings.of(served_bytes))
    if captured == leaders_alone:
        return []
    return [
        f"broker {name}: {rounded_size(captured[name])} served, {rounded_size(leaders_alone[name])} from leaders alone"
        for name in sorted({*captured, *leaders_alone})
    ]
