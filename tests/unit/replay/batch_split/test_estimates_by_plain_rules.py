"""Verdicts on batches, and the order of closes and splits, are those of a search that keeps every order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

from schemas.tables.split_reasons import SPLITS
from tests.unit.replay.batch_split.producers import Producer, content_of, settings_of, varint
from udfs.columns.arrays import Ints, Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.possible_estimates.batch_size import batch_size_range, find_ranges
from udfs.replay.batch_split.possible_estimates.fidelity import judge_group, judge_group_in_order
from udfs.replay.batch_split.possible_estimates.state import (
    CLOSE,
    CREATED,
    EARLY,
    LINGERED,
    NO_ESTIMATE,
    NOT_CUT,
    SPLIT,
    WAITED,
    EstimateGroup,
    new_memory,
    new_sim,
)
from udfs.replay.batch_split.state import RECORD
from udfs.replay.shared.batch_size_ranges import UNBOUNDED
from udfs.replay.shared.fidelity_rows import AGREED

MS = 1000  # us
BEGAN_BEFORE, ORDER_OPEN = SPLITS.codes[SPLITS.producer_began_before], SPLITS.codes[SPLITS.close_append_order]
FEWER, MORE = SPLITS.codes[SPLITS.fewer_records], SPLITS.codes[SPLITS.more_records]
DOWN, UP, FACTOR, SIZE = np.float32(0.07), np.float32(0.05), np.float32(1.05), 1024


def settings() -> Records:
    """At the estimate of 1.0 a batch takes eight records of 100 bytes. After one close it may take nine."""
    made = settings_of(Producer(SIZE, 1 << 20))
    made["improving_step"] = DOWN
    return made


class Judged(NamedTuple):
    """What is judged: a group and its records."""

    group: EstimateGroup
    records: Records


def drawn(seed: int, initial: float = 1.0) -> Judged:
    """Some batches of one topic, and closes and splits around them, with times that leave much of their order open."""
    rng = np.random.default_rng(seed)
    many, closes, splits = int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.integers(0, 2))
    time = np.sort(rng.integers(0, 8, many)) * 5 * MS
    counts = rng.integers(7, 11, many)
    end = np.cumsum(counts)
    contents = content_of([100])[0] + rng.integers(0, 3, end[-1])
    records = new_records(RECORD, int(end[-1]), content=contents, timestamp=np.sort(rng.integers(0, 200, end[-1])))
    latest, refused_at = np.sort(rng.integers(3, 45, closes)) * MS, np.sort(rng.integers(0, 30, splits)) * MS
    earliest = latest - rng.integers(1, 30, closes) * MS
    before = np.array([int(rng.integers(NONE, number)) if number else NONE for number in range(many)])
    batches = new_records(
        CREATED, many, time=time, until=time + rng.integers(1, 7, many) * MS, place=end - counts,
        later=[int(end[time == of][-1]) for of in time], first=end - counts, end=end,
        next_content=content_of([100])[0] + rng.integers(-20, 20, many),
        next_timestamp=rng.integers(200, 9000, many),
        other_content=np.where(rng.random(many) < 0.3, rng.integers(90, 130, many), NONE),
        other_timestamp=rng.integers(200, 9000, many),
        cut=rng.choice([NOT_CUT, NOT_CUT, WAITED, EARLY, LINGERED], many), before=before,
        close_before=np.where(before == NONE, NONE, rng.integers(0, closes, many)),
    )  # fmt: skip
    made = new_records(
        CLOSE, closes, latest=latest, earliest=earliest, none_before=np.minimum.accumulate(earliest[::-1])[::-1],
        after=np.where(rng.random(closes) < 0.3, rng.integers(0, end[-1], closes), NONE),
        splits=np.where(rng.random(closes) < 0.2, splits, 0), ratio=rng.choice([0.1, 0.9, 0.97, 1.1], closes),
    )  # fmt: skip
    refusals = new_records(
        SPLIT, splits, earliest=refused_at, latest=refused_at + rng.integers(1, 20, splits) * MS,
        after=rng.integers(NONE, closes, splits), ratio=rng.choice([0.5, 1.2], splits),
    )  # fmt: skip
    none, codec = np.zeros(0, np.int64), int(seed % 7 > 0)
    return Judged(EstimateGroup(0, codec, none.astype(bool), batches, made, refusals, none, none, initial), records)


@dataclass(frozen=True)
class Way:
    """A way to an estimate: the closes and splits, in their order, each with the batch that was created next. A close
    is known by its number, and a split by its number behind the closes. waits: how many of them came after the ms of
    the batch that was created next.
    """

    estimate: np.float32
    closes: frozenset[int] = frozenset()
    splits: int = 0
    waits: int = 0
    order: tuple[tuple[int, int], ...] = ()


def updated(estimate: np.float32, observed: np.float32) -> np.float32:
    """CompressionRatioEstimator.updateEstimation."""
    if observed == estimate:
        return estimate
    return max(np.float32(estimate + UP if observed > estimate else estimate - DOWN), observed)


def bytes_of(content: int, place: int, since: int) -> int:
    """DefaultRecord.sizeInBytes."""
    body = 1 + varint(since) + varint(place) + content
    return body + varint(body)


@dataclass
class Search:
    """All ways, one batch after the other."""

    judged: Judged
    in_order: bool
    ways: list[Way]
    done: tuple[tuple[int, int], ...] | None = ()
    full: dict[int, bool] | None = None

    def batch(self, number: int) -> np.void:
        return self.judged.group.batches[number]

    def next_ways(self, way: Way, number: int) -> list[Way]:
        """The ways that go on with one more close or split that can have been before the batch was created."""
        group, batch, found = self.judged.group, self.batch(number), list[Way]()
        till, place = batch["until"], batch["place" if self.in_order else "later"]
        split = group.splits[way.splits] if way.splits < len(group.splits) else None
        open_ones = [close for close in range(len(group.closes)) if close not in way.closes]
        may_split = split is not None and split["earliest"] <= till

        def later(earliest: int) -> int:
            return way.waits + int(earliest > batch["time"] + MS)

        for one in open_ones if way.estimate >= 0 or may_split else []:
            close = group.closes[one]
            if close["earliest"] > till or any(group.closes[o]["latest"] <= close["earliest"] for o in open_ones):
                continue
            if close["after"] >= place or close["splits"] > way.splits:
                continue
            if split is not None and split["latest"] <= close["earliest"]:
                continue
            estimate = updated(way.estimate, close["ratio"]) if way.estimate >= 0 else way.estimate
            found.append(Way(estimate, way.closes | {one}, way.splits, later(close["earliest"]),
                             (*way.order, (one, number))))  # fmt: skip
        if split is None or not may_split or split["after"] not in way.closes | {NONE}:
            return found
        if all(group.closes[o]["latest"] > split["earliest"] for o in open_ones):
            event = len(group.closes) + way.splits
            found.append(Way(max(np.float32(1), split["ratio"]), way.closes, way.splits + 1,
                             later(split["earliest"]), (*way.order, (event, number))))  # fmt: skip
        return found

    def follow(self, number: int) -> None:
        """Add all ways that go on, and drop those without what surely happened."""
        group, time = self.judged.group, self.batch(number)["time"]
        surely = {close for close in range(len(group.closes)) if group.closes[close]["latest"] <= time}
        if [way.estimate >= 0 for way in self.ways] == [False]:
            self.ways = [replace(self.ways[0], closes=self.ways[0].closes | surely)]
        new = self.ways
        while new:
            new = [following for way in new for following in self.next_ways(way, number)]
            self.ways = self.ways + new
        split = sum(bool(one["latest"] <= time) for one in group.splits)
        self.ways = [way for way in self.ways if surely <= way.closes and way.splits >= split]
        before = self.batch(number)["before"]
        if self.in_order and self.full is not None and before != NONE and not self.full.get(before, True):
            close = self.batch(number)["close_before"]
            closed = [way for way in self.ways if close == NONE or close in way.closes]
            self.ways = closed or self.ways

    def verdict(self, number: int, estimate: np.float32, cut: int, size: int = SIZE) -> int:
        """Whether MemoryRecordsBuilder ends the batch where it ended, at this estimate and batch.size."""
        batch, records = self.batch(number), self.judged.records
        first, filled = records[batch["first"]], 0
        limit = max(size, 61 + 21 + int(first["content"]))

        def takes(place: int, record: int) -> bool:
            compressed = int(np.float32(np.float32(np.float32(filled) * estimate) * FACTOR))
            estimated = 61 + (compressed if self.judged.group.codec else filled)
            return place == 0 or (estimated < limit and estimated + record <= limit)

        for place, record in enumerate(records[batch["first"] : batch["end"]]):
            size_of = bytes_of(int(record["content"]), place, int(record["timestamp"] - first["timestamp"]))
            if not takes(place, size_of):
                return MORE
            filled += size_of
        count, since = int(batch["end"] - batch["first"]), int(first["timestamp"])
        next_ones = [bytes_of(int(batch["next_content"]), count, int(batch["next_timestamp"]) - since)]
        if batch["other_content"] != NONE:
            next_ones.append(bytes_of(int(batch["other_content"]), count, int(batch["other_timestamp"]) - since))
        return FEWER if batch["cut"] < cut and takes(count, max(next_ones)) else AGREED

    def judge(self, number: int) -> int:
        """The verdict on a batch; only the ways that explain it go on, if it shows which do."""
        batches = self.judged.group.batches
        if self.ways[0].estimate < 0:
            return BEGAN_BEFORE
        cuts = (LINGERED, EARLY, WAITED) if self.in_order else (EARLY,)
        for cut in cuts:
            given = [self.verdict(number, way.estimate, cut) for way in self.ways]
            agreeing = [way for way, verdict in zip(self.ways, given, strict=True) if verdict == AGREED]
            if agreeing:
                break
        alone = sum(batches["time"] == batches["time"][number]) == 1
        if agreeing and (self.in_order or alone):
            self.ways = agreeing
        if self.in_order and agreeing and batches["cut"][number] != NOT_CUT:
            full = [self.verdict(number, way.estimate, LINGERED + 1) == AGREED for way in agreeing]
            self.full = {**(self.full or {}), number: any(full)}
        if len(agreeing) == len(given) or (self.in_order and agreeing):
            return AGREED
        if agreeing or (given[-1] == FEWER and batches["cut"][number] == WAITED):
            return ORDER_OPEN
        return next(verdict for verdict in reversed(given) if verdict != AGREED)


def searched(judged: Judged, *, in_order: bool) -> tuple[list[int], Search] | None:
    """(the verdicts; the search at its end); None if no way explains what surely happened."""
    search = Search(judged, in_order, [Way(np.float32(judged.group.initial))])
    verdicts = []
    for number in range(len(judged.group.batches)):
        search.follow(number)
        if not search.ways:
            return None
        verdicts.append(search.judge(number))
    return verdicts, search


def fewest_waits(search: Search) -> set[tuple[tuple[int, int], ...]]:
    """The orders of the ways with the fewest waits."""
    least = min(way.waits for way in search.ways)
    return {way.order for way in search.ways if way.waits == least}


def order_in(placed: Records) -> tuple[tuple[int, int], ...]:
    """The closes and splits in their order, each with the batch that was created next."""
    known = np.flatnonzero(placed["batch"] != NONE)
    known = known[np.argsort(placed["rank"][known])]
    return tuple(zip(known.tolist(), placed["batch"][known].tolist(), strict=True))


@pytest.mark.parametrize("first", range(0, 200, 40))
def test_a_batch_gets_the_verdict_that_all_orders_together_give(first: int) -> None:
    memory, explained = new_memory(), 0
    for seed in range(first, first + 40):
        judged = drawn(seed, NO_ESTIMATE if seed % 3 == 0 else 1.0)
        found, plain = judge_group(*judged, settings(), memory)[0], searched(judged, in_order=False)
        if plain is not None:
            assert (seed, found.tolist()) == (seed, plain[0])
            explained += 1
    assert explained >= 15


@pytest.mark.parametrize("first", range(1000, 1200, 40))
def test_the_order_that_is_found_explains_all_batches_with_the_fewest_waits(first: int) -> None:
    memory, explained = new_memory(), 0
    for seed in range(first, first + 40):
        judged = drawn(seed)
        (found, placed), plain = judge_group_in_order(*judged, settings(), memory), searched(judged, in_order=True)
        if plain is not None:
            assert (seed, found.tolist()) == (seed, plain[0])
            assert order_in(placed) in fewest_waits(plain[1]), seed
            explained += 1
    assert explained >= 15


def in_turn(judged: Judged, time: int) -> tuple[np.float32, int, int]:
    """(the estimate after all that surely happened by a time, in the order of requests; how many closes these are; how
    many splits).
    """
    group, estimate = judged.group, np.float32(judged.group.initial)
    events = [(int(split["latest"]), 0, split) for split in group.splits]
    events += [(int(close["latest"]), 1, close) for close in group.closes]
    over = sorted((event for event in events if event[0] <= time), key=lambda event: event[:2])
    for _, is_close, event in over:
        estimate = updated(estimate, event["ratio"]) if is_close else max(np.float32(1), event["ratio"])
    closes = sum(is_close for _, is_close, _ in over)
    return estimate, closes, len(over) - closes


def estimates_around(judged: Judged, number: int) -> tuple[np.float32, np.float32]:
    """The least and the greatest estimate with which a batch can have been created."""
    group, time = judged.group, judged.group.batches["time"][number]
    estimate, closes, splits = in_turn(judged, time)
    seen = [estimate]
    for close in group.closes[closes:]:
        if close["earliest"] <= time + MS:
            estimate = updated(estimate, close["ratio"])
            seen.append(estimate)
    greatest = max(seen)
    if splits < len(group.splits) and group.splits["earliest"][splits] <= time + MS:
        greatest = max(greatest, np.float32(1), group.splits["ratio"][splits])
    return min(seen), greatest


@pytest.mark.parametrize("first", range(2000, 2200, 40))
def test_batch_size_is_in_a_range_if_the_batch_can_end_there_with_an_estimate_around_it(first: int) -> None:
    for seed in range(first, first + 40):
        judged, memory = drawn(seed), new_memory()
        sim = new_sim(judged.group, judged.records, settings(), memory, in_order=False)
        ranges: Ints = np.zeros((2, len(judged.group.batches)), np.int64)
        find_ranges(sim, ranges)
        search = Search(judged, in_order=False, ways=[])
        for number, (at_least, at_most) in enumerate(ranges.T.tolist()):
            least, greatest = estimates_around(judged, number)
            assert (at_least, at_most) == batch_size_range(sim, number, least, greatest)
            near = {1, 100, 5000, *(bound + by for bound in (at_least, at_most) for by in (-1, 0, 1))}
            for size in (size for size in near if 0 < size < UNBOUNDED):
                assert (size < at_least) == (search.verdict(number, least, EARLY, size) == MORE)
                assert (size > at_most) == (search.verdict(number, greatest, EARLY, size) == FEWER)


@pytest.mark.parametrize("initial", [1.0, NO_ESTIMATE])
def test_the_estimate_at_the_end_follows_what_is_left_in_the_order_of_requests(initial: float) -> None:
    """The only batch came before everything."""
    for seed in range(60):
        judged, records = drawn(seed, initial)
        (batch,) = judged.batches[:1].copy()
        batch["time"], batch["until"] = -100 * MS, -99 * MS
        after = Judged(judged._replace(batches=np.array([batch])), records)
        expected = in_turn(after, NEVER)[0] if initial >= 0 or len(judged.splits) else NO_ESTIMATE
        if initial < 0 and len(judged.splits):
            later = judged.closes[judged.closes["latest"] >= judged.splits["latest"][0]]
            expected = in_turn(Judged(judged._replace(closes=later), records), NEVER)[0]
        assert judge_group(*after, settings(), new_memory())[1] == expected
