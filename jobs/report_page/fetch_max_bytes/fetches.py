"""How large fetches are, which bytes are thrown away, and who sends fetches (KIP-74): questions 11, 16, 17, 19."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.answers import closed_lanes, closed_table, open_lanes, open_table
from jobs.report_page.fetch_max_bytes.fairness import (
    MOST_PLOTTED,
    NO_CONSUMER,
    NO_OTHER_LIMITS,
    NO_RECORDS,
    OF_LOOP,
    captured_row,
    consumers_in_closed_loop,
    consumers_under_limits,
    lanes_left_out_text,
    plotted_lanes,
)
from jobs.report_page.lane_labels import own_lanes
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
from jobs.report_page.row_caps import left_out_note
from jobs.report_page.traffic import bin_start, fetches_by_reader, fetching_consumers, response_sizes
from jobs.terminal.screen import Grid, size_text
from jobs.terminal.wording import client_name, duration, lane_heading, lane_label, lane_phrase, percent, quantity
from schemas.tables import algorithms
from schemas.tables.silver import FETCH_PARTITIONS
from schemas.tables.values import CONSUMER, FOLLOWER

HARD_LIMIT_BEFORE = 3
"""In versions of Fetch below this one the limit of a partition is hard: a larger message is never received (KIP-74)."""
ALL_CUT = "The capture cuts all responses to fetches: capture whole packets (`tcpdump -s 0`)."
LEAST_BEYOND = 0.01
"""From this share on, fetches beyond a high watermark are worth a sentence."""
OF_RECORDS = ("fetches_with_records", "empty_fetches")


def consumers_in_open_loop(findings: Findings) -> list[Row]:
    """The rows of consumers in the open loop, in the order of the lanes. Lanes that differ only in settings of others
    share a row.
    """
    rows = [row for row in findings.by_lane(open_lanes, algorithms.FETCH_MAX_BYTES) if row["reader"] == CONSUMER]
    return own_lanes(findings, rows, "consumers")


def too_large_answer(findings: Findings) -> str:
    """Question 11: a first batch above the limits is delivered, unless the request has an old version."""
    rows = consumers_in_open_loop(findings)
    captured = captured_row(rows)
    of_readers = {row[FETCH_PARTITIONS.reader]: row for row in findings.of(fetches_by_reader)}
    if captured is None or CONSUMER not in of_readers:
        raise Unanswered(NO_CONSUMER)
    oldest = of_readers[CONSUMER]["oldest"]
    text = "Delivered: KIP-74 lets the first batch of a response through. "
    if captured["overrides"]:
        text += (
            f"{quantity(captured['overrides'], 'fetch', 'fetches')} of consumers got a batch larger than the captured "
            "limits"
        )
    else:
        text += "Here no fetch got a batch larger than the captured limits"
    most = max(rows, key=lambda row: row["overrides"])
    if most["overrides"] > captured["overrides"]:
        text += f". {quantity(most['overrides'], 'fetch', 'fetches')} would get one {lane_phrase(most['scenario'])}"
    if oldest < HARD_LIMIT_BEFORE:
        return (
            f"{text}. But some fetch with version {oldest}, and below version {HARD_LIMIT_BEFORE} the limit is hard: "
            "those get stuck."
        )
    return f"{text}. All fetch with version {oldest} or later, so none gets stuck."


def overrides_by_lane(findings: Findings) -> Plot:
    """A bar for each lane."""
    lanes = plotted_lanes(findings)
    rows = [
        {"lane": lane_label(lane), "overrides": row["overrides"]}
        for lane in lanes
        for row in findings.of(open_lanes)
        if row["scenario"] == lane and row["reader"] == CONSUMER
    ]
    rows_with_any = rows_to_plot(rows, "no first batch is larger than a consumer's limits in any lane", "overrides")
    return Plot(
        "Consumers' fetches whose first batch is larger than the limits, "
        f"by lane of the open loop{lanes_left_out_text(findings)}",
        "bar", rows_to_compare(rows_with_any, NO_OTHER_LIMITS, "lane"),
        Axis("overrides", "fetches", "count"), Axis("lane", lane_heading(lanes), "name"),
    )  # fmt: skip


def small_fetches_answer(findings: Findings) -> str:
    """Question 16: requests for each delivered MiB, and how small responses are."""
    f = FETCH_PARTITIONS
    consumers = {row[f.reader]: row for row in findings.of(fetches_by_reader)}.get(CONSUMER)
    if consumers is None:
        raise Unanswered(NO_CONSUMER)
    if not consumers["fetches"]:
        raise Unanswered(ALL_CUT)
    mib = consumers["bytes"] / (1 << 20)
    rate = f", {consumers['fetches'] / mib:,.0f} per MiB" if mib else ""
    text = (
        f"Consumers got {quantity(consumers['fetches'], 'fetch', 'fetches')} answered, with "
        f"{size_text(consumers['bytes'])} of records{rate}. {percent(consumers['empty'] / consumers['fetches'])} came "
        f"back empty{beyond_text(consumers)}{cut_responses_text([consumers])}"
    )
    most = next(iter(findings.of(fetching_consumers)), None)  # none if the partitions of no fetch are known
    if most is None or most["median"] is None:
        return f"{text}."
    fill = f", {percent(most['median'] / most[f.max_bytes])} of its fetch.max.bytes" if most[f.max_bytes] else ""
    return (
        f"{text}. For {client_name(most[f.client_id])}, which sent most, half of the responses with records have "
        f"{size_text(most['median'])} or less{fill}."
    )


def beyond_text(consumers: Row) -> str:
    """How many fetches came back empty because of a new leader, as a sentence without its end; empty if few did."""
    if consumers["beyond"] < LEAST_BEYOND * consumers["fetches"]:
        return ""
    return (
        f". {consumers['beyond']:,} of the empty ones asked for records beyond the high watermark of a new leader: it "
        "answers at once, and the consumer asks again, until the followers have caught up"
    )


def cut_responses_text(readers: Iterable[Row]) -> str:
    """How many responses are left out because the capture has only a part of them, as a sentence without its end."""
    cut = sum(row["cut"] for row in readers)
    if not cut:
        return ""
    verb = "does" if cut == 1 else "do"
    return f". The capture cuts {quantity(cut, 'more response', 'more responses')}, which {verb} not count"


def response_size_histogram(findings: Findings) -> Plot:
    """Responses by size."""
    f = FETCH_PARTITIONS
    rows = [
        {"bytes": bin_start(row["bin"]), "until": bin_start(row["bin"] + 1), "fetches": row["fetches"],
         "reader": row[f.reader]}
        for row in findings.of(response_sizes)
    ]  # fmt: skip
    return Plot(
        "Captured responses with records by their record bytes",
        "bar", rows_to_plot(rows, "no response had records"),
        Axis("bytes", "record bytes in the response", "bytes", log=True),
        Axis("fetches", "fetches", "count"), Axis("reader", "reader", "name"),
    )  # fmt: skip


def consumers_table(findings: Findings) -> Grid:
    """A row for each consumer: what it asks for, and what it gets."""
    f = FETCH_PARTITIONS
    cells = [
        [
            client_name(row[f.client_id]), f"{row['fetches']:,}", percent(row["empty"] / row["fetches"]),
            size_text(row["bytes"]), size_text(row["median"]), size_text(row[f.max_bytes]), size_text(row[f.min_bytes]),
            duration(row[f.max_wait_ms]),
        ]
        for row in findings.of(fetching_consumers)
    ]  # fmt: skip
    head = ("consumer", "fetches", "empty", "record bytes", "median response", "fetch.max.bytes", "fetch.min.bytes",
            "fetch.max.wait.ms")  # fmt: skip
    notes = ("The settings are the largest values that the consumer's fetches ask for.",)
    columns = {"median response": "the median record bytes of responses with records"}
    return Grid(head, cells, ("consumer",), (*notes, *left_out_note(findings.of(fetching_consumers), f)), columns)


def thrown_away_answer(findings: Findings) -> str:
    """Question 17: bytes of batches that are cut off at the end of a partition's data."""
    rows = consumers_in_open_loop(findings)
    captured = captured_row(rows)
    if captured is None or not captured["bytes"]:
        raise Unanswered(NO_RECORDS)
    text = (
        f"Replayed with the captured limits, {percent(captured['cut'] / captured['bytes'])} of the "
        f"{size_text(captured['bytes'])} of records that consumers get are tails of cut batches. These "
        f"{size_text(captured['cut'])} are thrown away and fetched again"
    )
    loop = consumers_under_limits(findings)
    if len(loop) < 2:
        return f"{text}."
    most = max(loop, key=lambda row: row["cut"])
    least = min(loop, key=lambda row: row["cut"])
    if most["cut"] == least["cut"]:
        return f"{text}. No lane changes that."
    little = size_text(least["cut"]) if least["cut"] else "nothing"
    return (
        f"{text}. Reading everything would cut {little} {lane_phrase(least['scenario'])}. It would cut "
        f"{size_text(most['cut'])} {lane_phrase(most['scenario'])}."
    )


def cut_by_lane(findings: Findings) -> Plot:
    """A bar for each lane."""
    rows = [
        {"lane": lane_label(row["scenario"]), "cut": row["cut"]}
        for row in consumers_in_closed_loop(findings)[:MOST_PLOTTED]
    ]
    heading = lane_heading(findings.lanes[algorithms.FETCH_MAX_BYTES])
    rows_with_any = rows_to_plot(rows, "no lane cuts a batch", "cut")
    return Plot(
        "Bytes that consumers fetch and throw away until all is read, "
        f"by lane of the closed loop{lanes_left_out_text(findings)}",
        "bar", rows_to_compare(rows_with_any, NO_OTHER_LIMITS, "lane"),
        Axis("cut", "bytes of cut batches", "bytes"), Axis("lane", heading, "name"),
    )  # fmt: skip


def followers_answer(findings: Findings) -> str:
    """Question 19: the shares of followers in fetches, bytes and sessions."""
    f = FETCH_PARTITIONS
    by_reader = {row[f.reader]: row for row in findings.of(fetches_by_reader)}
    if FOLLOWER not in by_reader:
        raise Unanswered("The capture shows no fetch of a follower: capture the inter-broker listener.")
    row = by_reader[FOLLOWER]
    if not row["fetches"]:
        raise Unanswered(ALL_CUT)

    def of_all(field: str) -> str:
        everyone = sum(other[field] for other in by_reader.values())
        return f"{percent(row[field] / everyone)}" if everyone else "none"

    got = f"got {of_all('bytes')} of the record bytes ({size_text(row['bytes'])})" if row["bytes"] else "got no records"
    return (
        f"Followers sent {of_all('fetches')} of the answered fetches. They {got}. They opened {of_all('sessions')} of "
        f"the fetch sessions ({row['sessions']:,}). A consumer can take their slots only after these were idle for "
        f"min.incremental.fetch.session.eviction.ms{cut_responses_text(by_reader.values())}."
    )


def shares_of_readers(findings: Findings) -> Plot:
    """Fetches, bytes and sessions by reader."""
    rows: list[dict[str, object]] = []
    for field, name in (("fetches", "fetches"), ("bytes", "record bytes"), ("sessions", "sessions opened")):
        everyone = sum(row[field] for row in findings.of(fetches_by_reader))
        rows += [
            {"of": name, "share": row[field] / everyone, "reader": row[FETCH_PARTITIONS.reader]}
            for row in findings.of(fetches_by_reader)
            if everyone
        ]
    return Plot(
        "What consumers and followers take, as captured",
        "bar",
        rows_to_compare(rows_to_plot(rows, "nothing was fetched"), "all was fetched by one kind of reader", "reader"),
        Axis("share", "share", "percent"), Axis("of", "", "name"), Axis("reader", "reader", "name"),
    )  # fmt: skip


def readers_table(findings: Findings) -> Grid:
    """A row for each kind of reader."""
    cells = [
        [
            row[FETCH_PARTITIONS.reader], f"{row['fetches']:,}", percent(row["empty"] / row["fetches"]),
            size_text(row["bytes"]), f"{row['sessions']:,}",
        ]
        for row in findings.of(fetches_by_reader)
        if row["fetches"]
    ]  # fmt: skip
    return Grid(("reader", "fetches", "empty", "record bytes", "sessions opened"), cells, ("reader",))


TOO_LARGE = Question(
    number=11,
    text="A message is larger than max.partition.fetch.bytes: stuck, skipped or delivered?",
    about="KIP-74",
    algorithms=(algorithms.FETCH_MAX_BYTES,),
    queries=(open_lanes, fetches_by_reader),
    sentence=too_large_answer,
    plots=(overrides_by_lane,),
    table=lanes_table_maker(algorithms.FETCH_MAX_BYTES, open_lanes, open_table),
    trust=OF_RECORDS,
)


SMALL_AND_MANY = Question(
    number=16,
    text="Are my fetches small and many (fetch.min.bytes, fetch.max.wait.ms)?",
    about="KIP-74",
    algorithms=(),
    queries=(fetches_by_reader, fetching_consumers, response_sizes),
    sentence=small_fetches_answer,
    plots=(response_size_histogram,),
    table=consumers_table,
)


THROWN_AWAY = Question(
    number=17,
    text="How many bytes are fetched and thrown away?",
    about="KIP-74",
    algorithms=(algorithms.FETCH_MAX_BYTES,),
    queries=(open_lanes, closed_lanes),
    sentence=thrown_away_answer,
    plots=(cut_by_lane,),
    table=lanes_table_maker(algorithms.FETCH_MAX_BYTES, closed_lanes, closed_table),
    trust=(*OF_RECORDS, *OF_LOOP),
)


FOLLOWERS = Question(
    number=19,
    text="How does replication by followers interact (privileged sessions, replica.fetch.*)?",
    about="KIP-74, KIP-227",
    algorithms=(),
    queries=(fetches_by_reader,),
    sentence=followers_answer,
    plots=(shares_of_readers,),
    table=readers_table,
)
