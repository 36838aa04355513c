"""A window counts only what is sent in it, and begins with the estimate that all batches before it have led to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_TIMELINE
from tests.unit.replay.batch_split.producers import Producer, Row, lanes_of, sent, sent_batch, unpacked
from udfs.replay.batch_split.replay import STRETCH_RECORDS, replay_splits
from udfs.replay.shared.window import Window

B, F, T = BATCH_SPLIT, FIDELITY, BATCH_SPLIT_TIMELINE
LANES = lanes_of(Producer(1024, 1500, 100), Producer(4096, 1500, 100), names=("captured", "producer.batch.size=4KiB"))
COUNTED = (
    B.records, B.batches, B.over_limit, B.splits, B.split_batches, B.failed_batches, B.bytes_sent, B.bytes_resent,
    B.recoveries,
)  # fmt: skip


def traffic() -> list[Row]:
    """Thirty batches; each tenth is larger than the limit, and comes again in two parts."""
    rows, first = [], 0
    for number in range(30):
        is_large = number % 10 == 7
        rows.append(sent(first, 8, 2000 if is_large else 500 + 10 * number, first + 9, 10 if is_large else 0))
        if is_large:
            rows += [sent(first, 4, 1000, first + 11, 0), sent(first + 4, 4, 1010, first + 12, 0)]
        first += 20
    return rows


ROWS = traffic()
LAST_US = ROWS[-1]["request_time"]
CUTS = [90_000, 149_900, 150_300, 300_000, 451_234]


def gold_in(begin: int | None, end: int | None, most: int = STRETCH_RECORDS) -> dict[str, list[Row]]:
    whole = Window()
    window = Window(whole.begin if begin is None else begin, whole.end if end is None else end)
    return unpacked(replay_splits([sent_batch(ROWS)], replace(LANES, window=window), "run", most))


def counts(found: dict[str, list[Row]]) -> Counter[tuple[Any, ...]]:
    """All counts: by lane and topic, and by metric of fidelity except `splits_replayed`."""
    sums = Counter[tuple[Any, ...]]()
    for row in found.get(B.name, []):
        sums.update({(row[B.scenario], row[B.topic], name): row[name] for name in COUNTED})
    for row in found[F.name]:
        if row[F.metric] != "splits_replayed":
            sums.update({(row[F.metric], c): row[c] for c in (F.checked, F.agreed, F.unknown)})
    return +sums


@pytest.mark.parametrize("most", [50, STRETCH_RECORDS])
def test_a_window_over_everything_is_no_window(most: int) -> None:
    assert gold_in(0, LAST_US + 1_000_000, most) == gold_in(None, None, most)


@pytest.mark.parametrize("most", [50, STRETCH_RECORDS])
@pytest.mark.parametrize("cut", CUTS)
def test_the_counts_before_a_time_and_from_it_on_add_up(cut: int, most: int) -> None:
    before, after, whole = (gold_in(begin, end, most) for begin, end in ((None, cut), (cut, None), (None, None)))
    assert counts(before) + counts(after) == counts(whole)
    assert counts(before)["captured", "t", B.batches]
    assert counts(after)["captured", "t", B.batches]


def test_the_estimate_of_a_window_is_the_one_that_all_batches_before_it_have_led_to() -> None:
    estimates = {row[B.scenario]: row[B.final_estimate] for row in gold_in(None, None)[B.name]}
    in_window = gold_in(CUTS[-1], None)
    assert {row[B.scenario]: row[B.final_estimate] for row in in_window[B.name]} == estimates
    begun_there = unpacked(
        replay_splits([sent_batch([row for row in ROWS if row["append_from"] >= 460_000])], LANES, "run")
    )
    warm, cold = (
        next(row[T.estimated_ratio] for row in found[T.name] if row[T.first_batch] == 0)
        for found in (in_window, begun_there)
    )
    assert warm != pytest.approx(cold, rel=0.01), "without the batches before, it begins at 1.0"


def test_splits_per_second_count_only_the_time_in_the_window() -> None:
    """The third batch to split is sent at 549 ms, and the last request is at 589 ms."""
    (row,) = [row for row in gold_in(500_000, LAST_US + 1)[B.name] if row[B.scenario] == "captured"]
    seconds = (LAST_US - 500_000) / 1_000_000
    assert row[B.batch_split_rate] == pytest.approx(row[B.splits] / seconds)
