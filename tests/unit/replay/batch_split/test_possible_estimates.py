"""Verdicts on where captured batches end if the capture leaves open which closes came before a batch was created."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from schemas.tables.split_reasons import SPLITS
from tests.unit.replay.batch_split.producers import Producer, content_of, settings_of
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.replay.batch_split.estimate import estimate_after_split, updated_estimate
from udfs.replay.batch_split.possible_estimates.events import batches_before, latest_appends
from udfs.replay.batch_split.possible_estimates.fidelity import (
    FEWER_RECORDS,
    MORE_RECORDS,
    judge_group,
    judge_group_in_order,
)
from udfs.replay.batch_split.possible_estimates.state import (
    CLOSE,
    CREATED,
    EARLY,
    LINGERED,
    NOT_CUT,
    SPLIT,
    EstimateGroup,
    estimate_bounds,
    new_memory,
)
from udfs.replay.batch_split.settings import TODAY
from udfs.replay.batch_split.state import BATCH, RECORD
from udfs.replay.shared.fidelity_rows import AGREED

ORDER_OPEN = SPLITS.codes[SPLITS.close_append_order]
MS = 1000  # us
NO_SPLITS = np.zeros(0, SPLIT)

Times = Sequence[tuple[int, int]]


def settings() -> Records:
    """At the estimate of 1.0 a batch takes eight records. After one close it is so low that a batch takes nine."""
    found = settings_of(Producer(1024, 1 << 20))
    found["improving_step"] = 0.07
    return found


def group(closes: Records, splits: Records = NO_SPLITS, batches: Records | None = None) -> EstimateGroup:
    """The group that is judged, with an estimate of 1.0 before it."""
    created, none = np.zeros(0, CREATED) if batches is None else batches, np.zeros(0, np.int64)
    return EstimateGroup(
        topic=0,
        codec=1,
        is_of=np.zeros(0, np.bool_),
        batches=created,
        closes=closes,
        splits=splits,
        closed=none,
        refused=none,
        initial=1.0,
    )


def given(
    batches: Times, closes: Times, cut: int = NOT_CUT, *, waits: int = 0, in_turn: bool = False
) -> tuple[EstimateGroup, Records]:
    """(a group, its records). batches: (ms of creation, number of records) of each. closes: (earliest, latest ms) of
    each, in the order of requests. cut: of all batches. waits: the ms by which each batch may have been created later.
    in_turn: the batches are of one partition, and the closes are theirs.
    """
    created, counts = (np.array(of) for of in zip(*batches, strict=True))
    end = np.cumsum(counts)
    (content,) = content_of([100])
    records = new_records(RECORD, int(end[-1]), content=content)
    first = end - counts
    earliest, latest = (np.array(of) * MS for of in zip(*closes, strict=True))
    before = np.arange(len(batches)) - 1 if in_turn else NONE
    return group(
        new_records(
            CLOSE,
            len(latest),
            latest=latest,
            earliest=earliest,
            none_before=np.minimum.accumulate(earliest[::-1])[::-1],
            after=NONE,
            ratio=0.1,
        ),
        batches=new_records(
            CREATED,
            len(batches),
            time=created * MS,
            until=(created + 1 + waits) * MS,
            place=first,
            later=end,
            first=first,
            end=end,
            next_content=content,
            other_content=NONE,
            cut=cut,
            before=before,
            close_before=before,
        ),
    ), records


def verdicts(batches: Times, closes: Times, cut: int = NOT_CUT) -> list[int]:
    """The verdicts on a `given` group over every possible order."""
    return judge_group(*given(batches, closes, cut), settings(), new_memory())[0].tolist()


def in_one_order(batches: Times, closes: Times, cut: int = NOT_CUT) -> tuple[list[int], list[int]]:
    """(the verdicts in one order; the batch that was created next after each close, NONE where nothing shows it)."""
    found, order = judge_group_in_order(*given(batches, closes, cut), settings(), new_memory())
    return found.tolist(), order["batch"].tolist()


def order_of(judged: tuple[EstimateGroup, Records]) -> list[int]:
    """The batch that was created next after each close, NONE where nothing shows it."""
    return judge_group_in_order(*judged, settings(), new_memory())[1]["batch"].tolist()


def test_a_batch_may_have_been_created_until_the_next_record_was_sent() -> None:
    """Its first record has the time of the send, which may then have had to wait until the client had compressed the
    end of another batch.
    """
    waited = given([(10, 9)], [(12, 25)], waits=5)
    assert judge_group(*waited, settings(), new_memory())[0].tolist() == [ORDER_OPEN]
    assert judge_group(*given([(10, 9)], [(12, 25)]), settings(), new_memory())[0].tolist() == [MORE_RECORDS]
    assert order_of(waited) == [0]


def test_a_batch_is_taken_not_to_have_waited_if_that_gives_the_same_batches() -> None:
    lingered = given([(10, 6), (13, 9)], [(12, 25)], LINGERED, waits=5)
    assert order_of(lingered) == [1]


def test_a_batch_with_room_for_the_next_record_was_closed_before_that_record_came() -> None:
    batches, closes = [(10, 6), (15, 6)], [(12, 25), (30, 40)]
    assert order_of(given(batches, closes, LINGERED, in_turn=True)) == [1, NONE]
    assert order_of(given(batches, closes, LINGERED)) == [NONE, NONE], "the batches are of two partitions"


@pytest.mark.parametrize(("after", "verdict"), [(0, MORE_RECORDS), (NONE, ORDER_OPEN)])
def test_a_split_comes_after_the_batches_that_left_the_queue_before_its_parts(after: int, verdict: int) -> None:
    """A close after the split would lower the estimate from 1.0 again. A close before it has no effect after it."""
    judged, records = given([(40, 9)], [(5, 25)])
    splits = new_records(SPLIT, 1, earliest=3 * MS, latest=30 * MS, after=after, ratio=0.5)
    assert judge_group(judged._replace(splits=splits), records, settings(), new_memory())[0].tolist() == [verdict]


def test_a_close_that_was_surely_before_or_surely_after_a_batch_decides_its_verdict() -> None:
    assert verdicts([(10, 8), (30, 9)], [(12, 25)]) == [AGREED, AGREED]
    assert verdicts([(10, 9), (30, 8)], [(12, 25)]) == [MORE_RECORDS, FEWER_RECORDS]


def test_a_close_or_split_no_later_than_the_creation_of_a_batch_was_before_it() -> None:
    assert verdicts([(25, 8)], [(5, 25)]) == [FEWER_RECORDS]
    judged, records = given([(30, 9)], [(5, 25)])
    splits = new_records(SPLIT, 1, earliest=26 * MS, latest=30 * MS, after=NONE, ratio=0.5)
    assert judge_group(judged._replace(splits=splits), records, settings(), new_memory())[0].tolist() == [MORE_RECORDS]


def test_a_close_that_may_have_been_before_or_after_a_batch_leaves_its_verdict_open() -> None:
    assert verdicts([(10, 8)], [(5, 25)]) == verdicts([(10, 9)], [(5, 25)]) == [ORDER_OPEN]
    assert verdicts([(10, 7)], [(5, 25)]) == [FEWER_RECORDS], "no order gives that"


def test_the_size_of_a_batch_shows_which_estimate_the_next_ones_were_created_with() -> None:
    assert verdicts([(10, 9), (15, 9), (20, 8)], [(5, 25)]) == [ORDER_OPEN, AGREED, FEWER_RECORDS]


def test_batches_of_the_same_ms_do_not_show_each_others_order() -> None:
    assert verdicts([(10, 9), (10, 8)], [(5, 25)]) == [ORDER_OPEN, ORDER_OPEN]


def test_the_sizes_of_batches_show_one_order() -> None:
    """The close may have been before, between or after the batches."""
    for batches, created_next in (
        ([(10, 9), (15, 9)], 0), ([(10, 8), (15, 9), (20, 9)], 1), ([(10, 8), (15, 8)], NONE),
        ([(10, 9), (10, 9)], 0), ([(10, 8), (10, 9)], 1),
    ):  # fmt: skip
        assert in_one_order(batches, [(5, 25)]) == ([AGREED] * len(batches), [created_next])


def test_if_no_order_explains_one_batch_the_others_still_show_theirs() -> None:
    found = in_one_order([(10, 9), (15, 7), (40, 9)], [(5, 25), (50, 60)])
    assert found == ([AGREED, FEWER_RECORDS, AGREED], [0, NONE])


def test_a_batch_ends_early_for_no_reason_only_where_no_order_explains_it() -> None:
    assert in_one_order([(10, 9), (15, 9)], [(5, 25)], EARLY)[1] == [0], "the batches are full"
    assert in_one_order([(10, 6), (15, 9)], [(5, 25)], EARLY)[0] == [AGREED] * 2
    assert in_one_order([(10, 6), (15, 9)], [(5, 25)])[0] == [FEWER_RECORDS, AGREED]


def test_requests_to_two_brokers_do_not_show_the_order_of_their_closes() -> None:
    """The batch with the later request may have been closed before this one was created, and the other one after it."""
    assert verdicts([(10, 9)], [(12, 15), (5, 25)]) == [ORDER_OPEN]
    assert verdicts([(10, 9)], [(12, 15), (16, 25)]) == [MORE_RECORDS]


def test_more_orders_than_can_be_followed_leave_open_what_depends_on_them() -> None:
    many = [(0, 100)] * 40
    assert verdicts([(10, 8), (20, 9), (200, 9)], many) == [ORDER_OPEN] * 3
    assert verdicts([(10, 7), (20, 400)], many) == [FEWER_RECORDS, MORE_RECORDS], "whatever the order"


def test_orders_that_lead_to_the_same_estimate_are_followed_as_one() -> None:
    """There are more orders of seven closes than can be followed, and all of them lower the estimate as much."""
    assert verdicts([(30, 8)], [(5, 25)] * 7) == [FEWER_RECORDS]


def test_a_batch_that_lingered_agrees_where_every_estimate_has_room_for_it() -> None:
    many = [(0, 100)] * 40
    assert verdicts([(10, 6), (20, 9)], many, LINGERED) == [AGREED, ORDER_OPEN]


def test_working_memory_that_is_used_again_does_not_change_verdicts() -> None:
    """Both groups are judged in the same memory."""
    memory, many = new_memory(), given([(10, 8), (20, 9)], [(0, 100)] * 40)
    few = given([(10, 9), (15, 9), (20, 8)], [(5, 25)])
    for judged in (judge_group, judge_group_in_order):
        judged(*many, settings(), memory)
        assert judge_group(*few, settings(), memory)[0].tolist() == [ORDER_OPEN, AGREED, FEWER_RECORDS]


def test_in_every_order_of_closes_and_splits_the_estimate_stays_within_its_bounds() -> None:
    rng = np.random.default_rng(126)
    (settings,) = settings_of(Producer(1024, 1 << 20))
    for _ in range(200):
        ratios = rng.uniform(0.05, 1.1, 8).astype(np.float32)
        judged = group(new_records(CLOSE, 6, ratio=ratios[:6]), new_records(SPLIT, 2, ratio=ratios[6:]))
        least, greatest = estimate_bounds(judged, settings).tolist()
        estimate = np.float32(1.0)
        for at in rng.permutation(8).tolist():
            estimate = (
                estimate_after_split(TODAY, ratios[at]) if at >= 6 else updated_estimate(settings, estimate, ratios[at])
            )
            assert least <= estimate <= greatest


@pytest.mark.parametrize(("partitions", "before"), [([0, 0, 0, 0], 0), ([0, 0, 1, 1], NONE)], ids=["one", "two"])
def test_the_batch_before_another_is_of_its_partition(partitions: list[int], before: int) -> None:
    """The records of one partition come right after those of another."""
    records = new_records(RECORD, 4, partition=partitions)
    captured = new_records(BATCH, 2, first=[0, 2], end=[2, 4])
    assert batches_before(records, captured).tolist() == [NONE, before]


def test_a_record_was_appended_by_the_end_of_the_ms_of_the_next_record() -> None:
    assert latest_appends(np.array([3 * MS, 8 * MS, 5 * MS]), np.arange(3)).tolist() == [9 * MS, 9 * MS, 6 * MS]
