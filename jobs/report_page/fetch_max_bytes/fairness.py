"""Fetch limits and who is served (KIP-74): question 7, and the rows of the closed loop that other questions use."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.replays.ranged import NO_DIFFERENCE, Ranged, are_apart, is_surely_larger, time_with_range, with_range
from jobs.report_page.fetch_max_bytes.throttles import held_back_by_unstated_quota, throttled_clients
from jobs.report_page.lane_labels import own_lanes
from jobs.report_page.mark_titles import WHOSE
from jobs.report_page.question import Axis, Findings, Plot, Question, Unanswered, rows_to_plot
from jobs.report_page.row_caps import first_lanes_note, first_rows, left_out_note
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.lane_rows import has_other_traffic, settings_in_name
from jobs.terminal.screen import Grid
from jobs.terminal.wording import (
    capitalized,
    client_name,
    duration,
    lane_heading,
    lane_label,
    lane_phrase,
    percent,
    quantity,
)
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_FAIRNESS
from schemas.tables.values import CONSUMER
from udfs.replay.fetch_max_bytes.quotas import CONSUMER_QUOTA, has_quota
from udfs.replay.fetch_max_bytes.rows import CLOSED_LOOP

NO_CONSUMER = "The capture shows no consumer that fetches: capture a broker that consumers read from."
NO_RECORDS = (
    "The capture shows no records that a consumer fetched: capture a broker that consumers read from, and whole "
    "packets (`tcpdump -s 0`)."
)
NO_OTHER_LIMITS = "only the captured limits were replayed"
ALSO_HELD_BACK = (
    ". A quota held this consumer back in the capture, too, and nobody stated it: with "
    f"--captured={CONSUMER_QUOTA}=... the replay can tell waits for the quota from waits for limits"
)
MOST_PARTITIONS, MOST_PLOTTED = 20, 14
OF_LOOP = ("closed_loop_order", "closed_loop_catch_up")


def waiting_partitions(own_rows: OwnRows) -> DataFrame:
    """The consumers' partitions that wait longest in any lane of the closed loop, with their rows in all lanes."""
    f = FETCH_FAIRNESS
    rows = own_rows(f).where((F.col(f.mode) == CLOSED_LOOP) & (F.col(f.reader) == CONSUMER))
    key = [str(column) for column in (f.client_id, f.client_address, f.broker, f.topic, f.partition)]
    wait, had = F.max(f.longest_wait_ms).alias("worst"), F.max(f.available_bytes).alias("had")
    order = (F.desc("worst"), F.desc("had"), *map(F.col, key))
    worst = first_rows(rows.groupBy(*key).agg(wait, had), MOST_PARTITIONS, *order)
    return rows.join(F.broadcast(worst), key).orderBy(*order, f.scenario)


def consumers_in_closed_loop(findings: Findings) -> list[Row]:
    """The rows of consumers in the closed loop, one for each lane, in the order of the lanes."""
    return [row for row in findings.by_lane(closed_lanes, algorithms.FETCH_MAX_BYTES) if row["reader"] == CONSUMER]


def consumers_under_limits(findings: Findings) -> list[Row]:
    """The rows of `consumers_in_closed_loop` for lanes that set limits. Lanes that differ only in settings of others
    than consumers share a row. Lanes with other traffic or quotas are left out: the page shows them separately.
    """
    rows = [
        row
        for row in consumers_in_closed_loop(findings)
        if not has_other_traffic(row["scenario"]) and not has_quota(settings_in_name(row["scenario"]))
    ]
    return own_lanes(findings, rows, "consumers")


def captured_row_with_records(rows: Iterable[Row]) -> Row:
    """The row of the captured lane. Raises Unanswered if no consumer got or waited for anything in it."""
    captured = captured_row(rows)
    if captured is None:
        raise Unanswered(NO_CONSUMER)
    if not captured["held"] + captured["waiting"]:
        raise Unanswered(NO_RECORDS)
    return captured


def captured_row(rows: Iterable[Row]) -> Row | None:
    """The row of the captured lane."""
    return next((row for row in rows if row["scenario"] == CAPTURED_LANE), None)


def starving_answer(findings: Findings) -> str:
    """Question 7: how long the longest wait is, which lane ends it, and whether uneven load causes it."""
    rows = consumers_under_limits(findings)
    captured = captured_row_with_records(rows)
    f, (waited, partition) = FETCH_FAIRNESS, captured["longest"][:2]
    within = time_with_range(waited, captured["longest_wait_ms_range"])
    is_held_back = bool(captured["waiting"]) and held_back_by_unstated_quota(findings, captured["longest"][f.client_id])
    if not captured["waiting"]:
        text = "With the captured limits, no consumer partition came away empty from a fetch while it had records"
    else:
        whose = client_name(captured["longest"][f.client_id])
        text = (
            f"With the captured limits, {quantity(captured['waiting'], 'consumer partition')} came away empty from a "
            f"fetch although there were records. {partition} of {whose} waited longest, "
            f"{within}.{skew_text(captured)}{ALSO_HELD_BACK * is_held_back}"
        )
    return f"{text}{best_and_worst_text(rows, captured, is_held_back)}."


def skew_text(captured: Row) -> str:
    """How uneven the load of the partition that waits longest is."""
    f, longest = FETCH_FAIRNESS, captured["longest"]
    return (
        f" It had {percent(longest[f.share_of_available])} of the bytes available to its consumer's fetches. Of what "
        f"they got it had {percent(longest[f.share_of_bytes])}"
    )


def best_and_worst_text(rows: list[Row], captured: Row, is_held_back: bool) -> str:
    """How the longest wait changes in the other lanes. is_held_back: by a quota, so limits need not be its cause."""
    others = [row for row in rows if row["scenario"] != CAPTURED_LANE]
    if others and not any(longest_wait(row).high for row in rows):
        return ". No replayed lane has a longer wait" if captured["waiting"] else ", nor in any other replayed lane"
    if not others:
        return ""
    best = min(others, key=lambda row: (longest_wait(row).value, row["waiting"]))
    worst = max(others, key=lambda row: longest_wait(row).value)
    if not captured["waiting"]:
        return f". {capitalized(longest_wait_text(worst))}{no_difference_text(worst, captured)}"
    is_ended = longest_wait(captured).low and not longest_wait(best).high
    cure = "The limits are the cause: " if is_ended and not is_held_back else ""
    best_wait = longest_wait_text(best)
    text = f". {cure}{best_wait if cure else capitalized(best_wait)}{no_difference_text(best, captured)}"
    also = f"{text}. {capitalized(longest_wait_text(worst))}"
    return also if is_surely_larger(longest_wait(worst), longest_wait(best)) else text


def longest_wait(row: Row) -> Ranged:
    """The longest wait of a lane in ms, with its range at other paces."""
    return with_range(row["longest"][0], row["longest_wait_ms_range"])


def longest_wait_text(row: Row) -> str:
    """The longest wait of a lane as a sentence that names the lane."""
    longest = f"the longest wait is {time_with_range(row['longest'][0], row['longest_wait_ms_range'])}"
    return f"{lane_phrase(row['scenario'])} {longest if longest_wait(row).high else 'nobody waits'}"


def no_difference_text(row: Row, captured: Row) -> str:
    """The end of a sentence on a wait that may equal that of the captured lane; empty if it certainly differs."""
    return "" if are_apart(longest_wait(row), longest_wait(captured)) else f", {NO_DIFFERENCE}"


def waits_by_lane(findings: Findings) -> Plot:
    """A plot of the longest waits, with a point for each partition and lane."""
    f, lanes = FETCH_FAIRNESS, plotted_lanes(findings)
    rows = [
        {"lane": lane_label(lane), "wait": row[f.longest_wait_ms], WHOSE: reader_partition_text(row)}
        for lane in lanes
        for row in findings.of(waiting_partitions)
        if row[f.scenario] == lane
    ]
    return Plot(
        "Longest wait of consumers' partitions, a point each, "
        f"by lane of the closed loop{lanes_left_out_text(findings)}",
        "point", rows_to_plot(rows, "no partition of a consumer waited in any lane", "wait"),
        Axis("wait", "longest wait", "ms"), Axis("lane", lane_heading(lanes), "name"),
    )  # fmt: skip


def shares_by_partition(findings: Findings) -> Plot:
    """A plot of the captured lane, with a point for each partition: its share of the available bytes, and of the bytes
    that the consumer got.
    """
    f = FETCH_FAIRNESS
    rows = [
        {
            "had": row[f.share_of_available],
            "got": row[f.share_of_bytes],
            "waited": WAITED[row[f.longest_wait_ms] > 0],
            WHOSE: reader_partition_text(row),
        }
        for row in findings.of(waiting_partitions)
        if row[f.scenario] == CAPTURED_LANE and None not in (row[f.share_of_available], row[f.share_of_bytes])
    ]
    return Plot(
        "Skew, with the captured limits: below the line a partition got less than its share; far to the right is where "
        "the data is",
        "point", rows_to_plot(rows, "no partition waited in any lane", "had"),
        Axis("had", "share of the bytes available to its consumer's fetches", "percent"),
        Axis("got", "share of the bytes they got", "percent"), Axis("waited", "partition", "name"),
        diagonal="in proportion",
    )  # fmt: skip


WAITED = ("did not wait", "waited")


def reader_partition_text(row: Row) -> str:
    """The consumer, partition and broker of a row."""
    f = FETCH_FAIRNESS
    return f"{client_name(row[f.client_id])}; {row[f.topic]}-{row[f.partition]} on broker {row[f.broker]}"


def plotted_lanes(findings: Findings) -> list[str]:
    """The lanes that a plot has room for."""
    return list(findings.lanes.get(algorithms.FETCH_MAX_BYTES, ()))[:MOST_PLOTTED]


def lanes_left_out_text(findings: Findings) -> str:
    """The text that a plot's title adds if there are more lanes than it has room for; else empty."""
    return first_lanes_note(MOST_PLOTTED, len(findings.lanes.get(algorithms.FETCH_MAX_BYTES, ())))


def waits_table(findings: Findings) -> Grid:
    """A table of the partitions that wait longest in any lane, with their figures in the captured lane."""
    f = FETCH_FAIRNESS
    rows = [row for row in findings.of(waiting_partitions) if row[f.scenario] == CAPTURED_LANE]
    cells = [
        [
            client_name(row[f.client_id]), f"{row[f.topic]}-{row[f.partition]}", duration(row[f.longest_wait_ms]),
            f"{row[f.longest_wait_requests]:,}", percent(row[f.share_of_available]), percent(row[f.share_of_bytes]),
            duration(row[f.catch_up_ms]), duration(row["worst"]),
        ]
        for row in rows
    ]  # fmt: skip
    head = ("consumer", "partition", "longest wait", "fetches in a row", "of what was available", "of bytes got",
            "catch-up", "longest in any lane")  # fmt: skip
    notes = (
        "These are results of the captured limits. Partitions that wait longest in any lane come first.",
        *left_out_note(rows, f),
    )
    columns = {
        "fetches in a row": "how many fetches passed during the longest wait",
        "of what was available": "the partition's share of the bytes that the consumer's fetches could have got; bytes "
        "that wait through several fetches count at each",
        "of bytes got": "the partition's share of the bytes that the consumer got",
        "longest in any lane": "its longest wait in any lane",
    }
    return Grid(head, cells, ("consumer", "partition"), notes, columns)


STARVING = Question(
    number=7,
    text="Which partitions starve, and is it my fetch limits or key skew?",
    about="KIP-74",
    algorithms=(algorithms.FETCH_MAX_BYTES,),
    queries=(closed_lanes, waiting_partitions, throttled_clients),
    sentence=starving_answer,
    plots=(waits_by_lane, shares_by_partition),
    table=waits_table,
    trust=OF_LOOP,
)
