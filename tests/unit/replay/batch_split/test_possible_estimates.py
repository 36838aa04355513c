"""Where a captured batch ends, when the capture leaves open what was closed before it was created."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from tests.unit.replay.batch_split.producers import Producer, content_of, lanes_of
from tests.unit.replay.batch_split.test_replay import sent
from udfs.columns.arrays import Ints
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.batch_split.estimate import Producers, after_split, updated
from udfs.replay.batch_split.events import read_sent
from udfs.replay.batch_split.fidelity import NearLimit, replayed_verdicts
from udfs.replay.batch_split.possible_estimates.estimates import Closes, Splits
from udfs.replay.batch_split.possible_estimates.fidelity import (
    AGREED,
    CODES,
    EARLY,
    LINGERED,
    NOT_CUT,
    Made,
    Reason,
    estimate_bounds,
    in_one_order,
    judge,
)
from udfs.replay.batch_split.possible_estimates.order import Order, no_order, times_in
from udfs.replay.batch_split.timing import batches_of, soonest
from udfs.replay.shared.requests_in_flight import before_requests

UNKNOWN, FEWER, MORE = CODES[Reason.CLOSE_ORDER], CODES[Reason.FEWER_RECORDS], CODES[Reason.MORE_RECORDS]
NONE = np.zeros(0, np.int64)


Given = tuple[Made, Closes, Splits, Ints, Ints, int, Producers, float]


def given(batches: Sequence[tuple[int, int]], closes: Sequence[tuple[int, int]], *, lingered: bool = False) -> Given:
    """What is judged: batches by ms of creation and records, among closes by the ms between which they were.

    The earlier request is first. The estimate is 1.0, at which a batch takes eight records, and a close has it fall so
    far that it takes nine. lingered: they were sent before the next record came.
    """
    lanes = lanes_of(Producer(1024, 1 << 20))._replace(improving_step=np.full(1, 0.07, np.float32))
    end = np.cumsum([records for _, records in batches])
    content, n = content_of([100] * int(end[-1])), len(batches)
    created, records = (np.array(of) for of in zip(*batches, strict=True))
    made = Made(
        created * 1000, end - records, end - records, end, np.full(n, content[0]), np.zeros(n, np.int64),
        np.full(n, -1), np.zeros(n, np.int64), np.full(n, LINGERED if lingered else NOT_CUT),
    )  # fmt: skip
    earliest, latest = (np.array(of) * 1000 for of in zip(*closes, strict=True))
    none_before = np.minimum.accumulate(earliest[::-1])[::-1]
    unknown, ratio = np.full(len(latest), -1), np.full(len(latest), 0.1, np.float32)
    closed = Closes(latest, earliest, none_before, unknown, np.zeros(len(latest), np.int64), ratio)
    no_splits = Splits(NONE, NONE, np.zeros(0, np.float32))
    return made, closed, no_splits, content, np.zeros(len(content), np.int64), 1, lanes, 1.0


def verdicts(
    batches: Sequence[tuple[int, int]], closes: Sequence[tuple[int, int]], *, lingered: bool = False
) -> list[int]:
    """The verdicts on what is `given`."""
    return judge(*given(batches, closes, lingered=lingered))[0].tolist()


def test_a_close_that_surely_was_or_was_not_decides() -> None:
    assert verdicts([(10, 8), (30, 9)], [(12, 25)]) == [AGREED, AGREED]
    assert verdicts([(10, 9), (30, 8)], [(12, 25)]) == [MORE, FEWER]


def test_a_close_that_may_have_been_leaves_it_open() -> None:
    assert verdicts([(10, 8)], [(5, 25)]) == verdicts([(10, 9)], [(5, 25)]) == [UNKNOWN]
    assert verdicts([(10, 7)], [(5, 25)]) == [FEWER], "no order gives that"


def test_what_came_of_a_batch_tells_which_estimate_the_next_ones_were_made_with() -> None:
    assert verdicts([(10, 9), (15, 9), (20, 8)], [(5, 25)]) == [UNKNOWN, AGREED, FEWER]


def test_batches_of_the_same_ms_do_not_tell_each_others_order() -> None:
    assert verdicts([(10, 9), (10, 8)], [(5, 25)]) == [UNKNOWN, UNKNOWN]


def test_what_came_of_batches_tells_one_order() -> None:
    """Which batch was created behind each close, whose window does not tell; -1 where nothing does."""
    for batches, created_next in (
        ([(10, 9), (15, 9)], 0), ([(10, 8), (15, 9), (20, 9)], 1), ([(10, 8), (15, 8)], -1),
        ([(10, 9), (10, 9)], 0), ([(10, 8), (10, 9)], 1),
    ):  # fmt: skip
        found, order = in_one_order(*given(batches, [(5, 25)]))
        assert (found.tolist(), order[0].tolist()) == ([AGREED] * len(batches), [created_next])


def test_where_no_order_gives_a_batch_the_others_still_tell_theirs() -> None:
    found, order = in_one_order(*given([(10, 9), (15, 7), (40, 9)], [(5, 25), (50, 60)]))
    assert (found.tolist(), order[0].tolist()) == ([AGREED, FEWER, AGREED], [0, -1])


def test_a_batch_ends_early_for_no_reason_only_where_no_order_explains_it() -> None:
    def early(batches: Sequence[tuple[int, int]]) -> Given:
        made, closed, splits, content, topics, lane, lanes, share = given(batches, [(5, 25)])
        return made._replace(cut=np.full(2, EARLY)), closed, splits, content, topics, lane, lanes, share

    assert in_one_order(*early([(10, 9), (15, 9)]))[1][0].tolist() == [0], "it is full of records"
    assert in_one_order(*early([(10, 6), (15, 9)]))[0].tolist() == [AGREED] * 2
    assert in_one_order(*given([(10, 6), (15, 9)], [(5, 25)]))[0].tolist() == [FEWER, AGREED]


def test_times_keep_to_the_order_that_is_told_and_to_what_the_capture_shows() -> None:
    """Three batches, made at 0, 8 and 16 ms: the first one is closed with its request, or before the second is made."""
    rows = [sent(8 * at, 8, 900, request, 0) for at, request in enumerate((30, 35, 60))]
    found = read_sent(pa.RecordBatch.from_pylist(rows, schema=arrow_schema(SENT)), {}, {})
    at_request = times_in(no_order(3), found)
    assert at_request.close.tolist() == [30_000, 35_000, 60_000]
    assert (at_request.append // 1000).tolist() == list(range(24))
    place, rank = no_order(3)
    place[0], rank[0] = 8, 0
    told = times_in(Order(place, rank), found)
    assert told.append[7] < told.close[0] < told.append[8]
    assert told.close[1:].tolist() == [35_000, 60_000]


def test_requests_to_two_brokers_do_not_tell_the_order_of_their_closes() -> None:
    """The one whose request was later may have been closed before the batch was created, and the other one not."""
    assert verdicts([(10, 9)], [(12, 15), (5, 25)]) == [UNKNOWN]
    assert verdicts([(10, 9)], [(12, 15), (16, 25)]) == [MORE]


def test_more_orders_than_can_be_followed_leave_open_what_depends_on_them() -> None:
    many = [(0, 100)] * 40
    assert verdicts([(10, 8), (20, 9), (200, 9)], many) == [UNKNOWN] * 3
    assert verdicts([(10, 7), (20, 400)], many) == [FEWER, MORE], "whatever the order"


def test_a_batch_that_lingered_agrees_where_every_estimate_has_room_for_it() -> None:
    many = [(0, 100)] * 40
    assert verdicts([(10, 6), (20, 9)], many, lingered=True) == [AGREED, UNKNOWN]


def test_no_order_of_closes_and_splits_leaves_the_bounds_of_the_estimate() -> None:
    rng = np.random.default_rng(126)
    lanes = lanes_of(Producer(1024, 1 << 20))
    for _ in range(200):
        ratios = rng.uniform(0.05, 1.1, 8).astype(np.float32)
        closed, refused = Closes(NONE, NONE, NONE, NONE, NONE, ratios[:6]), Splits(NONE, NONE, ratios[6:])
        least, greatest = estimate_bounds(closed, refused, lanes, 1.0).tolist()
        estimate = np.float32(1.0)
        for at in rng.permutation(8).tolist():
            estimate = after_split(0, ratios[at]) if at >= 6 else updated(0, estimate, ratios[at], lanes, 0)
            assert least <= estimate <= greatest


def test_a_request_is_made_when_the_one_before_is_written_and_the_fifth_before_is_answered() -> None:
    time = np.array([10, 20, 30, 40, 50, 60, 60, 61])
    response = np.array([55, 56, 57, 58, 59, 70, 70, 71])
    connection = np.array([1, 1, 1, 1, 1, 1, 1, 2])
    assert before_requests(time, response, connection).tolist() == [0, 10, 20, 30, 40, 55, 55, 0]
    response[0] = 65  # six in flight: this client may have any number
    assert before_requests(time, response, connection).tolist() == [0, 10, 20, 30, 40, 50, 50, 0]


def test_splits_that_the_order_of_closes_or_a_record_more_decides_are_unknown_and_no_more_than_those() -> None:
    near, order, not_replayed = (CODES[of] for of in (Reason.NEAR_LIMIT, Reason.CLOSE_ORDER, Reason.SPLIT_NOT_REPLAYED))
    few = NearLimit(taken=1, refused=2)
    assert +replayed_verdicts(7, 7, 9, few) == {AGREED: 7}
    assert +replayed_verdicts(7, 3, 4, few) == {AGREED: 3, order: 1, near: 2, not_replayed: 1}
    assert +replayed_verdicts(7, 4, 9, few) == {AGREED: 4, order: 3}
    assert +replayed_verdicts(7, 10, 12, few) == {AGREED: 7, near: 1, CODES[Reason.SPLIT_NOT_CAPTURED]: 2}


def test_a_batch_is_closed_with_its_request_or_when_what_was_before_is_done() -> None:
    rows = [sent(8 * at, 8, 900, request, 0) for at, request in enumerate((9, 30, 60))]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(SENT))
    found = read_sent(batch, {}, {})
    times = times_in(no_order(3), found)
    told, at_once = (batches_of(found, of, 10_000) for of in (times, soonest(found, times, 10_000)))
    ms = 1000
    assert (told.closed // ms).tolist() == [9, 30, 60]
    assert (told.delay // ms).tolist() == [0, 13, 33]
    assert told.round_trip.tolist() == [500, 500, 500]
    assert (at_once.delay // ms).tolist() == [0, 0, 3], "they were ready within the ms 8, 16 and 26"
    assert ((at_once.closed + at_once.round_trip) // 100).tolist() == [95, 305, 605], "each is answered when it was"
