"""How many partitions a cluster may have (KIP-578, a proposal): questions 3 and 15."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.partition_limits.answers import (
    SPAN_FOR_A_DATE_MS,
    lanes,
    lanes_table,
    safe_limits_text,
    smallest_safe_limits,
)
from jobs.report_page.lane_labels import own_name
from jobs.report_page.question import (
    Axis,
    Findings,
    Plot,
    Question,
    Unanswered,
    lanes_table_maker,
    rows_to_compare,
    rows_to_plot,
)
from jobs.report_page.row_caps import first_rows_of_each
from jobs.report_page.trust import fidelity_by_reason
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.screen import Grid
from jobs.terminal.wording import (
    capitalized,
    changed_settings,
    client_name,
    duration,
    elapsed_times,
    lane_heading,
    lane_label,
    lane_phrase,
    owner_phrase,
    quantity,
)
from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import (
    PARTITION_LIMIT_CURVE,
    PARTITION_LIMIT_HEADROOM,
    PARTITION_LIMIT_REFUSALS,
    PARTITION_LIMITS,
    PARTITIONS_PER_BROKER,
)
from schemas.tables.limit_reasons import CHANGES
from schemas.tables.values import AUTO_CREATE, CREATE_PARTITIONS, CREATE_TOPIC, DELETE_TOPIC
from udfs.replay.partition_limits.fidelity import PLACEMENTS
from udfs.replay.partition_limits.rows import LIMIT_NAMES
from udfs.replay.partition_limits.state import MAX_BROKER_PARTITIONS, MAX_PARTITIONS

MAX_BROKERS, MAX_CLIENTS, MAX_IN_A_LANE, MAX_STEPS = 12, 8, 20, 256
BROKER_LIMIT = LIMIT_NAMES[MAX_BROKER_PARTITIONS]
PROPOSED = (BROKER_LIMIT, LIMIT_NAMES[MAX_PARTITIONS])
OF_THE_PROPOSAL = "(with the limits of KIP-578, a proposal, which skips full brokers)"
TRUST = (CREATE_TOPIC, AUTO_CREATE, CREATE_PARTITIONS, DELETE_TOPIC, PLACEMENTS)
NO_CLUSTER = (
    "Replicas are counted from the first change to topics on, and the capture shows none, or no Metadata response "
    "that names brokers. Capture the controller's connections while teams create topics, or describe the cluster in "
    "a file and run `size`."
)


def brokers_over_time(own_rows: OwnRows) -> DataFrame:
    """Replicas in the captured lane at the end of each of MAX_STEPS spans, on the brokers that have most at the end."""
    p = PARTITIONS_PER_BROKER
    rows = own_rows(p).where(F.col(p.scenario) == CAPTURED_LANE)
    last = rows.groupBy(p.broker).agg(F.max_by(p.partitions, p.at).alias("last")).orderBy(F.desc("last"), p.broker)
    us = F.unix_micros(p.at)
    ends = rows.agg(F.min(us).alias("from"), F.max(us).alias("to"))
    span = F.floor((us - F.col("from")) * MAX_STEPS / (F.col("to") - F.col("from") + 1)).alias("span")
    most = rows.join(F.broadcast(last.limit(MAX_BROKERS)), str(p.broker)).crossJoin(F.broadcast(ends))
    at_its_end = (F.max(p.at).alias(p.at), F.max_by(p.partitions, p.at).alias(p.partitions))
    steps = most.groupBy(p.broker, "last", span).agg(*at_its_end)
    return steps.orderBy(p.at, p.broker)


def captured_cluster(own_rows: OwnRows) -> DataFrame:
    """One row on the captured lane: brokers, replicas at the end, the brokers with most of them, and the time."""
    p = PARTITIONS_PER_BROKER
    rows = own_rows(p).where(F.col(p.scenario) == CAPTURED_LANE)
    last = rows.groupBy(p.broker).agg(
        F.max_by(p.partitions, p.at).alias("last"), F.min(p.at).alias("from"), F.max(p.at).alias("to")
    )
    span = (F.min("from").alias("from"), F.max("to").alias("to"))
    alike = F.sum(F.when(F.col("last") == F.col("most"), 1).otherwise(0)).cast("int").alias("alike")
    with_most = last.crossJoin(F.broadcast(last.agg(F.max("last").alias("most"))))
    return with_most.agg(F.count("*").alias("brokers"), F.sum("last").alias("replicas"), alike, *span)


def nearest_headroom(own_rows: OwnRows) -> DataFrame:
    """The broker or cluster that is nearest to a limit, for each lane and limit."""
    h = PARTITION_LIMIT_HEADROOM
    nearest = F.min(F.struct(h.headroom, h.limit_value, h.partitions, h.growth_per_day, h.breach_at, h.broker))
    by_limit = own_rows(h).groupBy(h.scenario, h.refused_by).agg(nearest.alias("nearest"))
    return by_limit.orderBy(h.scenario, h.refused_by)


def refused_changes(own_rows: OwnRows) -> DataFrame:
    """Refused changes by lane, client and limit: the largest counts of each lane, those of proposed limits first."""
    r = PARTITION_LIMIT_REFUSALS
    sums = own_rows(r).groupBy(r.scenario, r.client_id, r.refused_by).agg(
        F.count("*").alias("refused"), F.min(r.topic).alias("topic")
    )  # fmt: skip
    by_proposal = F.col(r.refused_by).isin(*PROPOSED).desc()
    return first_rows_of_each(
        sums, str(r.scenario), MAX_IN_A_LANE, by_proposal, F.desc("refused"), r.client_id, r.refused_by
    )


def span_ms(row: Row) -> float:
    """The time from the first to the last event that the replay shows, ms."""
    return float((row["to"] - row["from"]).total_seconds() * 1000)


def partitions_answer(findings: Findings) -> str:
    """Question 3: replicas at the end, and the nearest limit."""
    rows, p = findings.of(brokers_over_time), PARTITIONS_PER_BROKER
    if not rows or are_brokers_unknown(findings):
        raise Unanswered(NO_CLUSTER)
    whole = findings.of(captured_cluster)[0]
    last = [row["last"] for row in rows]
    most = next(row for row in rows if row["last"] == max(last))
    sentence = (
        f"At the end, broker {most[p.broker]} has most replicas, {max(last):,} of {whole['replicas']:,} on "
        f"{quantity(whole['brokers'], 'broker')}{equal_brokers_text(whole['alike'])}. Internal topics are not counted"
        f"{drawn_placement_text(findings)}"
    )
    return f"{sentence}{nearest_limit_text(findings, span_ms(whole))}."


def equal_brokers_text(alike: int) -> str:
    """How many other brokers have as many replicas as the broker that has most, as text.

    alike: how many brokers have that number of replicas, that broker included.
    """
    return f"; {quantity(alike - 1, 'other has', 'others have')} as many" if alike > 1 else ""


def are_brokers_unknown(findings: Findings) -> bool:
    """Whether no Metadata response lists brokers. There may then be more than those that requests name."""
    limits = [row[PARTITION_LIMIT_CURVE.refused_by] for row in findings.of(smallest_safe_limits)]
    return bool(limits) and BROKER_LIMIT not in limits


def drawn_placement_text(findings: Findings) -> str:
    """Says for how many partitions the placement is drawn, because the capture does not show it."""
    t = FIDELITY
    changes = sum(
        row["times"]
        for row in findings.of(fidelity_by_reason)
        if (row[t.algorithm], row["reason"]) == (algorithms.PARTITION_LIMITS, CHANGES.not_in_metadata)
    )
    placed = quantity(changes, "change puts its replicas", "changes put their replicas")
    return f". Where {placed} is drawn, because no Metadata response shows it" if changes else ""


def nearest_limit_text(findings: Findings, span: float) -> str:
    """How far the tightest replayed limit is, and when it will be reached if the capture is long enough to tell."""
    h = PARTITION_LIMIT_HEADROOM
    rows = findings.of(nearest_headroom)
    if not rows:
        return ". No limit was replayed: --set=max.broker.partitions=4000 does that"
    # Of lanes with the same headroom, the one with the fewest other settings.
    row = min(rows, key=lambda row: (row["nearest"][h.headroom], len(other_settings(findings, row))))
    near = row["nearest"]
    limit, left = f"the proposal's {row[h.refused_by]}={near[h.limit_value]:,}", near[h.headroom]
    limit += "".join(f" and {setting}" for setting in other_settings(findings, row))
    sentence = f". Under {limit}{refused_changes_text(findings, row[h.scenario])} there would be room for {left:,} more"
    if left < 0:
        sentence = f". They would be {-left:,} above {limit}"
    if near[h.growth_per_day] <= 0:
        return f"{sentence}, and nothing grew"
    if span < SPAN_FOR_A_DATE_MS:
        over = duration(span) if span >= 1000 else "less than a second"
        return f"{sentence}. Topics changed over {over}, too short for a date: capture some days, or run `size`"
    date = "not within 100 years" if near[h.breach_at] is None else f"on {near[h.breach_at]:%Y-%m-%d}"
    return f"{sentence}, reached {date} at {near[h.growth_per_day]:,.0f} replicas a day"


def other_settings(findings: Findings, row: Row) -> list[str]:
    """What a lane sets besides its limit, as KEY=VALUE. row: of the query `nearest_headroom`."""
    h = PARTITION_LIMIT_HEADROOM
    return [
        f"{key}={value}"
        for key, value in changed_settings(own_name(findings, row[h.scenario])).items()
        if key != row[h.refused_by]
    ]


def refused_changes_text(findings: Findings, lane: str) -> str:
    """How many changes a lane refuses that are done in the captured lane."""
    t = PARTITION_LIMITS
    rows = [row for row in findings.of(lanes) if row[t.scenario] == lane]
    refused = sum(map(refused_by_proposals, rows))
    return f", with {quantity(refused, 'change')} refused by then," if refused else ""


def replicas_over_time(findings: Findings) -> Plot:
    """Question 3: a curve for each broker."""
    p = PARTITIONS_PER_BROKER
    times = rows_to_plot(findings.of(brokers_over_time), "the capture shows no replicas")
    since, unit = elapsed_times([row[p.at] for row in times])
    rows = [
        {"since": at, "replicas": row[p.partitions], "broker": f"broker {row[p.broker]}"}
        for at, row in zip(since, times, strict=True)
    ]
    return Plot(
        "Replicas on each broker as captured, without those of internal topics",
        "step", rows_to_compare(rows, "all changes happen at once", "since"),
        Axis("since", unit, "time"), Axis("replicas", "replicas", "count"),
        Axis("broker", "broker", "name"),
    )  # fmt: skip


def headroom_table(findings: Findings) -> Grid:
    """Question 3: a row for each lane and limit."""
    h = PARTITION_LIMIT_HEADROOM
    cells = [
        [
            lane_label(row[h.scenario]), row[h.refused_by], f"{row['nearest'][h.limit_value]:,}",
            "cluster" if row["nearest"][h.broker] is None else f"broker {row['nearest'][h.broker]}",
            f"{row['nearest'][h.partitions]:,}", f"{row['nearest'][h.headroom]:,}",
        ]
        for row in findings.of(nearest_headroom)
    ]  # fmt: skip
    head = (
        lane_heading(findings.lanes[algorithms.PARTITION_LIMITS]),
        "limit (a proposal)",
        "value",
        "nearest to it",
        "replicas",
        "headroom",
    )
    return Grid(
        head,
        cells,
        head[:2] + head[3:4],
        ("These are numbers at the end of the run. Kafka itself limits only what one request may create.",),
    )


def refused_teams_answer(findings: Findings) -> str:
    """Question 15: how many changes the worst lane refuses, of which client, and the limits that refuse nothing."""
    r, t = PARTITION_LIMIT_REFUSALS, PARTITION_LIMITS
    by_lane = {row[t.scenario]: row for row in findings.of(lanes)}
    if not by_lane:
        raise Unanswered(
            "The capture shows no change to topics: capture the controller's connections while teams create topics."
        )
    # Kafka itself refuses changes, too.
    by_limit = (row for row in findings.of(refused_changes) if row[r.refused_by] in PROPOSED)
    rows = [row for row in by_limit if row[r.scenario] != CAPTURED_LANE]
    scenarios = {row[r.scenario] for row in rows}
    refusing = [lane for lane in findings.lanes[algorithms.PARTITION_LIMITS] if lane in scenarios]
    if not refusing:
        most = quantity(max(row[t.tried] for row in by_lane.values()), "captured request")
        return f"Nobody's, of {most} to change topics in the replayed lanes{harmless_limits_text(findings)}."
    worst = max(refusing, key=lambda lane: refused_by_proposals(by_lane[lane]))  # of several the first in the scenario
    client, refused_there = most_refused_client(row for row in rows if row[r.scenario] == worst)
    refused, tried = refused_by_proposals(by_lane[worst]), quantity(by_lane[worst][t.tried], "captured request")
    return (
        f"{capitalized(lane_phrase(own_name(findings, worst)))}, {refused:,} of {tried} to change topics "
        f"{'is' if refused == 1 else 'are'} refused, {owner_phrase(client, refused_there, refused)}"
        f"{repeated_requests_text(by_lane, worst)}{harmless_limits_text(findings)}."
    )


def harmless_limits_text(findings: Findings) -> str:
    """The smallest limits that refuse nothing."""
    limits = safe_limits_text(findings.of(smallest_safe_limits))
    sentence = f". From {limits} on, nothing is refused {OF_THE_PROPOSAL}" if limits else ""
    if are_brokers_unknown(findings):
        sentence += f". What {BROKER_LIMIT} refuses is not known, because no Metadata response names brokers"
    return sentence


def repeated_requests_text(by_lane: Mapping[str, Row], lane: str) -> str:
    """How many requests of a lane ask again for a refused topic: clients do so with Metadata requests."""
    t = PARTITION_LIMITS
    again = by_lane[lane][t.tried] - by_lane[CAPTURED_LANE][t.tried]
    return f". {again:,} of the {by_lane[lane][t.tried]:,} ask again for a topic that was refused" if again > 0 else ""


def most_refused_client(rows: Iterable[Row]) -> tuple[str | None, int]:
    """The client with most refused changes, over all limits, and their number. rows: of `refused_changes`."""
    by_client: Counter[str | None] = Counter()
    for row in rows:
        by_client[row[PARTITION_LIMIT_REFUSALS.client_id]] += row["refused"]
    return by_client.most_common(1)[0]


def refused_by_proposals(lane: Row) -> int:
    """The number of changes that the proposed limits refuse in a lane. lane: a row of the query `lanes`."""
    t = PARTITION_LIMITS
    return lane[t.refused_by_broker_limit] + lane[t.refused_by_cluster_limit]


def refused_by_lane(findings: Findings) -> Plot:
    """Question 15: a bar for each lane, by client."""
    r = PARTITION_LIMIT_REFUSALS
    clients = list(dict.fromkeys(row[r.client_id] for row in findings.of(refused_changes)))[:MAX_CLIENTS]
    counts: Counter[tuple[str, str]] = Counter()
    for row in findings.of(refused_changes):
        client = client_name(row[r.client_id]) if row[r.client_id] in clients else "others"
        counts[row[r.scenario], client] += row["refused"]
    rows = [
        {"lane": lane_label(lane), "refused": count, "client": client}
        for lane in findings.lanes.get(algorithms.PARTITION_LIMITS, ())
        for (refusing, client), count in counts.items()
        if refusing == lane
    ]
    heading = lane_heading(findings.lanes[algorithms.PARTITION_LIMITS])
    return Plot(
        "Changes to topics that are refused, by lane and client",
        "bar", rows_to_plot(rows, "no lane refuses a change"),
        Axis("refused", "refused", "count"), Axis("lane", heading, "name"),
        Axis("client", "client", "name"),
    )  # fmt: skip


HOW_MANY = Question(
    number=3,
    text="How many partitions can I have per broker and cluster?",
    about="KIP-578",
    algorithms=(algorithms.PARTITION_LIMITS,),
    queries=(brokers_over_time, captured_cluster, nearest_headroom, lanes),
    sentence=partitions_answer,
    plots=(replicas_over_time,),
    table=headroom_table,
    trust=TRUST,
    is_proposal=True,
)
REFUSED_TEAMS = Question(
    number=15,
    text="If I cap partitions at N, which teams' creates fail?",
    about="KIP-578",
    algorithms=(algorithms.PARTITION_LIMITS,),
    queries=(lanes, smallest_safe_limits, refused_changes),
    sentence=refused_teams_answer,
    plots=(refused_by_lane,),
    table=lanes_table_maker(algorithms.PARTITION_LIMITS, lanes, lanes_table),
    trust=TRUST,
    is_proposal=True,
)
