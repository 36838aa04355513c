"""The range in which a lane's outcome lies when the pace of clients and brokers is drawn anew."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.gold import FETCH_RANGES
from tests.packed import unpack
from tests.unit.replay.fetch_max_bytes.captured_reader import (
    BEGIN,
    MS,
    PARTITIONS,
    SIZE,
    Rows,
    batch_rows,
    catch_up,
    lanes_of,
    read_row,
    reads_of,
)
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.records import new_records
from udfs.replay.fetch_max_bytes.closed_loop.drawn_pace import (
    draw_blocks,
    drawn_rows,
    rules_that_differ,
)
from udfs.replay.fetch_max_bytes.closed_loop.settings import RULES
from udfs.replay.fetch_max_bytes.closed_loop.state import LOG_BATCH, NODE, POINT, READ_PARTITION, READING_CHANGE, Unit
from udfs.replay.fetch_max_bytes.replay import replay_fetches
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.replay.shared.pace_of_runs import STRETCHES
from udfs.replay.shared.replications import FEWEST

R = FETCH_RANGES
BATCHES = 40
LANES = lanes_of(AS_CAPTURED, SIZE, SIZE)


def ranges(reads: Rows) -> dict[tuple[str, str], dict[str, float]]:
    """The rows of `fetch_ranges` by lane and figure."""
    table = reads_of([*batch_rows(batches=BATCHES), *reads])
    packed = list(replay_fetches(table.to_batches(), LANES, "run"))
    rows = pa.Table.from_batches(unpack([batch.filter(pc.equal(batch["table"], R.name)) for batch in packed]))
    return {(row[R.scenario], row[R.metric]): row for row in rows.to_pylist()}


def read_at(pace_ms: list[int]) -> Rows:
    """A catch-up whose fetch number n comes pace_ms[n] after the one before."""
    at = BEGIN + MS * np.cumsum([0, *pace_ms])
    return [
        row | {"position": int(at[row["exchange_no"]]), "request_time": int(at[row["exchange_no"]]),
               "response_time": int(at[row["exchange_no"]]) + 2 * MS}
        for row in catch_up(batches=BATCHES)
    ]  # fmt: skip


FETCHES = len({row["exchange_no"] for row in catch_up(batches=BATCHES)})


def test_results_of_rules_alone_are_exact_and_times_have_a_range_even_at_a_steady_pace() -> None:
    """One capture shows one run: the next one is faster or slower."""
    found = ranges(read_at([10] * FETCHES))
    assert all(found[lane, "held_bytes"][R.is_exact] for lane in LANES.names)
    took = found["lane 1", "catch_up_ms"]
    assert 0.5 * took[R.value] < took[R.p10] < took[R.p50] < took[R.p90] < 2 * took[R.value]
    assert {row[R.replications] for row in found.values()} == {20}


def test_the_range_is_wider_where_the_pace_changes() -> None:
    """The second half of the capture is twenty times as slow."""
    steady, changing = (
        ranges(read_at(paces))["lane 1", "catch_up_ms"]
        for paces in ([21] * FETCHES, [2] * (FETCHES // 2) + [40] * (FETCHES - FETCHES // 2))
    )
    assert changing[R.p90] - changing[R.p10] > steady[R.p90] - steady[R.p10]


def test_lanes_with_the_same_settings_have_the_same_range() -> None:
    found = ranges(read_at([10, 40] * (FETCHES // 2)))
    for metric in ("catch_up_ms", "longest_wait_ms", "requests", "held_bytes"):
        one, other = (found[lane, metric] for lane in ("lane 1", "lane 2"))
        assert [one[c] for c in (R.value, R.p10, R.p50, R.p90)] == [other[c] for c in (R.value, R.p10, R.p50, R.p90)]


def test_a_reader_that_gets_no_records_is_replayed_only_a_few_times() -> None:
    waiting = [
        read_row(fetch, partition, partition, BATCHES, 0, BATCHES) | {"response_record_bytes": 0}
        for fetch in range(30)
        for partition in range(PARTITIONS)
    ]
    found = ranges(waiting)
    assert {row[R.replications] for row in found.values()} == {FEWEST}


def test_lanes_whose_limits_nothing_reaches_are_replayed_as_one() -> None:
    unit = Unit(*(np.zeros(0, kind) for kind in (READ_PARTITION, LOG_BATCH, READING_CHANGE, NODE, POINT, POINT)))
    unit = unit._replace(batches=new_records(LOG_BATCH, 3, bytes_before=[0, 100, 250]))
    rules = np.zeros((1, 4), RULES)
    rules["limit"] = [100, 251, 1000, 100]
    (distinct,), of_lane = rules_that_differ([rules], [unit])
    assert distinct["limit"].tolist() == [[100, 251]]
    assert of_lane.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 1000])
def test_as_many_times_as_captured_are_drawn_from_the_beginning_and_from_one_stretch(count: int) -> None:
    places = draw_blocks(count, np.full(1, 7))
    assert len(places) == count
    assert places[:1].tolist() == [0] * min(count, 1)
    drawn = places[places >= max(count // STRETCHES, 1) ** 0.5]
    assert not len(drawn) or drawn.max() - drawn.min() <= max(count // STRETCHES, STRETCHES)


def test_a_node_of_which_nothing_is_drawn_keeps_its_own_times() -> None:
    node = np.array([0] * 300 + [1])
    assert 300 in drawn_rows(node, np.arange(2), True, np.full(1, 1))
    apart = drawn_rows(node, np.arange(2), False, np.full(1, 1))
    assert np.bincount(node[apart]).tolist() == [300, 1]
