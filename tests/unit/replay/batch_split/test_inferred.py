"""Settings that nobody states are inferred from a producer's batches and from brokers' responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.steps import SENT
from tests.unit.replay.batch_split.producers import (
    KAFKA_LIMIT,
    KAFKA_SIZE,
    Producer,
    Row,
    gold_rows,
    sent,
    settings_of,
)
from tests.unit.replay.batch_split.test_order import SETTINGS, produced
from udfs.replay.batch_split.estimate import has_room, record_bytes
from udfs.replay.batch_split.inferred import Answers
from udfs.replay.batch_split.settings import NOT_STATED, SplitLanes, TopicLimits
from udfs.replay.shared.batch_size_ranges import UNBOUNDED, is_below, roundest_number
from udfs.replay.shared.window import WHOLE, Window
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

LATER_MS = 100_000
"""Batches are sent from this time on, long after all records were made: no batch was sent before it was full."""


def replayed(
    rows: list[Row], batch_size: int = NOT_STATED, limit: int = NOT_STATED, window: Window = WHOLE
) -> dict[str, list[Row]]:
    """The gold rows, by table, of a replay of these rows of SENT. No other settings are stated."""
    limits = TopicLimits(({},), np.full(1, NOT_STATED), np.full(1, limit), KAFKA_LIMIT)
    settings = settings_of(Producer(batch_size, 0, 5))
    return gold_rows(rows, SplitLanes(("captured",), settings, limits, KAFKA_SIZE, window=window))


def filled(batch_size: int) -> Iterator[list[int]]:
    """The sizes of the records of uncompressed batches, each as full as possible. The last batch is left out."""
    batch, uncompressed = list[int](), 0
    for content in np.random.default_rng(1).integers(50, 500, 4000).tolist():
        size = record_bytes(content, len(batch), len(batch))
        if not has_room(len(batch), RECORD_BATCH_OVERHEAD + uncompressed, batch_size, size):
            yield batch
            batch, uncompressed = [], 0
            size = record_bytes(content, 0, 0)
        batch.append(content)
        uncompressed += size


def plain(batches: list[list[int]], *, at_once: bool = False, **more: Any) -> list[Row]:
    """Rows of uncompressed batches, one record per ms. Each is sent with its last record if `at_once`, otherwise after
    all records were made.
    """
    rows, made = list[Row](), 0
    for number, contents in enumerate(batches):
        pause = 1000 * number if at_once else 0
        size = sum(record_bytes(content, at, at) for at, content in enumerate(contents))
        request = made + pause + len(contents) if at_once else LATER_MS + number
        rows.append(
            sent(made + pause, len(contents), RECORD_BATCH_OVERHEAD + size, request, 0, codec="none",
                 base_sequence=made, record_sizes=contents, uncompressed_bytes=size, **more)
        )  # fmt: skip
        made += len(contents)
    return rows


def size_of(rows: list[Row], batch_size: int = NOT_STATED) -> tuple[int, bool]:
    """batch.size of the captured lane, and whether it is inferred from the capture."""
    (lane,) = replayed(rows, batch_size)[BATCH_SPLIT.name]
    return lane[BATCH_SPLIT.batch_size], lane[BATCH_SPLIT.is_batch_size_told]


def verdicts(found: dict[str, list[Row]], metric: str) -> tuple[int, int, int]:
    """How many cases of a metric were checked, agreed and are unknown."""
    f = FIDELITY
    (row,) = [row for row in found[f.name] if row[f.metric] == metric]
    return row[f.checked], row[f.agreed], row[f.unknown]


@pytest.mark.parametrize(
    ("taken", "refused", "limit"),
    [(900, 1000, 900), (999, 1000, 999), (1000, 1000, None), (1001, 1000, None), (900, UNBOUNDED, 1024)],
)
def test_a_limit_is_at_least_what_was_taken_and_below_what_was_refused(
    taken: int, refused: int, limit: int | None
) -> None:
    """A batch of max.message.bytes is taken. No limit explains a batch of a size that was both taken and refused."""
    answers = Answers(np.array([taken]), np.array([refused]))
    assert answers.limits(["t"], 500) == ({} if limit is None else {"t": limit})


@pytest.mark.parametrize("batch_size", [4096, 10_000, KAFKA_SIZE, 38_000, 131_072])
def test_full_batches_show_the_batch_size(batch_size: int) -> None:
    assert size_of(plain(list(filled(batch_size)))) == (batch_size, True)


@pytest.mark.parametrize("seed", range(6))
def test_compressed_batches_show_the_batch_size_though_it_is_unknown_when_each_was_closed(seed: int) -> None:
    assert size_of(produced(seed)) == (SETTINGS.batch_size, True)


@pytest.mark.parametrize(("batch_size", "inferred"), [(10_000, KAFKA_SIZE), (20_000, 32_768)])
def test_batches_that_ended_before_they_were_full_show_the_default_or_the_least_power_of_two(
    batch_size: int, inferred: int
) -> None:
    assert size_of(plain(list(filled(batch_size)), at_once=True)) == (inferred, True)


def test_batches_of_one_record_that_left_the_next_one_behind_show_that_batching_is_off() -> None:
    """With batch.size=0 no batch takes a second record, although the next one comes before the batch is sent."""
    assert size_of(plain([[200]] * 50)) == (0, True)


def test_batches_of_one_record_that_were_sent_before_the_next_one_came_show_the_default() -> None:
    """An application that flushes after each send leaves such batches."""
    assert size_of(plain([[200]] * 50, at_once=True)) == (KAFKA_SIZE, True)


def test_a_few_batches_of_several_records_show_that_batching_is_on() -> None:
    assert size_of(plain([[200]] * 45 + [[200, 200]] * 5)) == (KAFKA_SIZE, True)


def test_a_stated_batch_size_goes_before_what_batches_show() -> None:
    assert size_of(plain(list(filled(38_000))), batch_size=20_000) == (20_000, False)


def test_batches_that_are_not_compressed_are_judged_though_their_producer_began_before_the_capture() -> None:
    batches = list(filled(10_000))
    found = replayed(plain(batches, began_before=True))
    assert verdicts(found, "batches") == (len(batches), len(batches), 0)


@pytest.mark.parametrize(
    ("taken", "refused", "stated", "limit"),
    [
        ([900], [], NOT_STATED, (KAFKA_LIMIT, False)),
        ([39_000, 2000], [40_100, 50_000], NOT_STATED, (40_000, True)),
        ([39_000], [40_100], 39_500, (39_500, False)),
        ([1_500_000], [], NOT_STATED, (1 << 21, True)),
        ([50_000], [40_100], NOT_STATED, (KAFKA_LIMIT, False)),
    ],
    ids=["the default", "between taken and refused", "stated", "more than the default was taken", "it has changed"],
)
def test_responses_show_the_limit_of_a_topic(
    taken: list[int], refused: list[int], stated: int, limit: tuple[int, bool]
) -> None:
    answers = [*((size, 0) for size in taken), *((size, 10) for size in refused)]
    rows = [sent(8 * at, 8, size, 1000 + at, error) for at, (size, error) in enumerate(answers)]
    assert limit_of(rows, stated) == limit


def test_a_limit_that_changed_is_the_one_of_the_window() -> None:
    answers = ((50_000, 0), (39_000, 0), (40_100, 10))
    rows = [sent(8 * at, 8, size, 1000 + at, error) for at, (size, error) in enumerate(answers)]
    later = Window(begin=rows[1][SENT.request_time])
    assert limit_of(rows, window=later) == (40_000, True)


def test_a_limit_with_which_a_topic_was_created_ends_where_responses_contradict_it() -> None:
    answers = ((39_000, 0), (40_100, 10))
    rows = [
        sent(8 * at, 8, size, 1000 + at, error, max_message_bytes=100_000) for at, (size, error) in enumerate(answers)
    ]
    assert limit_of(rows) == (40_000, True)
    assert limit_of(rows, window=Window(end=rows[1][SENT.request_time])) == (100_000, False)


def test_a_limit_that_did_not_change_is_shown_by_responses_outside_the_window_too() -> None:
    answers = ((40_100, 10), (39_000, 0), (38_000, 0))
    rows = [sent(8 * at, 8, size, 1000 + at, error) for at, (size, error) in enumerate(answers)]
    assert limit_of(rows, window=Window(begin=rows[2][SENT.request_time])) == (40_000, True)


def limit_of(rows: list[Row], stated: int = NOT_STATED, window: Window = WHOLE) -> tuple[int, bool]:
    """max.message.bytes of the captured lane, and whether it is inferred from the capture."""
    (lane,) = replayed(rows, limit=stated, window=window)[BATCH_SPLIT.name]
    return lane[BATCH_SPLIT.max_message_bytes], lane[BATCH_SPLIT.is_limit_told]


@pytest.mark.parametrize(
    ("stored", "limit"),
    [(None, (1 << 9, True)), ("gzip", (1 << 9, True)), ("zstd", (KAFKA_LIMIT, False)), ("none", (4096, True))],
    ids=["as produced", "in the topic's codec", "compressed anew to an unknown size", "not compressed"],
)
def test_a_refused_batch_shows_the_limit_only_if_its_size_as_stored_is_known(
    stored: str | None, limit: tuple[int, bool]
) -> None:
    """The batches have 400 and 600 bytes, and 3,301 and 4,401 without compression: 30 and 40 records of 108 or 109."""
    sizes = ((30, 400, 0), (40, 600, 10))
    rows = [sent(40 * at, n, size, 1000 + at, error) for at, (n, size, error) in enumerate(sizes)]
    assert limit_of([row | {SENT.stored_codec: stored} for row in rows]) == limit


@pytest.mark.parametrize(("inside", "others", "expected"), [(3, 2, True), (2, 2, False), (1, 0, True), (0, 3, False)])
def test_most_full_batches_have_to_end_within_a_range_below_the_default(
    inside: int, others: int, expected: bool
) -> None:
    """The last batch is not full, and does not count."""
    least = np.array([900] * inside + [100] * others + [900])
    most = np.array([1000] * inside + [200] * others + [UNBOUNDED])
    assert is_below(least, most, 950, 990) is expected


@given(st.integers(1, 100_000))
def test_without_an_upper_bound_the_least_power_of_two_is_the_roundest(least: int) -> None:
    assert roundest_number(least, UNBOUNDED) == next(1 << bit for bit in range(20) if 1 << bit >= least)


@given(st.integers(0, 5000), st.integers(1, 700))
def test_the_roundest_number_of_a_range_is_the_multiple_of_the_largest_power_nearest_to_the_middle(
    least: int, width: int
) -> None:
    inside = range(max(least, 1), least + width + 1)
    steps = sorted({*(2**bit for bit in range(13)), *(10**digits for digits in range(4))}, reverse=True)
    by_step = ([number for number in inside if number % step == 0] for step in steps)
    multiples = next(filter(None, by_step))
    nearest = min(abs(2 * number - inside[0] - inside[-1]) for number in multiples)
    found = roundest_number(least, least + width)
    assert found in multiples
    assert abs(2 * found - inside[0] - inside[-1]) == nearest
