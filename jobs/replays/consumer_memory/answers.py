"""The summary's lines on memory: what consumers, brokers and producers would hold in each lane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.consumer_memory.queue_answers import TITLE as QUEUES_TITLE
from jobs.replays.consumer_memory.queue_answers import largest_queues, queues_table
from jobs.replays.consumer_memory.ranges import DEPLETED, LONGEST, MOST, SMALLEST, WAITS, pool_ranges
from jobs.replays.ranged import range_column, value_with_range
from jobs.terminal.lane_rows import BETWEEN, NO_ROW, has_other_traffic, in_lane_order, merge_equal_lanes
from jobs.terminal.screen import Grid, grid_lines, size_text
from schemas.tables.gold_memory import BROKER_MEMORY, CONSUMER_MEMORY, PRODUCER_MEMORY
from schemas.tables.table import Table
from schemas.tables.values import BY_CLOSED_LOOP

NOT_ABOVE = "not above fetch.max.bytes"
TITLE = "Memory: buffer.memory of consumers (KIP-81, a proposal), queued.max.request.bytes, buffer.memory of producers"
HEAD = (
    "of", "lane", "p99", "p99 in loop", "most", "most in loop", "bound", "no wait from", "waits", "longest wait",
    "depleted", "throughput", "starved", "stuck", "remarks",
)  # fmt: skip
NOTES = (
    "Waits, starved and stuck are added up over all clients or brokers. Every other figure is of the worst of them.",
    "In brackets is the range, p10 to p90, at other paces of brokers and clients.",
    "In closed loop a busy producer has sending.threads threads. If the application has more, more threads wait, and "
    "for longer.",
    NO_ROW,
)
COLUMNS = {
    "p99": "for 99 % of the time no more bytes than this are held, by captured times",
    "p99 in loop": "the same in closed loop: under other fetch limits, and of a busy producer that waits. Closed loop "
    "has a time of its own, so compare this column only with itself",
    "most": "the most bytes held, by captured times",
    "most in loop": "the most bytes held in closed loop",
    "bound": "KIP-74's bound on the memory of a consumer",
    "no wait from": "the smallest pool with which nobody waits; - if somebody waits in this lane",
    "waits": "responses, requests or batches that wait for memory",
    "depleted": "the share of the time during which the pool has refused memory to somebody",
    "throughput": "relative to the captured lane",
    "starved": "connections that are passed over again and again while they wait",
    "stuck": "connections for which nothing will free memory, or that are closed because a message is larger than the "
    "pool; for producers, batches that get no memory",
    "remarks": f"`{NOT_ABOVE}`: the proposal's prototype would not start with such a pool. `counts`: the bytes that "
    "memory.variant counts as used, if they are more than those held",
}
CONSUMERS_ALONE = "Lanes with `traffic.` are about consumers alone: brokers and producers are not replayed in them."
"""The note if there are such lanes."""
TOO_NARROW = (
    "For waits of brokers, such a range contained only 56 to 74 % of what live brokers had in the lab, and should "
    "contain 80 %."
)
"""The note if a broker's waits are shown with a range: VALIDATION.md (Ranges of brokers' pools) has the figures."""
WHY = {
    "response_larger_than_pool": "larger than the pool",
    "buffer_below_fetch_max_bytes": "pool below fetch.max.bytes",
    "pinned_responses": "pinned by partitions not fetched again",
}
"""The column `deadlock` in words."""


def worst_of_side(rows: DataFrame, side: str, smallest: Column, stuck: Column, *, is_pool: bool) -> DataFrame:
    """A row for each lane of one side's table. is_pool: it has the columns of a pool, which producers do not have."""
    t: Table = CONSUMER_MEMORY
    is_consumer, none = str(t.memory_bound_bytes) in rows.columns, F.lit(None)
    depleted, ratio, starved = (
        F.col(name) if is_pool else none.cast("double")
        for name in (t.depleted_share, t.throughput_ratio, t.starved_connections)
    )
    bound = F.col(t.memory_bound_bytes) if is_consumer else none.cast("bigint")
    reckoned = F.col(t.reckoned_bytes_max) if is_consumer else none.cast("bigint")
    why = F.col(t.deadlock) if is_consumer else none.cast("string")
    told_by = [name for name in (t.responses_of, PRODUCER_MEMORY.times_of) if str(name) in rows.columns]
    in_loop = F.col(told_by[0]) == BY_CLOSED_LOOP if told_by else F.lit(False)
    is_taken = ~F.col(t.config_refused) if is_consumer else F.lit(True)
    return rows.groupBy(t.scenario).agg(
        F.lit(side).alias("of"),
        *(
            F.max(F.when(is_so, F.col(used))).alias(f"{name}{by}")
            for name, used in (("p99", t.used_bytes_p99), ("most", t.used_bytes_max))
            for by, is_so in (("", ~in_loop), ("_in_loop", in_loop))
        ),
        F.max(smallest).alias("smallest"), F.sum(t.waits).alias("waits"), F.max(t.wait_ms_max).alias("longest"),
        F.max(depleted).alias("depleted"), F.min(ratio).alias("ratio"), F.sum(stuck).alias("stuck"),
        F.max(bound).alias("bound"), F.sum(starved).alias("starved"), F.max(why).alias("why"),
        F.max(reckoned).alias("reckoned"), F.min(is_taken).alias("taken"), F.sum(t.left_out).alias("left_out"),
    )  # fmt: skip


def lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each side and lane."""
    c, b, p = CONSUMER_MEMORY, BROKER_MEMORY, PRODUCER_MEMORY
    stuck, pool = F.col(c.stuck_connections) + F.col(c.larger_than_pool), F.col(c.smallest_pool_bytes)
    refused = F.col(p.exhausted) + F.col(p.larger_than_buffer)
    of_sides = {
        c: worst_of_side(own_rows(c), "consumers", pool, stuck, is_pool=True),
        b: worst_of_side(own_rows(b), "brokers", pool, F.col(b.larger_than_limit), is_pool=True),
        p: worst_of_side(own_rows(p), "producers", F.col(p.used_bytes_max), refused, is_pool=False),
    }
    ranged = (
        rows.join(F.broadcast(pool_ranges(own_rows, table, table.scenario)), table.scenario, "left")
        for table, rows in of_sides.items()
    )
    return reduce(DataFrame.unionByName, ranged)


QUERIES = {"lanes": lanes, "queues": largest_queues}
SIDES = ("consumers", "brokers", "producers")


def lanes_table(rows: list[Row], lane_names: Sequence[str]) -> Grid:
    """A row for each side and lane, in the order of the lanes, without lanes that change nothing for their side."""
    ordered = sorted(in_lane_order(rows, lane_names), key=lambda row: SIDES.index(row["of"]))
    notes = [*NOTES]
    if any(row["of"] == "brokers" and is_ranged(row[range_column(WAITS)]) for row in rows):
        notes.append(TOO_NARROW)
    if any(map(has_other_traffic, lane_names)):
        notes.append(CONSUMERS_ALONE)
    cells = merge_equal_lanes([answer_row(row) for row in ordered])
    return Grid(HEAD, cells, ("of", "lane", "remarks"), tuple(notes), COLUMNS)


def is_ranged(within: Row | None) -> bool:
    """Whether a range has two ends that differ."""
    return within is not None and within["p10"] < within["p90"]


def answer_lines(answers: Mapping[str, list[Row]], lane_names: Sequence[str]) -> Iterable[str]:
    """The tables as lines."""
    if not answers["lanes"]:
        return ["  no request was captured that needs memory"]
    lines = grid_lines(lanes_table(answers["lanes"], lane_names))
    if not answers["queues"]:
        return lines
    return [*lines, "", QUEUES_TITLE, *grid_lines(queues_table(answers["queues"], lane_names))]


def answer_row(row: Row) -> list[str]:
    """One lane's cells."""
    lane = row[CONSUMER_MEMORY.scenario].replace(f"{row['of'][:-1]}.", "").replace(",", BETWEEN)
    share = row["depleted"]
    depleted = "-" if share is None else value_with_range(share, row[range_column(DEPLETED)], percent_text)
    ratio = "-" if row["ratio"] is None else f"{100 * row['ratio']:.0f} %"
    of_smallest = row[range_column(MOST if row["of"] == "producers" else SMALLEST)]
    enough = value_with_range(row["smallest"], of_smallest, lambda size: size_text(int(size)))
    smallest = "-" if row["waits"] or row["stuck"] else enough
    waits = value_with_range(row["waits"], row[range_column(WAITS)], "{:,.0f}".format)
    longest = value_with_range(row["longest"], row[range_column(LONGEST)], "{:,.0f} ms".format)
    return [
        row["of"], lane, *(size_text(row[name]) for name in ("p99", "p99_in_loop", "most", "most_in_loop", "bound")),
        smallest, waits, longest, depleted, ratio,
        "-" if row["starved"] is None else f"{row['starved']:,.0f}", f"{row['stuck']:,}",
        remarks_on_lane(row),
    ]  # fmt: skip


def percent_text(share: float) -> str:
    """A share of the time, as in the table's column."""
    return f"{100 * share:.1f} %"


def remarks_on_lane(row: Row) -> str:
    """Remarks on a lane: why connections are stuck, how much a variant of the proposal over-estimates, whether the
    proposal's prototype would not start, and how many messages there was no room for.
    """
    counts = row["reckoned"] is not None and row["reckoned"] > max(row["most"] or 0, row["most_in_loop"] or 0)
    notes = [WHY[row["why"]]] if row["why"] else []
    notes += [f"counts {size_text(row['reckoned'])}"] if counts else []
    notes += [] if row["taken"] else [NOT_ABOVE]
    notes += [f"{row['left_out']:,} not replayed"] if row["left_out"] else []
    return ", ".join(notes) or "-"
