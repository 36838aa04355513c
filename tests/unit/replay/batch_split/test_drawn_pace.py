"""The range of a producer's results when its pace and that of its brokers are drawn anew."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.gold_splits import BATCH_SPLIT_RANGES
from tests.unit.replay.batch_split.producers import Producer, Row, gold_rows, lanes_of, sent, sent_batch, unpacked
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.drawn_pace import drawn_places, moment_in
from udfs.replay.batch_split.replay import replay_splits
from udfs.replay.shared.replications import NEAR_BLOCKS

R = BATCH_SPLIT_RANGES
BATCH, BATCHES = 10, 60
LANES = lanes_of(Producer(1300, 2000, 5), Producer(5000, 2000, 5), names=("captured", "larger"))


def rows_of(behind_ms: int, codec: str = "gzip") -> list[Row]:
    """A producer whose batches of ten records wait longer and longer for the client to send them."""
    return [
        sent(at * BATCH, BATCH, 600, (at + 1) * (BATCH + behind_ms), 0, **{"codec": codec}) for at in range(BATCHES)
    ]


def ranges(rows: list[Row]) -> dict[tuple[str, str], Row]:
    """The rows of `batch_split_ranges` by lane and metric."""
    return {(row[R.scenario], row[R.metric]): row for row in gold_rows(rows, LANES)[R.name]}


def test_every_lane_has_a_range_of_each_figure_with_its_value_at_the_captured_pace() -> None:
    found, gold = ranges(rows_of(9)), gold_rows(rows_of(9), LANES)["batch_split"]
    assert {metric for _, metric in found} == {"splits", "split_rate", "batches", "bytes_resent"}
    assert {row[R.replications] for row in found.values()} == {20}
    assert all(row[R.p10] <= row[R.p50] <= row[R.p90] for row in found.values())
    assert {(row["scenario"], "batches"): row["batches"] for row in gold} == {
        key: row[R.value] for key, row in found.items() if key[1] == "batches"
    }


def test_another_pace_changes_the_number_of_batches_but_causes_no_split() -> None:
    found = ranges(rows_of(9))
    assert not found["captured", "batches"][R.is_exact]
    assert found["captured", "splits"][R.is_exact]
    assert found["captured", "splits"][R.p90] == 0


def test_the_draws_do_not_depend_on_how_rows_are_cut_into_arrow_batches() -> None:
    rows = rows_of(9)
    whole = gold_rows(rows, LANES)[R.name]
    assert whole == unpacked(replay_splits([sent_batch([row]) for row in rows], LANES, "run"))[R.name]


@pytest.mark.parametrize(("count", "batches"), [(1, 1), (7, 7), (25_000, 1_400), (100, 1)])
def test_a_block_of_times_is_drawn_from_near_its_own_place_and_the_first_one_stays(count: int, batches: int) -> None:
    place = drawn_places(count, batches, np.random.default_rng(7))
    assert len(place) == count
    assert 0 <= place.min() <= place.max() < count
    length = int(np.argmax(np.append(np.diff(place) != 1, True))) + 1
    assert place[:length].tolist() == list(range(length))
    assert np.abs(place - np.arange(count)).max() <= (NEAR_BLOCKS + 1) * length


def test_a_window_has_the_same_records_at_any_pace() -> None:
    times, drawn = np.array([10, 20, 30, 40]), np.array([10, 15, 70, 75])
    assert [moment_in(times, drawn, moment) for moment in (5, 25, 31, 100, NEVER)] == [5, 20, 71, 135, NEVER]
