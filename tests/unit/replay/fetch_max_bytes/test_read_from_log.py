"""A fetch is answered as kafka.server.ReplicaManager.readFromLog does, Kafka 4.3 (KIP-74)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.columns.arrays import Records, stretch_edges
from udfs.columns.records import new_records
from udfs.replay.fetch_max_bytes.events import Reads
from udfs.replay.fetch_max_bytes.read_from_log import FIRST_WITH_MAX_BYTES, answers_to
from udfs.replay.fetch_max_bytes.settings import FETCH_LIMITS
from udfs.replay.fetch_max_bytes.state import READ
from udfs.replay.shared.lanes import AS_CAPTURED

MOST = 2**31 - 1


@dataclass(frozen=True)
class Read:
    """One partition of a fetch. sizes: those of the batches from the fetch offset on, all available by default."""

    sizes: tuple[int, ...] = ()
    max_bytes: int = MOST
    available: int | None = None
    is_known: bool = True
    is_hard: bool = False


@dataclass(frozen=True)
class Lane:
    max_bytes: int = AS_CAPTURED
    partition_max_bytes: int = AS_CAPTURED
    broker_max_bytes: int = MOST
    only_first: bool = False


CAPTURED = Lane()


def answer(fetches: list[tuple[int, list[Read]]], lanes: list[Lane]) -> Records:
    """Answers to fetches, each its max_bytes and partitions, in every lane: ANSWER[lanes, reads]."""
    rows = [(most, read) for most, partitions in fetches for read in partitions]
    ends = stretch_edges([len(read.sizes) for _, read in rows])
    reads = new_records(
        READ,
        len(rows),
        max_bytes=[most for most, _ in rows],
        partition_max_bytes=[read.max_bytes for _, read in rows],
        log_known=[read.is_known for _, read in rows],
        api_version=[FIRST_WITH_MAX_BYTES - read.is_hard for _, read in rows],
        first_size=ends[:-1],
        end_size=ends[1:],
    )
    sizes = np.array([size for _, read in rows for size in read.sizes], np.int64)
    available = np.array([readable_bytes(read) for _, read in rows], np.int64)
    limits = new_records(
        FETCH_LIMITS,
        len(lanes),
        **{name: [getattr(lane, name) for lane in lanes] for name in Lane.__dataclass_fields__},
    )
    return answers_to(
        Reads(reads, stretch_edges([len(partitions) for _, partitions in fetches]), sizes), available, limits
    )


def returned(most: int, *partitions: Read, lane: Lane = CAPTURED) -> list[int]:
    """Bytes of each partition of one fetch."""
    return answer([(most, list(partitions))], [lane])["returned"][0].tolist()


FIVE = (631,) * 5


@pytest.mark.parametrize(
    ("offset", "max_bytes", "is_first", "expected"),
    [
        (0, 100, True, 631),
        (0, 100, False, 0),
        (0, 0, False, 0),
        (0, 0, True, 631),
        (5, 1000, False, 1000),
        (15, 700, True, 700),
        (45, 100_000, False, 631),
        (50, 100, True, 0),
    ],
)
def test_a_read_gives_as_many_bytes_as_kafkas_own_log_segment(
    offset: int, max_bytes: int, is_first: bool, expected: int
) -> None:
    """What LogSegment.read of kafka-storage 4.3.1 gave for a segment of five batches of ten records, 631 bytes each."""
    before = [] if is_first else [Read((1,))]
    assert returned(MOST, *before, Read(FIVE[offset // 10 :], max_bytes))[-1] == expected


def test_a_small_partition_limit_cuts_batches_and_the_cut_bytes_are_fetched_again() -> None:
    """Seen on a live broker: 42,884 B of batches of about 16.4 KB in three fetches of 20000, 20000 and 10139 B."""
    sizes = (16_372, 16_373, 10_139)
    found, cut, position = [], [], 0
    while position < len(sizes):
        answers = answer([(MOST, [Read(sizes[position:], 20_000)])], [CAPTURED])
        found.append(int(answers["returned"][0, 0]))
        cut.append(int(answers["cut_tail"][0, 0]))
        position += next(n for n in range(len(sizes), 0, -1) if sum(sizes[position : position + n]) <= found[-1])
    assert (found, sum(cut)) == ([20_000, 20_000, 10_139], 7255)


def test_the_first_partition_that_yields_may_exceed_the_limits_not_the_first_named() -> None:
    assert returned(10, Read(), Read((500,), 10), Read((500,), 10)) == [0, 500, 0]


def test_a_partition_limit_below_the_first_batch_yields_nothing_after_another_partition() -> None:
    assert returned(MOST, Read((100,)), Read((500, 10), 499), Read((100,))) == [100, 0, 100]


def test_record_bytes_stay_below_the_limit_or_are_the_first_batch_alone() -> None:
    assert returned(1000, Read((600, 600)), Read((400,))) == [1000, 0]
    assert returned(1000, Read((1500, 10)), Read((10,))) == [1500, 0]


def test_a_used_up_limit_does_not_end_the_fetch() -> None:
    """Later partitions are still visited, and return nothing."""
    answers = answer([(100, [Read((100,)), Read((5,)), Read()]), (100, [Read((7,))])], [CAPTURED])
    assert answers["returned"][0].tolist() == [100, 0, 0, 7]


def test_limits_of_zero_return_exactly_the_first_batch() -> None:
    assert returned(0, Read((500, 1), 0), Read((1,), 0)) == [500, 0]


def test_int_max_is_a_limit_like_any_other_and_the_broker_caps_it() -> None:
    assert returned(MOST, Read((600, 600)), lane=Lane(broker_max_bytes=1024)) == [1024]


def test_a_lanes_settings_replace_those_of_the_request() -> None:
    fetch = [(1000, [Read((300, 300, 300), 400), Read((300,), 400)])]
    lanes = [CAPTURED, Lane(max_bytes=350), Lane(partition_max_bytes=700), Lane(max_bytes=350, partition_max_bytes=10)]
    assert answer(fetch, lanes)["returned"].tolist() == [[400, 300], [350, 0], [700, 300], [300, 0]]


def test_by_the_kips_text_only_the_partition_named_first_may_exceed_the_limits() -> None:
    assert returned(10, Read(), Read((500,), 10), lane=Lane(only_first=True)) == [0, 0]
    assert returned(10, Read((500,), 10), Read((500,), 10), lane=Lane(only_first=True)) == [500, 0]


def test_an_override_is_counted_where_a_first_batch_exceeds_the_limits() -> None:
    answers = answer([(100, [Read((500,)), Read((5,))]), (1000, [Read((500,))])], [CAPTURED])
    assert answers["overrides"][0].tolist() == [1, 0, 0]


def test_an_answer_is_unknown_where_more_than_is_known_could_be_returned() -> None:
    known, more = Read((100,)), Read((100,), is_known=False)
    limited = Read((100,), 100, is_known=False)
    nothing = Read((), is_known=False)
    answers = answer([(1000, [known, more, limited, nothing]), (100, [known, nothing])], [CAPTURED])
    assert answers["unknown"][0].tolist() == [0, 1, 0, 1, 0, 0]


def test_a_fetch_before_version_3_gets_no_batch_beyond_its_limits_but_a_part_of_it() -> None:
    """It has no max_bytes: FetchParams.hardMaxBytesLimit in ReplicaManager.read."""
    first, second = Read((500, 500), 400, is_hard=True), Read((500,), 700, is_hard=True)
    assert returned(MOST, first, second) == [400, 500]
    assert returned(MOST, first, second, lane=Lane(broker_max_bytes=450)) == [400, 50]
    assert returned(MOST, first, second, lane=Lane(max_bytes=450)) == [500, 0], "the lane's client sends max_bytes"


def test_a_fetch_without_partitions_changes_nothing() -> None:
    assert answer([(5, []), (5, [Read((1,))]), (5, [])], [CAPTURED])["returned"].tolist() == [[1]]


def readable_bytes(read: Read) -> int:
    return sum(read.sizes) if read.available is None else read.available


def eight_steps(most: int, partitions: list[Read], lane: Lane) -> list[int]:
    """ReplicaManager.readFromLog and LogSegment.read of Kafka 4.3, written plainly, one partition after the other."""
    limit = min(most if lane.max_bytes == AS_CAPTURED else lane.max_bytes, lane.broker_max_bytes)
    min_one, out = True, []
    for read in partitions:
        pmax = read.max_bytes if lane.partition_max_bytes == AS_CAPTURED else lane.partition_max_bytes
        adj = min(pmax, limit)
        size = 0
        if readable_bytes(read) > 0:
            first = read.sizes[0]
            eff = max(adj, first) if min_one else adj
            size = 0 if eff == 0 else min(readable_bytes(read), eff)
            is_incomplete = eff < first
            size = 0 if is_incomplete else size
        out.append(size)
        limit = max(0, limit - size)
        min_one = (min_one and size == 0) if not lane.only_first else False
    return out


def cut_tail(read: Read, size: int) -> int:
    """The bytes after the last whole batch."""
    whole = 0
    for batch in read.sizes:
        if whole + batch > size:
            break
        whole += batch
    return size - whole


sizes = st.lists(st.integers(1, 50), max_size=4).map(tuple)
limits = st.one_of(st.integers(0, 120), st.just(MOST))


@st.composite
def one_read(draw: st.DrawFn) -> Read:
    batches = draw(sizes)
    return Read(batches, draw(limits), sum(batches[: draw(st.integers(0, len(batches)))]))


lanes = st.builds(Lane, limits | st.just(AS_CAPTURED), limits | st.just(AS_CAPTURED), limits, st.booleans())
fetch_lists = st.lists(st.tuples(limits, st.lists(one_read(), max_size=5)), min_size=1, max_size=4)


@settings(derandomize=True, max_examples=500, deadline=None)
@given(fetch_lists, st.lists(lanes, min_size=1, max_size=4))
def test_every_fetch_is_answered_by_the_eight_steps_in_every_lane(
    fetches: list[tuple[int, list[Read]]], settings_: list[Lane]
) -> None:
    answers = answer(fetches, settings_)
    reads = [read for _, partitions in fetches for read in partitions]
    for lane, setting in enumerate(settings_):
        expected = [size for most, partitions in fetches for size in eight_steps(most, partitions, setting)]
        assert answers["returned"][lane].tolist() == expected
        assert answers["cut_tail"][lane].tolist() == [cut_tail(*pair) for pair in zip(reads, expected, strict=True)]
