"""A split puts the records of a batch into the batches into which ProducerBatch.split puts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from tests.unit.replay.batch_split.producers import (
    CODECS,
    Produced,
    Producer,
    as_produced,
    captured,
    even_sizes,
    settings_of,
    varint,
)
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.sender_events import CLOSED, KIND, KIND_BITS
from udfs.replay.batch_split.settings import KIP_TEXT, TODAY
from udfs.replay.batch_split.splitting import split_batch
from udfs.replay.batch_split.state import PART, STUCK, ProducerSim, new_sim, no_outcomes
from udfs.replay.shared.event_heap import INDEX, pop

NOW, SOONER, LATER = 50_000, 40_000, 60_000
HEADER, MOST_OF_RECORD, FACTOR = 61, 21, np.float32(1.05)


@dataclass(frozen=True)
class Case:
    """A batch of all records that is split, in a partition in which others wait.

    since: ms from the first record to each. ratio: of the batch. parts: the first and the end of captured parts, and
    when each was sent. waiting: the first records of batches that wait.
    """

    producer: Producer
    values: list[int]
    since: list[int]
    ratio: float
    made_by_split: int
    has_sequence: bool
    parts: dict[int, tuple[int, int]]
    last_split: int


class Part(NamedTuple):
    """A batch that the split makes: its end, the bytes of its records, `made_by_split`, and when it may be sent."""

    end: int
    uncompressed: int
    made_by_split: int
    time: int


def drawn(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    values = rng.choice([1, 20, 60, 100, 300, 1500], n, p=[0.1, 0.2, 0.2, 0.3, 0.15, 0.05]).tolist()
    firsts = rng.integers(0, n, 12)
    parts = {int(first): (int(rng.integers(first + 1, n + 1)), int(rng.choice([SOONER, LATER]))) for first in firsts}
    return Case(
        Producer(int(rng.choice([200, 512, 1024])), 1 << 20, codec=str(rng.choice(["none", "gzip"])),
                 halves=bool(rng.random() < 0.5), profile=KIP_TEXT if rng.random() < 0.3 else TODAY),
        values, np.sort(rng.choice([0, 50, 100, 9000], n)).tolist(), float(rng.choice([0.4, 1.0, 1.3])),
        int(rng.random() < 0.4), bool(rng.random() < 0.5), parts, int(rng.choice([NEVER, 7])),
    )  # fmt: skip


def content(value: int) -> int:
    """Bytes of key, value and headers, with lengths."""
    return 1 + varint(value) + value + 1


def bytes_of(case: Case, record: int, first: int) -> int:
    """DefaultRecord.sizeInBytes in a batch that begins with the record `first`."""
    deltas = varint(record - first) + varint(case.since[record] - case.since[first])
    body = 1 + deltas + content(case.values[record])
    return varint(body) + body


def upper_bound(case: Case, record: int) -> int:
    """AbstractRecords.estimateSizeInBytesUpperBound."""
    return HEADER + MOST_OF_RECORD + content(case.values[record])


def size_of(case: Case) -> int:
    return HEADER + int(sum(bytes_of(case, record, 0) for record in range(len(case.values))) * case.ratio)


def ratio_after(case: Case) -> np.float32:
    """RecordAccumulator.splitAndReenqueue: setEstimation."""
    uncompressed = sum(bytes_of(case, record, 0) for record in range(len(case.values)))
    observed = np.float32(np.float32(size_of(case) - HEADER) / np.float32(uncompressed))
    return np.float32(1) if case.producer.profile == KIP_TEXT else max(np.float32(1), observed)


def firsts_of_parts(case: Case) -> list[int]:
    """The first record of each batch of a split to batch.size, or to half of the size of a batch from a split."""
    everything, target = range(len(case.values)), case.producer.batch_size
    if case.made_by_split and case.producer.halves:
        target = max(size_of(case) // 2, *(upper_bound(case, record) for record in everything))
    firsts, filled = [0], 0
    for record in everything:
        estimated = filled
        if case.producer.codec != "none":
            estimated = int(np.float32(np.float32(filled) * ratio_after(case)) * FACTOR)
        limit = max(target, upper_bound(case, firsts[-1]))
        if record > firsts[-1] and HEADER + estimated + bytes_of(case, record, firsts[-1]) > limit:
            firsts.append(record)
            filled = 0
        filled += bytes_of(case, record, firsts[-1])
    return firsts


def firsts_of_halves(case: Case) -> list[int]:
    """As KIP-126's text has it: the first batch gets at least one record, and records up to half of the bytes."""
    sizes = [bytes_of(case, record, 0) for record in range(len(case.values))]
    cuts = [cut for cut in range(1, len(sizes)) if 2 * sum(sizes[:cut]) >= sum(sizes)]
    return [0, min(cuts, default=len(sizes) - 1)]


def plain_parts(case: Case) -> dict[int, Part]:
    """The parts, by their first records."""
    n, firsts = len(case.values), (firsts_of_halves if case.producer.profile == KIP_TEXT else firsts_of_parts)(case)
    parts = {}
    for first, end in zip(firsts, [*firsts[1:], n], strict=True):
        in_vain = end - first == n and (case.made_by_split or not case.producer.halves)
        part_end, sent_at = case.parts.get(first, (NONE, NONE))
        time = max(NOW, sent_at) if part_end == end else NOW
        uncompressed = sum(bytes_of(case, record, first) for record in range(first, end))
        parts[first] = Part(end, uncompressed, STUCK if in_vain else 1, time)
    return parts


def split(case: Case) -> ProducerSim:
    """The replay after the split. Two batches of later records wait in the partition."""
    n = len(case.values)
    produced = Produced([*case.since, *[99_999] * 2], [*case.values, 1, 1], has_sequence=case.has_sequence)
    capture = captured(produced, even_sizes(produced, [1.0] * (n + 2)))
    capture.batches["codec"] = case.producer.codec_number
    for number, first in enumerate(case.parts):
        capture.records["part"][first] = number
    ends, times = zip(*case.parts.values(), strict=True)
    capture = capture._replace(parts=new_records(PART, len(ends), end=ends, sent_at=times))
    outcomes = no_outcomes(1, 1)
    outcomes["since_split"] = case.last_split
    estimates = np.full((1, 1, CODECS), 0.25, np.float32)
    sim = new_sim(capture, settings_of(case.producer), as_produced(1 << 20), estimates, outcomes)
    sim.filling["queued"], sim.ready["next_in_queue"][n], sim.ready["next_in_queue"][n + 1] = n, n + 1, NONE
    ready = sim.ready[0]
    ready["end"], ready["size"], ready["made_by_split"] = n, size_of(case), case.made_by_split
    ready["uncompressed"] = sum(bytes_of(case, record, 0) for record in range(n))
    split_batch(sim, 0, 0, NOW)
    return sim


def sent_parts(sim: ProducerSim, has_sequence: bool) -> list[tuple[int, int]]:
    """(first record, when it may be sent) of each part: in the queue, or for a close."""
    if has_sequence:
        found, place = [], int(sim.filling["queued"][0])
        while place != NONE:
            found.append((place, int(sim.ready["may_leave"][place])))
            place = int(sim.ready["next_in_queue"][place])
        return found[:-2] if [first for first, _ in found[-2:]] == [len(sim.ready) - 2, len(sim.ready) - 1] else []
    events = [pop(sim.heap) for _ in range(int(sim.heap.events[0]))]
    assert all(code & KIND == CLOSED for _, code in events)
    return sorted(((code & INDEX) >> KIND_BITS, time) for time, code in events)


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_a_split_makes_the_batches_that_kafka_makes(first: int) -> None:
    for case in map(drawn, range(first, first + 60)):
        sim, parts = split(case), plain_parts(case)
        found = {}
        for place, time in sent_parts(sim, case.has_sequence):
            end, uncompressed, made_by_split = sim.ready[place][["end", "uncompressed", "made_by_split"]].tolist()
            found[place] = Part(end, uncompressed, made_by_split, time)
        assert found == parts
        changed = np.full(CODECS, 0.25, np.float32)
        changed[case.producer.codec_number] = ratio_after(case)
        assert sim.estimates[0, 0].tolist() == changed.tolist()
        assert sim.outcomes["since_split"][0, 0] == min(case.last_split, NOW)
