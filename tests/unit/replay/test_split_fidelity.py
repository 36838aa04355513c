"""Where a captured batch ends, when the capture leaves open what was closed before it was created."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SENT
from tests.unit.replay.producers import Producer, content_of, lanes_of
from tests.unit.replay.test_batch_split import sent
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.splits.compression_estimate import after_split, updated
from udfs.replay.splits.request_order import before_requests
from udfs.replay.splits.sent_batches import read_sent
from udfs.replay.splits.split_fidelity import AGREED, CODES, Closes, Made, Reason, Splits, estimate_bounds, judge
from udfs.replay.splits.split_verdicts import NearLimit, replayed_verdicts

UNKNOWN, FEWER, MORE = CODES[Reason.CLOSE_ORDER], CODES[Reason.FEWER_RECORDS], CODES[Reason.MORE_RECORDS]
NONE = np.zeros(0, np.int64)


def verdicts(
    batches: Sequence[tuple[int, int]], closes: Sequence[tuple[int, int]], *, lingered: bool = False
) -> list[int]:
    """Of batches by ms of creation and records, among closes by the ms between which they were, the earlier request
    first. The estimate is 1.0, at which a batch takes eight records, and a close has it fall so far that it takes nine.
    lingered: they were sent before the next record came.
    """
    lanes = lanes_of(Producer(1024, 1 << 20))._replace(improving_step=np.full(1, 0.07, np.float32))
    end = np.cumsum([records for _, records in batches])
    content, n = content_of([100] * int(end[-1])), len(batches)
    created, records = (np.array(of) for of in zip(*batches, strict=True))
    made = Made(
        created * 1000, end - records, end, np.full(n, content[0]), np.zeros(n, np.int64), np.full(n, -1),
        np.zeros(n, np.int64), np.full(n, int(lingered)),
    )  # fmt: skip
    earliest, latest = (np.array(of) * 1000 for of in zip(*closes, strict=True))
    none_before = np.minimum.accumulate(earliest[::-1])[::-1]
    closed = Closes(latest, earliest, none_before, np.full(len(latest), 0.1, np.float32))
    no_splits = Splits(NONE, NONE, np.zeros(0, np.float32))
    found, _ = judge(made, closed, no_splits, content, np.zeros(len(content), np.int64), 1, lanes, 1.0)
    return found.tolist()


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
        closed, refused = Closes(NONE, NONE, NONE, ratios[:6]), Splits(NONE, NONE, ratios[6:])
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
    found = read_sent(batch, 10_000, {}, {})
    assert found.batches.delay.tolist() == [1_000, 14_000, 34_000]
    assert found.batches.round_trip.tolist() == [500, 500, 500]
    assert found.at_once.delay.tolist() == [0, 0, 4_000], "they were ready at 8, 16 and 26 ms"
    assert found.at_once.round_trip.tolist() == [1_500, 14_500, 30_500], "each is answered when it was"
