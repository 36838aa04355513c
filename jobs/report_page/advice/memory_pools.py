"""Advice on memory pools: producers' buffer.memory, brokers' queued.max.request.bytes, consumers' buffer.memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.find.scopes import Scope
from jobs.replays.algorithm import OwnRows
from jobs.replays.consumer_memory.answers import lanes
from jobs.replays.consumer_memory.ranges import LONGEST, MOST, SMALLEST, WAITS, pool_ranges
from jobs.replays.ranged import Ranged, range_column, with_range
from jobs.report_page.advice.batch_sizes import split_producers
from jobs.report_page.advice.client_rows import rows_by_client, rows_of_first_clients, with_fidelity
from jobs.report_page.advice.in_force import confidence_in_replay, confidence_of_client, value_in_force
from jobs.report_page.advice.recommendation import Effect, Recommendation
from jobs.report_page.lane_labels import own_name
from jobs.report_page.question import Findings
from jobs.scenarios.chosen_grids import CONSUMER_BUFFER, PRODUCER_BUFFER
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import setting_of, settings
from jobs.terminal.lane_rows import SCENARIO, in_lane_order, settings_in_name
from jobs.terminal.wording import capitalized, duration, quantity, short_size
from schemas.tables import algorithms
from schemas.tables.gold_memory import PRODUCER_MEMORY
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.values import CHANGE, CONSUMER, KEEP, OF_CLIENT, PRODUCER, WITHHELD

BROKER_BUFFER = "broker.queued.max.request.bytes"
LARGEST_REQUEST = "broker.socket.request.max.bytes"
LEAST_EXPLAINED = 0.9
"""The share of a producer's batches that its batch.size has to explain."""


def producer_lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each lane of the producers' client.ids that wait most in the captured lane."""
    p = PRODUCER_MEMORY
    failed = F.col(p.exhausted) + F.col(p.larger_than_buffer)
    rows = own_rows(p).groupBy(p.client_id, p.scenario).agg(
        F.sum(p.waits).alias(p.waits), F.sum(failed).alias("failed"), F.max(p.wait_ms_max).alias(LONGEST),
        F.max(p.used_bytes_max).alias(MOST), F.max(p.buffer_bytes).alias(p.buffer_bytes),
        F.max(p.batch_size).alias(p.batch_size),
    )  # fmt: skip
    first = rows_of_first_clients(rows, F.desc("failed"), F.desc(p.waits), F.desc(MOST))
    ranges = pool_ranges(own_rows, p, p.client_id, p.scenario)
    ranged = first.join(ranges, [str(p.client_id), str(p.scenario)], "left")
    return with_fidelity(ranged, own_rows, algorithms.CONSUMER_MEMORY, PRODUCER)


def advise_memory_pools(findings: Findings) -> Iterable[Recommendation]:
    """What to do about the pool of each side that the capture shows."""
    rows = in_lane_order(findings.of(producer_lanes), findings.lanes.get(algorithms.CONSUMER_MEMORY, ()))
    for client, of_client in rows_by_client(rows).items():
        yield producer_pool_advice(findings, Scope(OF_CLIENT, client), of_client)
    captured = [row for row in findings.of(lanes) if row[SCENARIO] == CAPTURED_LANE]
    for side, advised in (("brokers", broker_pool_advice), ("consumers", consumer_pool_advice)):
        yield from (advised(findings, row) for row in captured if row["of"] == side and row["most"])


def producer_pool_advice(findings: Findings, scope: Scope, rows: Sequence[Row]) -> Recommendation:
    """The advice on a producer's buffer.memory: to keep it if nobody waits, else the smallest replayed value with which
    nobody waits, at other paces of brokers either.
    """
    captured, now = rows[0], value_in_force(findings, PRODUCER_BUFFER)
    advised = partial(
        Recommendation, algorithms.CONSUMER_MEMORY, scope, PRODUCER_BUFFER, now=now, sure=confidence_of_client(captured)
    )
    doubt = doubt_about_batch_size(findings, captured)
    if not batches_without_memory(captured):
        enough, text = None if doubt else str(memory_enough(captured)), kept_buffer_text(captured, doubt)
        return advised(KEEP, recommended=now.value, enough=enough, reason=text)
    wait_now = batches_without_memory_text(captured)
    if doubt:
        return advised(WITHHELD, recommended=None, reason=f"{wait_now}{doubt}")
    # Where a smaller buffer seems to end waits, its lane fills batches otherwise than the captured producer did.
    larger = [row for row in rows[1:] if row[PRODUCER_MEMORY.buffer_bytes] > captured[PRODUCER_MEMORY.buffer_bytes]]
    without = [row for row in larger if is_enough_at_any_pace(row) and sets_buffer_alone(findings, row)]
    if not without:
        text = f"{wait_now}, and no replayed buffer.memory ends that: replay larger ones."
        return advised(WITHHELD, recommended=None, reason=text)
    best = min(without, key=lambda row: row[PRODUCER_MEMORY.buffer_bytes])
    before, after = captured[PRODUCER_MEMORY.buffer_bytes], best[PRODUCER_MEMORY.buffer_bytes]
    waited, waits = (at_any_pace(row, LONGEST) for row in (captured, best))
    return advised(
        CHANGE, recommended=str(after), enough=str(after),
        gain=Effect(
            f"{wait_now} -> nothing waits", LONGEST, waited.value, waits.value, (waited.low, waited.high),
            (waits.low, waits.high),
        ),
        cost=Effect(f"buffer {short_size(before)} -> {short_size(after)}", PRODUCER_MEMORY.buffer_bytes, before, after),
        reason="It is the smallest replayed buffer in which nothing waits.",
    )  # fmt: skip


def doubt_about_batch_size(findings: Findings, captured: Row) -> str:
    """What the replay of batch.size says against the batch.size with which a producer's memory was replayed, as the end
    of a sentence; empty if it says nothing. A batch takes at least batch.size bytes of memory.
    """
    p, s = PRODUCER_MEMORY, BATCH_SPLIT
    of_client = (row for row in findings.of(split_producers) if row[s.client_id] == captured[p.client_id])
    split = next((row for row in of_client if row[SCENARIO] == CAPTURED_LANE), None)
    if split is None or not split[s.is_batch_size_told]:
        return ""
    if split[s.batch_size] != captured[p.batch_size]:
        shown = f"its batches show {short_size(split[s.batch_size])}"
    elif split["agreed"] < LEAST_EXPLAINED * split["checked"]:
        shown = f"only {split['agreed']:,} of its {split['checked']:,} batches fit that"
    else:
        return ""
    return f" if batch.size is {short_size(captured[p.batch_size])}, but {shown}: state the value that it has."


def sets_buffer_alone(findings: Findings, row: Row) -> bool:
    """Whether a lane sets buffer.memory and no other producer setting. Settings of others do not change a producer."""
    return list(settings_in_name(own_name(findings, row[SCENARIO], "producers"))) == [PRODUCER_BUFFER]


def batches_without_memory(row: Row) -> int:
    """The number of batches that wait for memory or do not get it."""
    return int(row[PRODUCER_MEMORY.waits] + row["failed"])


def is_enough_at_any_pace(row: Row) -> bool:
    """Whether no batch waits for memory or does not get it, at the captured pace and at others."""
    return not batches_without_memory(row) and not at_any_pace(row, WAITS).high


def at_any_pace(row: Row, figure: str) -> Ranged:
    """A producer's figure with its range at other paces of brokers. row: from `producer_lanes`."""
    return with_range(row[figure], row[range_column(figure)])


def memory_enough(captured: Row) -> int:
    """The bytes that are enough for a producer whose batches do not wait, at any pace of brokers."""
    return int(at_any_pace(captured, MOST).high)


def kept_buffer_text(captured: Row, doubt: str) -> str:
    """Why a producer's buffer is kept: nothing waits, at other paces either. doubt: from `doubt_about_batch_size`."""
    none = f"nothing in the capture waits for memory with {short_size(captured[PRODUCER_MEMORY.buffer_bytes])}"
    enough, waits = short_size(memory_enough(captured)), int(at_any_pace(captured, WAITS).high)
    if doubt:
        return f"{capitalized(none)}. {enough} is enough{doubt}"
    if not waits:
        return f"{enough} is enough: {none}."
    batches, longest = quantity(waits, "batch waits", "batches wait"), duration(at_any_pace(captured, LONGEST).high)
    return f"{capitalized(none)}, but that is hardly enough: with slower brokers {batches} up to {longest}."


def batches_without_memory_text(row: Row) -> str:
    """The number of batches that wait for memory or do not get it, and how long they wait, as text."""
    return f"{quantity(batches_without_memory(row), 'batch', 'batches')} wait up to {duration(row[LONGEST])}"


def broker_pool_advice(findings: Findings, captured: Row) -> Recommendation:
    """The advice on the bound for requests in a broker's memory: what is enough at other paces, too. Kafka accepts no
    bound below its largest request (socket.request.max.bytes).
    """
    now = value_in_force(findings, BROKER_BUFFER)
    least = int(findings.captured.get(LARGEST_REQUEST, settings()[LARGEST_REQUEST].default_value) or 0)
    smallest = smallest_pool(captured)
    enough = max(smallest, least)
    advised = partial(
        Recommendation, algorithms.CONSUMER_MEMORY, Scope(), BROKER_BUFFER, now=now, enough=str(enough),
        sure=confidence_in_replay(findings, algorithms.CONSUMER_MEMORY),
    )  # fmt: skip
    if captured["waits"] + captured["stuck"]:
        longest = with_range(captured["longest"], captured[range_column(LONGEST)])
        text = f"{quantity(captured['waits'], 'request')} wait up to {duration(longest.value)}"
        return advised(
            CHANGE, recommended=str(enough), reason="It is the smallest pool in which nothing waits.",
            gain=Effect(
                f"{text} -> nothing waits", LONGEST, longest.value, 0.0, (longest.low, longest.high), (0.0, 0.0)
            ),
            cost=Effect(f"a broker holds up to {short_size(enough)} of requests", "pool_bytes", None, enough),
        )  # fmt: skip
    text = f"{short_size(smallest)} is enough for all captured requests.{slower_pace_text(captured)}"
    if enough == least:
        text += f" Kafka accepts no less than socket.request.max.bytes, {short_size(least)}."
    return advised(KEEP, recommended=now.value, reason=text)


def slower_pace_text(captured: Row) -> str:
    """Says that requests of a broker wait at other paces, with the pool in force; empty if none does. captured: from
    `lanes`, and none waits at the captured pace.
    """
    waits, longest = (
        with_range(captured[name], captured[range_column(of)]).high
        for name, of in (("waits", WAITS), ("longest", LONGEST))
    )
    return f" At a slower pace {quantity(int(waits), 'request')} wait up to {duration(longest)}." if waits else ""


def smallest_pool(captured: Row) -> int:
    """The bytes of a pool in which nobody waits, at any pace. captured: from `lanes`."""
    return int(with_range(captured["smallest"], captured[range_column(SMALLEST)]).high)


def consumer_pool_advice(findings: Findings, captured: Row) -> Recommendation:
    """The advice on the consumers' pool that KIP-81 proposes. No release has it."""
    now, enough = value_in_force(findings, CONSUMER_BUFFER), smallest_pool(captured)
    return Recommendation(
        algorithm=algorithms.CONSUMER_MEMORY,
        scope=Scope(),
        setting=setting_of(CONSUMER_BUFFER).key,
        verdict=KEEP,
        now=now,
        recommended=now.value,
        sure=confidence_in_replay(findings, algorithms.CONSUMER_MEMORY, (CONSUMER,)),
        reason=f"{short_size(enough)} was enough for everyone.",
        enough=str(enough),
        is_proposal=True,
    )
