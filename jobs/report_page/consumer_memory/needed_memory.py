"""Memory of consumers, and KIP-74's bound: question 1."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.consumer_memory.answers import lanes
from jobs.replays.consumer_memory.queue_answers import largest_queues
from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.replays.fetch_max_bytes.ranges import held_caveats, held_text
from jobs.report_page.fetch_max_bytes.fairness import NO_CONSUMER, consumers_under_limits
from jobs.report_page.lane_labels import own_lanes
from jobs.report_page.question import Axis, Findings, Plot, Question, Unanswered, rows_to_plot
from jobs.report_page.row_caps import first_rows, left_out_note
from jobs.report_page.traffic import fetching_consumers
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import settings
from jobs.terminal.lane_rows import has_other_traffic
from jobs.terminal.screen import Grid, size_text
from jobs.terminal.wording import (
    capitalized,
    changed_settings,
    client_name,
    lane_phrase,
    quantity,
)
from jobs.units import parse_bytes
from schemas.tables import algorithms
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_memory import CONSUMER_MEMORY, CONSUMER_MEMORY_EXCEEDANCE, LIBRDKAFKA_QUEUE
from schemas.tables.memory_reasons import DRAINED
from schemas.tables.silver import FETCH_PARTITIONS
from udfs.replay.consumer_memory.settings import MAX_KBYTES
from udfs.replay.shared.lanes import NO_LIMIT

CONSUMERS = "consumers"
MOST_CONSUMERS, MOST_CURVES = 20, 5
BUFFER_MEMORY = "buffer.memory"
FETCH_LIMIT = "consumer.fetch.max.bytes"


def hungry_consumers(own_rows: OwnRows) -> DataFrame:
    """The consumers that held most in the captured lane, without clients that only spoke to coordinators and fetched
    nothing.

    others: how many fetches came on another connection and began at another offset, as those of another process do, or
    are those of one of several processes that are not told apart.
    """
    c, t = CONSUMER_MEMORY, FIDELITY
    rows = own_rows(c).where((F.col(c.scenario) == CAPTURED_LANE) & (F.col(c.partitions) > 0))
    another, several = (
        F.coalesce(F.element_at(t.reasons, word), F.lit(0))
        for word in (DRAINED.another_connection, DRAINED.several_processes)
    )
    others = (another + several).alias("others")
    drained = own_rows(t).where(
        (F.col(t.algorithm) == algorithms.CONSUMER_MEMORY) & (F.col(t.metric) == "drained_partitions")
    )
    fields = drained.select(t.client_id, t.client_address, others)
    joined = rows.join(fields, [str(c.client_id), str(c.client_address)], "left")
    return first_rows(joined, MOST_CONSUMERS, F.desc(c.used_bytes_max), c.client_id, c.client_address)


def exceedance_points(own_rows: OwnRows) -> DataFrame:
    """The curves of the captured lane, for the consumers that held most."""
    c, e = CONSUMER_MEMORY, CONSUMER_MEMORY_EXCEEDANCE
    key = [str(c.client_id), str(c.client_address)]
    most = hungry_consumers(own_rows).limit(MOST_CURVES).select(*key)
    rows = own_rows(e).where(F.col(e.scenario) == CAPTURED_LANE)
    return rows.join(F.broadcast(most), key).orderBy(*key, e.bytes)


def consumers_by_lane(findings: Findings) -> list[Row]:
    """The row of the worst consumer in each lane, in the order of the lanes. Lanes that differ only in settings of
    others share a row. Lanes with other traffic are left out: the page shows them separately.
    """
    rows = [row for row in consumer_rows(findings) if not has_other_traffic(row[CONSUMER_MEMORY.scenario])]
    return own_lanes(findings, rows, "consumers")


def consumer_rows(findings: Findings) -> list[Row]:
    """The row of the worst consumer in each lane, in the order of the lanes."""
    return [row for row in findings.by_lane(lanes, algorithms.CONSUMER_MEMORY) if row["of"] == CONSUMERS]


def needed_memory_answer(findings: Findings) -> str:
    """Question 1: what was held, what would be held under other fetch limits, and KIP-74's bound."""
    c, rows = CONSUMER_MEMORY, findings.of(hungry_consumers)
    if not rows:
        raise Unanswered(NO_CONSUMER)
    most = rows[0]
    text = (
        f"{client_name(most[c.client_id])}, the consumer that held most, held up to "
        f"{size_text(most[c.used_bytes_max])} of responses at a time. For 99 % of the time it held "
        f"{at_most_text(most[c.used_bytes_p99])} "
        f"({uncompressed_text(most)}{held_to_end_text(most[c.pinned_responses])}). "
        f"KIP-74's bound is {size_text(most[c.memory_bound_bytes])} with {quantity(most[c.brokers], 'broker')} and "
        f"{quantity(most[c.partitions], 'partition')}"
        f"{bound_exceeded_text(most[c.used_bytes_max], most[c.memory_bound_bytes])}"
    )
    return f"{text}{shared_identity_text(most)}{other_limits_text(findings)}.{queue_text(findings)}"


def queue_text(findings: Findings) -> str:
    """What the librdkafka consumer with the largest possible queue can hold, whatever its fetch limits are."""
    q = LIBRDKAFKA_QUEUE
    rows = [
        row for row in findings.by_lane(largest_queues, algorithms.CONSUMER_MEMORY) if row[q.bound_bytes] is not None
    ]
    captured = [row for row in rows if row[q.scenario] == CAPTURED_LANE]
    if not captured:
        return ""
    row = captured[0]
    by_number = row[q.threshold_bytes] < row[q.max_queued_bytes]
    setting = f"queued.min.messages={row[q.min_queued_messages]:,}" if by_number else (
        f"queued.max.messages.kbytes={row[q.max_queued_bytes] // 1000}"
    )  # fmt: skip
    text = (
        f" {client_name(row[q.client_id])} uses librdkafka, which fetches ahead: its queue can hold "
        f"{size_text(row[q.bound_bytes])}. That takes {size_text(row[q.memory_bound_bytes])} of memory, by "
        f"{setting} and a response {brokers_of_queue_text(row[q.brokers])} on top.{lower_queue_text(findings, row)}"
    )
    least = min(rows, key=lambda of: of[q.bound_bytes])
    if least[q.bound_bytes] >= row[q.bound_bytes]:
        return text
    return f"{text} It can hold {size_text(least[q.bound_bytes])} {lane_phrase(least[q.scenario])}."


def lower_queue_text(findings: Findings, queue: Row) -> str:
    """Says that a queue may be smaller than assumed, if its client's fetches ask for fewer bytes than by default.

    A client that does not set fetch.max.bytes asks for no more than queued.max.messages.kbytes, or for
    message.max.bytes if that is more (rd_kafka_conf_finalize, librdkafka).
    """
    client_id, asked = LIBRDKAFKA_QUEUE.client_id, FETCH_PARTITIONS.max_bytes
    limits = [row[asked] for row in findings.of(fetching_consumers) if row[client_id] == queue[client_id]]
    default = settings()[FETCH_LIMIT].default_value
    if MAX_KBYTES not in findings.assumed or not limits or limits[0] is None or limits[0] >= default:
        return ""
    return (
        f" Its fetches ask for at most {size_text(limits[0])}, so queued.max.messages.kbytes may be lower: if it is, "
        f"state it with --captured={MAX_KBYTES}=N."
    )


def brokers_of_queue_text(brokers: int) -> str:
    """Text on the brokers from each of which a queue may hold one response beyond its bound."""
    return "of its broker" if brokers == 1 else f"of each of {brokers:,} brokers"


def shared_identity_text(row: Row) -> str:
    """Says that several processes seem to be counted as one consumer, because fetches show it. Empty if none does."""
    return (
        ". Several processes seem to share that client.id and address, so what each held is not known"
        if row["others"]
        else ""
    )


def bound_exceeded_text(held: int, bound: int) -> str:
    """Why a consumer can hold more than KIP-74's bound, if it does."""
    return "" if held <= bound else ". A first batch that is larger comes whole, so more was held"


def at_most_text(count: int) -> str:
    """This many bytes, or less."""
    return f"{size_text(count)} or less" if count else "nothing"


def held_to_end_text(pinned: int) -> str:
    """How many responses count as held until the capture's end."""
    return f"; {quantity(pinned, 'response')} held to the end, as no fetch shows that all was taken" if pinned else ""


def uncompressed_text(row: Row) -> str:
    """How much larger records are without compression, if that was measured."""
    c = CONSUMER_MEMORY
    if row[c.decompressed_bytes] is None:
        return f"on the wire; uncompressed size of {row[c.unmeasured_batches]:,} compressed batches not measured"
    if not row[c.record_bytes]:
        return "without records"
    ratio = row[c.decompressed_bytes] / row[c.record_bytes]
    return "none of it compressed" if ratio == 1 else f"on the wire; uncompressed {ratio:.1f} times as much"


def other_limits_text(findings: Findings) -> str:
    """The most that a consumer would hold in the closed loop: in the lane where that is largest, and where smallest."""
    lanes = consumers_under_limits(findings)
    if len(lanes) > 1:
        held = {row["scenario"]: (row["held"], held_text(row)) for row in lanes}
        return "".join([most_and_least_text(held, "records"), *(f". {capitalized(c)}" for c in held_caveats(lanes))])
    rows = [row for row in consumers_by_lane(findings) if pool_bytes(row[CONSUMER_MEMORY.scenario]) is None]
    held = {row[CONSUMER_MEMORY.scenario]: (row["most"], size_text(row["most"])) for row in rows}
    return most_and_least_text(held, "responses") if len(held) > 1 else ""


def most_and_least_text(held: Mapping[str, tuple[int, str]], what: str) -> str:
    """In which lane most is held, and in which least. held: how many bytes, and their text, by lane."""
    most, least = max(held, key=held.__getitem__), min(held, key=held.__getitem__)
    if held[most] == held[least]:
        return f". In closed loop a consumer holds at most {held[most][1]} of {what} in every lane"
    return (
        f". In closed loop a consumer holds at most {held[most][1]} of {what} {lane_phrase(most)}. It holds "
        f"{held[least][1]} {lane_phrase(least)}"
    )


def exceedance_curves(findings: Findings) -> Plot:
    """A curve for each consumer."""
    e = CONSUMER_MEMORY_EXCEEDANCE
    rows = [
        {"consumer": client_name(row[e.client_id]), "bytes": row[e.bytes], "share": row[e.share_above]}
        for row in findings.of(exceedance_points)
    ]
    return Plot(
        "Share of the time in which a consumer holds more than a number of bytes of responses, as captured",
        "step", rows_to_plot(rows, "no consumer held anything"),
        Axis("bytes", "bytes held", "bytes"), Axis("share", "of the time", "percent"),
        Axis("consumer", "consumer", "name"),
    )  # fmt: skip


def hungry_table(findings: Findings) -> Grid:
    """A row for each consumer."""
    c = CONSUMER_MEMORY
    cells = [
        [
            client_name(row[c.client_id]), row[c.client_address], f"{row[c.brokers]:,}", f"{row[c.partitions]:,}",
            size_text(row[c.used_bytes_p50]), size_text(row[c.used_bytes_p95]), size_text(row[c.used_bytes_p99]),
            size_text(row[c.used_bytes_max]), size_text(row[c.memory_bound_bytes]), size_text(row[c.record_bytes]),
            size_text(row[c.decompressed_bytes]),
        ]
        for row in findings.of(hungry_consumers)
    ]  # fmt: skip
    head = ("consumer", "address", "brokers", "partitions", "p50 held", "p95", "p99", "most", "KIP-74 bound",
            "record bytes", "uncompressed")  # fmt: skip
    columns = {
        "p50 held": "for half of the time no more bytes than this are held; p95 and p99 likewise for 95 and 99 %",
        "uncompressed": "- if a compressed batch was not decompressed. `pipeline` decompresses batches if a setting of "
        "batch_split is named as well, such as --set=producer.batch.size=16384",
    }
    left_out = left_out_note(findings.of(hungry_consumers), c)
    return Grid(head, cells, ("consumer", "address"), left_out, columns)


def pool_bytes(lane: str) -> int | None:
    """The consumer's buffer.memory in a lane; None if it has no bound."""
    text = changed_settings(lane).get(BUFFER_MEMORY)
    return None if text in (None, NO_LIMIT) else parse_bytes(text)


NEEDED = Question(
    number=1,
    text="How much memory will my consumers need under these fetch limits?",
    about="KIP-74, KIP-81",
    algorithms=(algorithms.CONSUMER_MEMORY,),
    queries=(hungry_consumers, exceedance_points, lanes, largest_queues, fetching_consumers),
    sentence=needed_memory_answer,
    plots=(exceedance_curves,),
    table=hungry_table,
    trust=("drained_partitions", "queue_decisions"),
    beside={algorithms.FETCH_MAX_BYTES: (closed_lanes,)},
)
