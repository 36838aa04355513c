"""The pass over readers: it answers every fetch of a consumer or follower in every lane, judges it, and sums up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa

from schemas.tables.fetch_reasons import OPEN_FETCHES
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_RANGES, FIDELITY
from schemas.tables.steps import READS
from schemas.tables.steps_memory import MEMORY_EVENTS
from schemas.tables.table import Table
from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import arrow_array
from udfs.facts.arrow_tables import pack_tables
from udfs.replay.fetch_max_bytes.closed_loop.drawn_pace import drawn_figures
from udfs.replay.fetch_max_bytes.closed_loop.events import CapturedFetches
from udfs.replay.fetch_max_bytes.closed_loop.fetcher_rows import BoundsOf, fetcher_verdicts, lane_bounds
from udfs.replay.fetch_max_bytes.closed_loop.intent import intent_of
from udfs.replay.fetch_max_bytes.closed_loop.memory_rows import memory_events, response_room
from udfs.replay.fetch_max_bytes.closed_loop.replay import (
    Member,
    replayed_readers,
    with_known_dealing,
)
from udfs.replay.fetch_max_bytes.closed_loop.rows import closed_rows, range_rows
from udfs.replay.fetch_max_bytes.events import (
    READER,
    Reads,
    answered_fetches,
    logs_and_reads,
    partition_numbers,
    reads_of,
)
from udfs.replay.fetch_max_bytes.fairness import sums_with_fetches
from udfs.replay.fetch_max_bytes.fidelity import fetch_of_reads, judge_fetches
from udfs.replay.fetch_max_bytes.read_from_log import answers_to
from udfs.replay.fetch_max_bytes.rows import (
    OPEN_LOOP,
    Labels,
    LaneBounds,
    ReaderOutcome,
    fairness_rows,
    fetch_consumer_rows,
    memory_bounds,
    verdict_rows,
)
from udfs.replay.fetch_max_bytes.settings import FetchLanes, Reader
from udfs.replay.fetch_max_bytes.state import Sums, no_sums
from udfs.replay.shared.columns import rows_alike
from udfs.replay.shared.fidelity_rows import AGREED, NO_REASON
from udfs.replay.shared.key_numbers import partition_of
from udfs.replay.shared.lanes import CAPTURED
from udfs.replay.shared.rows_by_key import by_key, whole_fetches
from udfs.replay.shared.window import Window

WITH_RECORDS, EMPTY = OPEN_FETCHES.metrics
REPLICATION_THROTTLED = OPEN_FETCHES.codes[OPEN_FETCHES.replication_throttled]
_WORDS = {AGREED: NO_REASON} | {code: word for word, code in OPEN_FETCHES.codes.items()}


@dataclass
class ReaderInProgress:
    """A reader whose fetches are coming, and what is known of them so far.

    sums, requests: results of the open loop. captured: what the closed loop needs of the fetches. max_bytes,
    partition_max_bytes: the largest that the reader asked for. verdicts: how many there are, by broker, whether the
    response had records, and code.
    """

    reader: Reader
    sums: Sums
    captured: CapturedFetches = field(default_factory=CapturedFetches)
    requests: int = 0
    max_bytes: int = 0
    partition_max_bytes: int = 0
    verdicts: Counter[tuple[str, bool, int]] = field(default_factory=Counter)


def replay_fetches(
    batches: Iterable[pa.RecordBatch], lanes: FetchLanes, run_id: str, responses_under: FetchLanes | None = None
) -> Iterator[pa.RecordBatch]:
    """Packed rows of gold tables from rows of READS, sorted by reader, request time, fetch and read position.

    responses_under: lanes under which the replay of memory needs the responses that consumers receive. If given, there
    are rows of MEMORY_EVENTS for these lanes as well.
    """
    yield from pack_tables(rows_of_readers(batches, lanes, run_id, responses_under))


def rows_of_readers(
    batches: Iterable[pa.RecordBatch], lanes: FetchLanes, run_id: str, responses_under: FetchLanes | None
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of one reader after the other. Readers of a group are replayed together."""
    for group in groups_of_readers(batches):
        members = list[ReaderInProgress]()
        for reader, parts in group:
            progress = ReaderInProgress(reader, no_sums(0, len(lanes.names)))
            for logs, reads in map(logs_and_reads, parts):
                progress.captured.note_logs(logs)
                wanted = reads_in_window(reads, lanes.window)
                if wanted.num_rows:
                    take_fetches(progress, wanted, lanes)
            members.append(progress)
        yield from rows_of_group(members, lanes, run_id, responses_under)


def groups_of_readers(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[Iterator[tuple[Reader, Iterator[pa.RecordBatch]]]]:
    """The readers with their rows, by group. A reader without a group is a group of its own."""
    by_reader = by_key(whole_fetches(batches), (READS.group, *READER))
    for _, alike in groupby(by_reader, key=lambda of: of[0][0] or of[0]):
        yield ((Reader(*key), parts) for (_, *key), parts in alike)


def reads_in_window(reads: pa.RecordBatch, window: Window) -> pa.RecordBatch:
    """The reads of fetches that were sent in the window. In closed loop a reader begins with the first of them.

    The content of logs is known from the whole capture, not only from the window.
    """
    return reads if window.is_whole else reads.filter(pa.array(window.has(reads[READS.request_time].to_numpy())))


def take_fetches(progress: ReaderInProgress, rows: pa.RecordBatch, lanes: FetchLanes) -> None:
    """Answer, judge and sum up some whole fetches of the reader, and keep what closed loop needs of them."""
    limits, fetches = lanes.limits_by_row(progress.reader), reads_of(rows)
    fetches.reads["limits_row"] = rows_of_limits(lanes, rows)
    verdicts, available = judge_fetches(fetches, limits[:, CAPTURED : CAPTURED + 1], progress.reader.kind)
    fetches.reads["available_high"] = available
    note_verdicts(progress, rows, fetches, verdicts)
    fetches.reads["throttled"] |= (verdicts == REPLICATION_THROTTLED)[fetch_of_reads(fetches)]
    fetches = note_for_closed_loop(progress.captured, fetches, rows)
    reads = fetches.reads
    available = reads["available_high"].copy()
    progress.sums = sums_with_fetches(progress.sums, fetches, available, answers_to(fetches, available, limits))
    progress.requests += len(fetches.first_read) - 1
    progress.max_bytes = max(progress.max_bytes, int(reads["max_bytes"].max(initial=0)))
    largest = int(reads["partition_max_bytes"].max(initial=0))
    progress.partition_max_bytes = max(progress.partition_max_bytes, largest)


def rows_of_limits(lanes: FetchLanes, rows: pa.RecordBatch) -> Ints | int:
    """The row of `limits_by_row` for each read, int64[reads]; one value for all if brokers do not differ. rows: of
    READS.
    """
    if not lanes.own_max_bytes:
        return 0
    brokers = rows[READS.broker].dictionary_encode()
    row_of_broker = np.array([lanes.row_of_broker(broker) for broker in brokers.dictionary.to_pylist()], np.int64)
    return row_of_broker[brokers.indices.to_numpy()]


def note_for_closed_loop(captured: CapturedFetches, fetches: Reads, rows: pa.RecordBatch) -> Reads:
    """Add to `captured` what the closed loop needs of these fetches.

    Returns the answered ones, with the number of each read's partition. rows: rows of READS, of all these fetches.
    """
    fetches, rows = answered_fetches(fetches, rows)
    fetches.reads["number"] = partition_numbers(captured.partitions, rows, fetches.reads["partition"])
    captured.note_reads(fetches, rows)
    return fetches


def note_verdicts(progress: ReaderInProgress, rows: pa.RecordBatch, fetches: Reads, verdicts: Ints) -> None:
    """Count the verdicts on some whole fetches. verdicts: int64[fetches]."""
    returned = np.maximum(fetches.reads["returned_bytes"], 0)
    has_records = np.bincount(fetch_of_reads(fetches), returned, len(verdicts)) > 0
    brokers = rows[READS.broker].take(arrow_array(fetches.first_read[:-1]))
    alike, first = rows_alike(len(verdicts), brokers, arrow_array(has_records.astype(np.int64)), arrow_array(verdicts))
    names = map(str, brokers.take(arrow_array(first)))
    for name, row, count in zip(names, first.tolist(), np.bincount(alike).tolist(), strict=True):
        progress.verdicts[name, bool(has_records[row]), int(verdicts[row])] += count


def rows_of_group(
    group: Sequence[ReaderInProgress], lanes: FetchLanes, run_id: str, responses_under: FetchLanes | None
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of readers, once all of their fetches have come, in open loop and in closed loop."""
    of_members, bounds_of = list[tuple[Labels, Member]](), list[BoundsOf]()
    for progress in group:
        reader = progress.reader
        partitions = [partition_of(key) for key in progress.captured.partitions]
        labels = Labels(run_id, lanes.names, reader, partitions, lanes.user_of(reader))
        bounds = partial(
            memory_bounds, limits_at=partial(lanes.limits, reader), max_bytes=progress.max_bytes,
            partition_max_bytes=progress.partition_max_bytes,
        )  # fmt: skip
        yield from open_rows(progress, labels, bounds(labels))
        intent = intent_of(progress.captured, reader, lanes)
        if intent is not None:
            room = response_room(intent, reader, responses_under) if responses_under else 0
            of_members.append((labels, Member(intent, reader, room)))
            bounds_of.append(bounds)
    if of_members:
        dealt = with_known_dealing([member for _, member in of_members], lanes)
        of_members = [(labels, member) for (labels, _), member in zip(of_members, dealt, strict=True)]
        yield from fetcher_verdicts(of_members, lanes)
        yield from closed_rows_of_group(of_members, lane_bounds(of_members, bounds_of, lanes), lanes, responses_under)


def closed_rows_of_group(
    group: Sequence[tuple[Labels, Member]], bounds: Sequence[LaneBounds], lanes: FetchLanes,
    responses_under: FetchLanes | None,
) -> Iterator[tuple[Table, pa.RecordBatch]]:  # fmt: skip
    """The rows of readers in closed loop.

    If `responses_under` has the same settings for these readers as `lanes`, one closed loop gives the responses, too.
    If not, the readers are replayed a second time, under `responses_under`. bounds: one for each reader.
    """
    members = [member for _, member in group]
    has_same_limits = responses_under is not None and all(lanes.equals(responses_under, of.reader) for of in members)
    kept = members if has_same_limits else [member._replace(response_room=0) for member in members]
    in_lanes = replayed_readers(kept, lanes)
    drawn = drawn_figures(kept, lanes, in_lanes)
    for (labels, member), of_lanes, replayed, of_paces in zip(group, bounds, in_lanes, drawn, strict=True):
        yield from closed_rows(labels, member.intent, replayed, of_lanes)
        has_quota = bool((lanes.limits(member.reader)["byte_rate"] > 0).any())
        yield FETCH_RANGES, range_rows(labels, of_paces, has_quota)
    if responses_under is not None and any(member.response_room for member in members):
        with_responses = in_lanes if has_same_limits else replayed_readers(members, responses_under)
        for member, replayed in zip(members, with_responses, strict=True):
            if member.response_room:
                yield from ((MEMORY_EVENTS, rows) for rows in memory_events(member.intent, member.reader, replayed))


def open_rows(progress: ReaderInProgress, labels: Labels, memory_bound: Ints) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of a reader in open loop. memory_bound: int64[lanes], bytes, from `memory_bounds`."""
    verdicts = (
        (broker, WITH_RECORDS if has_records else EMPTY, _WORDS[code], count)
        for (broker, has_records, code), count in sorted(progress.verdicts.items())
    )
    yield FIDELITY, verdict_rows(labels, verdicts, OPEN_FETCHES)
    if labels.partitions:
        requests = np.full(len(labels.lanes), progress.requests)
        outcome = ReaderOutcome(OPEN_LOOP, progress.sums, requests, memory_bound)
        yield FETCH_FAIRNESS, fairness_rows(labels, outcome)
        yield FETCH_CONSUMERS, fetch_consumer_rows(labels, outcome)


def replay_responses(batches: Iterable[pa.RecordBatch], limits: FetchLanes) -> Iterator[pa.RecordBatch]:
    """Only rows of MEMORY_EVENTS: the responses that consumers would get in these lanes.

    batches: rows of READS, sorted as `replay_fetches` takes them.
    """
    for group in groups_of_readers(batches):
        members = list[Member]()
        for reader, parts in group:
            if reader.kind == FOLLOWER:
                continue
            captured = CapturedFetches()
            for logs, reads in map(logs_and_reads, parts):
                captured.note_logs(logs)
                rows = reads_in_window(reads, limits.window)
                if rows.num_rows:
                    note_for_closed_loop(captured, reads_of(rows), rows)
            intent = intent_of(captured, reader, limits)
            if intent is not None and (room := response_room(intent, reader, limits)):
                members.append(Member(intent, reader, room))
        if members:
            for member, replayed in zip(members, replayed_readers(members, limits), strict=True):
                yield from memory_events(member.intent, member.reader, replayed)
