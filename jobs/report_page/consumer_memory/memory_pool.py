"""What a bound on the memory of consumers would cost (KIP-81, a proposal): question 12."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.consumer_memory.answers import lanes, lanes_table
from jobs.report_page.consumer_memory.needed_memory import consumers_by_lane, hungry_consumers, pool_bytes
from jobs.report_page.fetch_max_bytes.catch_up import lanes_with_distinct_curves
from jobs.report_page.fetch_max_bytes.fairness import NO_CONSUMER, captured_row
from jobs.report_page.lane_labels import own_labels, own_lanes
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
from jobs.report_page.traffic import fetching_consumers
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import has_other_traffic, in_lane_order, with_other_traffic
from jobs.terminal.screen import size_text
from jobs.terminal.wording import (
    capitalized,
    client_name,
    duration,
    elapsed_times,
    lane_heading,
    lane_label,
    lane_phrase,
    percent,
    quantity,
)
from schemas.tables import algorithms
from schemas.tables.gold_memory import CONSUMER_MEMORY, CONSUMER_MEMORY_TIMELINE
from schemas.tables.silver import FETCH_PARTITIONS

PROPOSED = "buffer.memory of consumers (KIP-81, a proposal)"
MOST_ROWS = 20_000
WHY_STUCK = {
    "response_larger_than_pool": "a response is larger than the pool",
    "buffer_below_fetch_max_bytes": "the pool is smaller than fetch.max.bytes",
    "pinned_responses": "partitions that are not fetched again keep their responses in it",
}
"""The column `deadlock` in a sentence."""


def memory_over_time(own_rows: OwnRows) -> DataFrame:
    """What the consumer that held most in the capture would hold over time, in every lane with the captured traffic."""
    c, t = CONSUMER_MEMORY, CONSUMER_MEMORY_TIMELINE
    key = [str(c.client_id), str(c.client_address)]
    most = hungry_consumers(own_rows).limit(1).select(*key)
    lanes_whole = (F.col(t.scenario) != CAPTURED_LANE, F.col(t.scenario), F.col(t.slot_start))
    rows = own_rows(t).where(~with_other_traffic(t.scenario))
    return rows.join(F.broadcast(most), key).orderBy(*lanes_whole).limit(MOST_ROWS)


def slowed_consumers(own_rows: OwnRows) -> DataFrame:
    """A row for each lane: of the consumers that wait for memory the one with the least throughput, or the longest wait
    if several have the least.
    """
    c = CONSUMER_MEMORY
    ratio, who = F.col(c.throughput_ratio), (F.col(c.client_id), F.col(c.client_address))
    fields = F.struct(*who, F.col(c.wait_ms_max), F.col(c.depleted_share), ratio)
    first = F.struct(ratio.isNull().alias("unknown"), ratio, (-F.col(c.wait_ms_max)).alias("wait"), *who)
    waits = own_rows(c).where(F.col(c.waits) > 0)
    return waits.groupBy(c.scenario).agg(F.min_by(fields, first).alias("told")).select(c.scenario, "told.*")


def bounded_memory_answer(findings: Findings) -> str:
    """Question 12: the smallest pool in which nobody waits, and what the worst replayed pool costs."""
    rows = consumers_by_lane(findings)
    captured = captured_row(rows)
    if captured is None or not findings.of(hungry_consumers):
        raise Unanswered(NO_CONSUMER)
    text = f"{size_text(captured['smallest'])} of {PROPOSED} was enough for everyone{refused_pool_text(findings)}"
    pools = [row for row in rows if pool_bytes(row[CONSUMER_MEMORY.scenario]) is not None]
    if not pools:
        return f"{text}. --set=consumer.buffer.memory=16MiB,64MiB replays what a smaller pool costs."
    stuck = max(pools, key=lambda row: row["stuck"])
    if stuck["stuck"]:
        return (
            f"{text}. {capitalized(lane_phrase(stuck[CONSUMER_MEMORY.scenario]))} "
            f"{quantity(stuck['stuck'], 'connection gets stuck', 'connections get stuck')}: "
            f"{WHY_STUCK.get(stuck['why'], 'nothing frees memory')}."
        )
    c = CONSUMER_MEMORY
    waiting = [
        row
        for row in findings.of(slowed_consumers)
        if pool_bytes(row[c.scenario]) is not None and not has_other_traffic(row[c.scenario])
    ]
    slowed = own_lanes(findings, in_lane_order(waiting, findings.lanes[algorithms.CONSUMER_MEMORY]), "consumers")
    if not slowed:
        smallest = smallest_pool_text(pools)
        return f"{text}. Nobody would wait in any of the replayed pools, the smallest of which is {smallest}."
    return f"{text}. {capitalized(pool_cost_text(min(slowed, key=slowest_first)))}."


def slowest_first(row: Row) -> tuple[bool, float, float]:
    """A sort key for rows of `slowed_consumers`: the slowest come first, and unknown throughput comes last."""
    c = CONSUMER_MEMORY
    ratio = row[c.throughput_ratio]
    return ratio is None, ratio or 0, -row[c.wait_ms_max]


def pool_cost_text(row: Row) -> str:
    """What a lane's pool costs the consumer that it slows most."""
    c = CONSUMER_MEMORY
    text = (
        f"{lane_phrase(row[c.scenario])}, {client_name(row[c.client_id])} is slowed most: its pool is depleted "
        f"{percent(row[c.depleted_share])} of the time, and a response waits up to {duration(row[c.wait_ms_max])}"
    )
    ratio = row[c.throughput_ratio]
    return text if ratio is None else f"{text}. Throughput is {percent(ratio)} of the captured one"


def refused_pool_text(findings: Findings) -> str:
    """Says that the prototype would not start with the smallest pool in which nobody waits; empty if it would."""
    captured, largest = captured_row(consumers_by_lane(findings)), largest_fetch_limit(findings)
    if captured is None or captured["smallest"] > largest:
        return ""
    return f". The proposal's prototype accepts only a pool larger than fetch.max.bytes, here {size_text(largest)}"


def largest_fetch_limit(findings: Findings) -> int:
    """The largest fetch.max.bytes in consumers' captured requests."""
    return max((row[FETCH_PARTITIONS.max_bytes] or 0 for row in findings.of(fetching_consumers)), default=0)


def smallest_pool_text(rows: list[Row]) -> str:
    """Text on the smallest replayed pool."""
    return size_text(min(pool_bytes(row[CONSUMER_MEMORY.scenario]) or 0 for row in rows))


def memory_curves(findings: Findings) -> Plot:
    """A curve for each lane."""
    t, names = CONSUMER_MEMORY_TIMELINE, findings.lanes.get(algorithms.CONSUMER_MEMORY, ())
    times = {lane: [row for row in findings.of(memory_over_time) if row[t.scenario] == lane] for lane in names}
    curves = {lane: [(row[t.slot_start], row[t.used_bytes_max]) for row in rows] for lane, rows in times.items()}
    label = own_labels(findings, lanes_with_distinct_curves(curves), "consumers")
    slots = rows_to_plot([row for lane in label for row in times[lane]], "no consumer held anything")
    since, subtitle = elapsed_times([row[t.slot_start] for row in slots])
    rows = [
        {"lane": lane_label(label[row[t.scenario]]), "since": at, "bytes": row[t.used_bytes_max]}
        for at, row in zip(since, slots, strict=True)
    ]
    whose = client_name(findings.of(memory_over_time)[0][t.client_id])
    pools = f" under {PROPOSED}" if any(pool_bytes(lane) is not None for lane in label.values()) else ""
    return Plot(
        f"Bytes of responses that {whose}, the consumer that held most, holds over time{pools}",
        "line", rows_to_compare(rows, "it held something at one moment only", "since"),
        Axis("since", subtitle, "time"), Axis("bytes", "bytes held", "bytes"),
        Axis("lane", lane_heading([*label.values()]), "name"),
    )  # fmt: skip


BOUNDED = Question(
    number=12,
    text="Would a bounded buffer (buffer.memory of consumers) cost throughput?",
    about="KIP-81",
    algorithms=(algorithms.CONSUMER_MEMORY,),
    queries=(lanes, hungry_consumers, slowed_consumers, memory_over_time, fetching_consumers),
    sentence=bounded_memory_answer,
    plots=(memory_curves,),
    table=lanes_table_maker(algorithms.CONSUMER_MEMORY, lanes, lanes_table),
    trust=("drained_partitions", "closed_loop_held"),
    is_proposal=True,
)
