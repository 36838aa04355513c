"""When a reader starts, and when its batches are produced, in a replication of its lanes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from schemas.tables.values import CONSUMER
from tests.unit.replay.fetch_max_bytes.captured_reader import (
    BEGIN,
    MS,
    PARTITIONS,
    batch_rows,
    catch_up,
    lanes_of,
    read_row,
    reads_of,
)
from tests.unit.replay.fetch_max_bytes.closed_units import PACE, Part, unit_of
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.fetch_max_bytes.closed_loop.drawn_times import (
    APART_US,
    MOST_US,
    SETTLED_US,
    DrawnTimes,
    ReaderStart,
    at_other_pace,
    start_of_reader,
    started_at_other_times,
)
from udfs.replay.fetch_max_bytes.closed_loop.events import CapturedFetches
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent, intent_of
from udfs.replay.fetch_max_bytes.closed_loop.state import STOP, Unit
from udfs.replay.fetch_max_bytes.events import logs_and_reads
from udfs.replay.fetch_max_bytes.events import reads_of as reads_of_rows
from udfs.replay.fetch_max_bytes.replay import groups_of_readers, note_for_closed_loop
from udfs.replay.fetch_max_bytes.settings import Reader
from udfs.replay.shared import lanes

HORIZON = 20_000 * MS
AS_CAPTURED = DrawnTimes(1.0, 1.0, np.zeros(3))


def captured_intent(
    produced_at: int = ALWAYS, stays_us: int = 0, opens_session: bool = True, moves_after_us: int = NEVER
) -> Intent:
    """A catch-up of 32 batches in 16 fetches, 10 ms apart.

    produced_at: when all batches were produced (us). stays_us: how long the reader stays afterwards. opens_session:
    whether the first fetch opens a session. moves_after_us: by how much later the ninth fetch comes, which is then the
    first to another broker; NEVER: the reader does not move.
    """
    moves = moves_after_us != NEVER
    captured, rows = CapturedFetches(), catch_up(reconnects=8 if moves else None, broker="2")
    rows = [row | {"opens_session": row["opens_session"] and opens_session} for row in rows]
    for row in rows[8 * PARTITIONS :] if moves else ():
        for time in ("position", "request_time", "response_time"):
            row[time] += moves_after_us
    if stays_us:
        late = read_row(16, 0, 0, 8, 0) | {"response_record_bytes": 0}
        rows.append(late | {"request_time": BEGIN + 150 * MS + stays_us, "response_time": BEGIN + 152 * MS + stays_us})
    for group in groups_of_readers(reads_of([*batch_rows(), *rows]).to_batches()):
        for _, parts in group:
            for logs, reads in map(logs_and_reads, parts):
                captured.note_logs(logs)
                note_for_closed_loop(captured, reads_of_rows(reads), reads)
    intent = intent_of(captured, Reader("app", "10.0.0.1", CONSUMER), lanes_of(lanes.AS_CAPTURED))
    assert intent is not None
    batches = intent.unit.batches.copy()
    batches["visible_at"][:-1] = produced_at
    return intent._replace(unit=intent.unit._replace(batches=batches))


def one_partition(times_ms: Sequence[int], begin_ms: int, horizon: int = HORIZON) -> Unit:
    """A reader of one partition whose batches come at these times."""
    unit = unit_of([Part([100] * len(times_ms), [MS * at for at in times_ms])], [1], horizon, PACE)
    unit.nodes["begin"] = begin_ms * MS
    unit.changes["time"] = begin_ms * MS
    return unit


def start_of(unit: Unit, first_ms: int = 2000, leaves: bool = False, apart_us: float = 0.0) -> ReaderStart:
    """The start of a reader that has one partition on each node and first asks the nodes in their order."""
    node = np.arange(len(unit.nodes))
    of_changes = np.searchsorted(unit.nodes["end_change"], np.arange(len(unit.changes)), side="right")
    begin = unit.nodes["begin"].copy()
    return ReaderStart(
        first_ms * MS, leaves, apart_us, begin - begin.min() <= SETTLED_US, node, begin, node, of_changes
    )


def visible_ms(unit: Unit) -> list[float]:
    """When each batch can be read, in ms."""
    return (unit.batches["visible_at"][:-1] / MS).tolist()


def test_a_reader_whose_first_records_were_there_for_longer_than_it_waits_starts_in_the_capture() -> None:
    for opens_session in (True, False):
        start = start_of_reader(captured_intent(BEGIN - 2_000 * MS, opens_session=opens_session))
        assert start is not None
        assert (start.first_batch, start.leaves_when_read) == (BEGIN - 2_000 * MS, True)


@pytest.mark.parametrize("produced_at", [BEGIN - 400 * MS, BEGIN + 5 * MS])
def test_a_reader_whose_first_records_have_just_come_may_have_been_there_before(produced_at: int) -> None:
    assert start_of_reader(captured_intent(produced_at)) is None


def test_a_new_session_shows_the_start_if_it_is_not_known_when_the_first_batches_were_produced() -> None:
    start = start_of_reader(captured_intent(ALWAYS))
    assert start is not None
    assert start.first_batch == BEGIN
    assert start_of_reader(captured_intent(ALWAYS, opens_session=False)) is None


def test_a_reader_that_stays_after_its_last_records_waits_for_more() -> None:
    waits, leaves = (start_of_reader(captured_intent(BEGIN - 2_000 * MS, SETTLED_US + more)) for more in (MS, -MS))
    assert (waits and waits.leaves_when_read, leaves and leaves.leaves_when_read) == (False, True)


def test_the_time_between_first_fetches_is_averaged_with_that_of_the_lab() -> None:
    start = start_of_reader(captured_intent())
    assert start is not None
    assert start.apart_us == APART_US


def test_a_broker_that_is_asked_a_second_later_does_not_belong_to_the_start() -> None:
    of_starts = [start_of_reader(captured_intent(moves_after_us=after)) for after in (500 * MS, 1000 * MS)]
    assert [start and (start.is_asked.tolist(), round(start.apart_us)) for start in of_starts] == [
        ([True, True], (APART_US + 580 * MS) // 2), ([True, False], APART_US),
    ]  # fmt: skip


def test_without_draws_a_captured_reader_is_as_captured() -> None:
    intent = captured_intent(BEGIN - 2_000 * MS)
    start = start_of_reader(intent)
    assert start is not None
    again = started_at_other_times(intent.unit, start, AS_CAPTURED)
    for name, captured, of_again in zip(Unit._fields, intent.unit, again, strict=True):
        assert captured.tolist() == of_again.tolist(), name


@pytest.mark.parametrize(("longer", "begin_ms"), [(2.0, 6000), (0.5, 3000), (1.0, 4000)])
def test_the_time_from_the_first_batch_to_the_start_is_drawn_and_that_to_each_batch(
    longer: float, begin_ms: int
) -> None:
    unit = one_partition((2000, 2500, 3000), 4000)
    start = start_of(unit)
    again = started_at_other_times(unit, start, AS_CAPTURED._replace(start=longer))
    assert again.nodes["begin"].tolist() == [begin_ms * MS]
    assert again.changes["time"].tolist() == [begin_ms * MS] * 2
    assert again.nodes["horizon"].tolist() == [HORIZON]
    again = started_at_other_times(unit, start, AS_CAPTURED._replace(production=longer))
    assert visible_ms(again) == [2000, 2000 + 500 * longer, 2000 + 1000 * longer]


def test_times_longer_than_any_in_the_lab_differ_by_no_more_than_the_longest_there() -> None:
    first, late = 5 * MS, 5 * MS + 3 * MOST_US
    assert at_other_pace(np.array([ALWAYS, 4 * MS, first, late]), first, 1.5).tolist() == [
        ALWAYS, 4 * MS, first, late + MOST_US // 2,
    ]  # fmt: skip


def test_a_start_that_took_longer_than_any_in_the_lab_differs_by_no_more_than_the_longest_there() -> None:
    unit = one_partition((2000,), 2000 + 3 * MOST_US // MS, horizon=10 * MOST_US)
    start = start_of(unit)
    again = started_at_other_times(unit, start, AS_CAPTURED._replace(start=1.5))
    assert again.nodes["begin"].tolist() == [2000 * MS + 3 * MOST_US + MOST_US // 2]


def test_changes_after_the_start_keep_their_times_but_never_come_before_the_changes_of_the_start() -> None:
    part = Part([100], moves=[(4900 * MS, 0), (5100 * MS, 0), (9000 * MS, 0)])
    unit = unit_of([part], [], HORIZON, PACE)
    unit.nodes["begin"] = unit.changes["time"][0] = 4000 * MS
    start = start_of(unit)
    of_starts = [started_at_other_times(unit, start, AS_CAPTURED._replace(start=longer)) for longer in (0.5, 1.25, 2.0)]
    assert [(of.changes["time"] // MS).tolist() for of in of_starts] == [
        [3000, 3900, 5100, 9000], [4500, 5400, 5400, 9000], [6000, 6900, 6900, 9000],
    ]  # fmt: skip


def test_a_partition_that_is_asked_for_later_is_not_asked_for_before_the_reader_starts() -> None:
    unit = one_partition((2000, 8000), 4000)
    start = start_of(unit)._replace(requested_at=np.array([5500 * MS]))
    again = started_at_other_times(unit, start, AS_CAPTURED._replace(start=3.5))
    assert again.nodes["begin"].tolist() == [9000 * MS]
    assert again.partitions["backlog_end"].tolist() == [2]


def test_a_reader_that_leaves_when_it_has_read_all_finds_all_in_every_run_and_stays_as_long() -> None:
    unit = one_partition((2000, 2500, 3000), 4000, horizon=5000 * MS)
    start = start_of(unit, leaves=True)
    again = started_at_other_times(unit, start, DrawnTimes(0.5, 3.0, np.zeros(1)))
    assert visible_ms(again) == [2000, 2250, 2500]
    assert (again.nodes["begin"].tolist(), again.nodes["horizon"].tolist()) == ([3000 * MS], [4000 * MS])
    assert again.partitions["backlog_end"].tolist() == [3]


def test_a_reader_that_starts_late_stays_for_half_its_time_at_least() -> None:
    unit = one_partition((2000,), 4000, horizon=5000 * MS)
    start = start_of(unit)
    again = started_at_other_times(unit, start, AS_CAPTURED._replace(start=2.0))
    assert (again.nodes["begin"].tolist(), again.nodes["horizon"].tolist()) == ([6000 * MS], [6500 * MS])


def test_the_backlog_is_what_has_been_produced_by_the_start() -> None:
    unit = one_partition((2000, 3000, 5000, 7000), 4000)
    start = start_of(unit)
    starts = [started_at_other_times(unit, start, AS_CAPTURED._replace(start=longer)) for longer in (0.25, 1.0, 2.0)]
    assert [of.partitions["backlog_end"].tolist() for of in starts] == [[1], [2], [3]]


def brokers(begins_ms: Sequence[int]) -> Unit:
    """A reader of one partition at each broker, which it first asks at these times."""
    unit = unit_of([Part([100], node=node) for node in range(len(begins_ms))], [], HORIZON, PACE)
    unit.nodes["begin"] = unit.changes["time"] = [at * MS for at in begins_ms]
    return unit


def test_any_broker_may_be_asked_first_and_its_changes_move_with_its_first_fetch() -> None:
    unit = brokers((4000, 4200, 5500))
    start = start_of(unit, 4000, apart_us=100.0 * MS)
    again = started_at_other_times(unit, start, AS_CAPTURED._replace(apart=np.array([3.0, 0.5, 9.0])))
    assert again.nodes["begin"].tolist() == [4250 * MS, 4000 * MS, 5500 * MS]  # the last one was not known at the start
    assert again.changes["time"].tolist() == again.nodes["begin"].tolist()


def test_batches_of_a_broker_that_is_first_asked_after_the_start_keep_their_times() -> None:
    parts = [Part([100], [3000 * MS]), Part([100, 100], [3000 * MS, 6000 * MS], node=1)]
    unit = unit_of(parts, [], HORIZON, PACE)
    unit.nodes["begin"] = unit.changes["time"] = [4000 * MS, 5500 * MS]
    again = started_at_other_times(unit, start_of(unit), AS_CAPTURED._replace(production=1.5))
    assert visible_ms(again) == [3500, 3000, 6000]
    assert again.partitions["backlog_end"].tolist() == [1, 2]


def test_the_draws_of_a_broker_depend_on_when_it_was_asked_and_not_on_its_place() -> None:
    drawn = AS_CAPTURED._replace(start=1.5, apart=np.array([1.0, 2.0, 3.0]))
    begins = list[dict[int, int]]()
    for order in ([0, 1, 2], [2, 0, 1]):
        unit = brokers([(4000, 4200, 4700)[node] for node in order])
        start = start_of(unit, apart_us=100.0 * MS)
        start = start._replace(rank=np.array(order))
        again = started_at_other_times(unit, start, drawn)
        begins.append(dict(zip(order, again.nodes["begin"].tolist(), strict=True)))
    assert begins[0] == begins[1]


def test_a_stop_at_the_start_ends_as_much_later_as_it_begins() -> None:
    unit = one_partition((2000,), 4000)
    unit.changes["partition"][0], unit.changes["to"][0] = STOP, 4300 * MS
    start = start_of(unit)
    again = started_at_other_times(unit, start, AS_CAPTURED._replace(start=1.5))
    assert (again.changes["time"][0], again.changes["to"][0]) == (5000 * MS, 5300 * MS)


def test_the_same_draws_give_the_same_times() -> None:
    unit, drawn = one_partition((1000, 1500, 4000), 1500), DrawnTimes(1.3, 0.8, np.ones(1))
    start = start_of(unit, 1000)
    one, other = (started_at_other_times(unit, start, drawn) for _ in range(2))
    assert all(a.tolist() == b.tolist() for a, b in zip(one, other, strict=True))
