"""From rows of SENT to gold rows: a producer's batches are judged, and replayed in every lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_TIMELINE
from schemas.tables.steps import SENT
from tests.unit.replay.batch_split.producers import KAFKA_LIMIT, Producer, Row, lanes_of, sent, sent_batch, unpacked
from udfs.replay.batch_split.replay import STRETCH_RECORDS, replay_splits
from udfs.replay.batch_split.settings import NOT_STATED, TopicLimits

SENT_ROWS = [
    sent(0, 8, 800, 9, 0),
    sent(8, 8, 2000, 18, 10),  # too large ...
    sent(8, 4, 1000, 20, 0),
    sent(12, 4, 1010, 21, 0),  # ... and sent again in two parts
    sent(16, 8, 900, 26, 7),
    sent(16, 8, 900, 28, 0),  # sent again as it was
    sent(24, 3, 400, 60, 0, client_id="d", record_sizes=[104] * 3, is_java=False),
]
LANES = lanes_of(
    Producer(1024, 1500, 100), Producer(4096, 1500, 100), names=("captured", "producer.batch.size=4KiB")
)  # fmt: skip


def gold_rows(
    rows: Sequence[Row] = SENT_ROWS,
    *,
    cut: int = 10_000,
    most: int = STRETCH_RECORDS,
    limits: TopicLimits = LANES.limits,
) -> dict[str, list[Row]]:
    """The gold rows, by table, of rows of SENT in two lanes. cut: rows per Arrow batch. most: records per stretch."""
    batch = sent_batch(rows)
    cuts = [batch.slice(first, cut) for first in range(0, len(rows), cut)]
    return unpacked(replay_splits(cuts, replace(LANES, limits=limits), "run", most))


def test_a_producers_batches_are_judged_and_replayed() -> None:
    found = gold_rows()
    t = FIDELITY
    verdicts = {(row[t.client_id], row[t.metric]): row for row in found[FIDELITY.name]}
    assert {key: (row[t.checked], row[t.agreed], row[t.unknown]) for key, row in verdicts.items()} == {
        ("c", "batches"): (2, 2, 1),
        ("c", "batches_in_one_order"): (3, 3, 0),
        ("c", "splits"): (1, 1, 0),
        ("c", "splits_replayed"): (1, 1, 0),
        ("c", "recut_bytes_recompressed"): (2, 2, 0),
        ("c", "recut_bytes_fitted"): (2, 2, 0),
        ("d", "batches"): (0, 0, 1),
    }
    assert dict(verdicts["d", "batches"][t.reasons]) == {"not_a_java_client": 1}
    assert dict(verdicts["c", "batches"][t.reasons]) == {"close_append_order": 1}, "a close may be before or after it"
    captured, larger = found[BATCH_SPLIT.name]
    g = BATCH_SPLIT
    assert [captured[c] for c in (g.records, g.batches, g.splits, g.split_batches)] == [24, 3, 1, 2]
    assert captured[g.bytes_resent] == pytest.approx(2010, rel=0.05)
    assert (larger[g.batches], larger[g.records]) == (1, 24)
    assert sum(row[BATCH_SPLIT_TIMELINE.batches] for row in found[BATCH_SPLIT_TIMELINE.name]) > 0


def test_batches_of_which_it_is_not_known_whose_they_are_are_not_replayed() -> None:
    rows = [*SENT_ROWS[:-1], sent(24, 3, 400, 60, 0, client_id="d", record_sizes=[104] * 3, is_told_apart=False)]
    found = gold_rows(rows)
    (verdict,) = [row for row in found[FIDELITY.name] if row[FIDELITY.client_id] == "d"]
    assert (verdict[FIDELITY.checked], verdict[FIDELITY.unknown]) == (0, 1)
    assert dict(verdict[FIDELITY.reasons]) == {"several_processes": 1}
    assert {row[BATCH_SPLIT.client_id] for row in found[BATCH_SPLIT.name]} == {"c"}


@pytest.mark.parametrize(
    ("records", "reason"), [(7, "fewer_records"), (8, None), (9, "more_records")], ids=["fewer", "as Kafka", "more"]
)
def test_a_batch_that_ends_elsewhere_than_kafkas_disagrees(records: int, reason: str | None) -> None:
    """At an estimate of 1.0 a batch takes eight records. A request in between shows that it was not sent early."""
    of_other = sent(100, 1, 100, 140, 0, topic="u", base_sequence=0)
    rows = [sent(0, records, 900, 150, 0), sent(records, 8, 900, 160, 0), of_other]
    found = gold_rows(sorted(rows, key=lambda row: int(row[SENT.append_from])))
    (verdict,) = [row for row in found[FIDELITY.name] if row[FIDELITY.metric] == "batches"]
    assert (verdict[FIDELITY.checked], verdict[FIDELITY.unknown]) == (3, 0)
    assert dict(verdict[FIDELITY.reasons]) == ({} if reason is None else {reason: 1})


def test_a_batch_is_refused_by_the_limit_of_its_own_topic() -> None:
    """Two topics get the same batches, of 8 records and 2,000 bytes: one was created with a smaller limit."""
    rows = [
        sent(100 * at, 8, 2000, 100 * at + 50, error, topic=topic, base_sequence=at // 2 * 8, **created)
        for at in range(4)
        for topic, error, created in [[("u", 0, {}), ("t", 10, {SENT.max_message_bytes: 1500})][at % 2]]
    ]  # fmt: skip
    not_stated = np.full(2, NOT_STATED)
    two: tuple[dict[str, int], ...] = ({}, {"t": 1 << 20})
    found = gold_rows(rows, limits=TopicLimits(two, not_stated, np.array([4000, 1000]), KAFKA_LIMIT))
    g, f = BATCH_SPLIT, FIDELITY
    assert [(row[g.topic], row[g.max_message_bytes], row[g.over_limit] > 0) for row in found[g.name]] == [
        ("u", 4000, False), ("t", 1500, True), ("u", 1000, True), ("t", 1 << 20, False),
    ]  # fmt: skip
    (splits,) = [row for row in found[f.name] if row[f.metric] == "splits"]
    assert (splits[f.checked], splits[f.agreed]) == (2, 2)


@pytest.mark.parametrize(
    ("stored", "verdict", "is_over"),
    [("none", (2, 2, {}), True), ("gzip", (2, 0, {"split_not_replayed": 2}), False),
     ("zstd", (0, 0, {"recompressed": 2}), False)],
    ids=["without compression", "as produced", "in another codec"],
)  # fmt: skip
def test_the_size_in_which_brokers_store_a_batch_decides_whether_it_is_too_large(
    stored: str, verdict: tuple[int, int, dict[str, int]], *, is_over: bool
) -> None:
    """Two batches of 300 bytes were refused. Without compression they are larger than the stated limit of 800."""
    rows = [sent(100 * at, 8, 300, 100 * at + 50, 10, base_sequence=8 * at, stored_codec=stored) for at in range(2)]
    stated, not_stated = np.full(2, 800), np.full(2, NOT_STATED)
    found = gold_rows(rows, limits=TopicLimits(({}, {}), stated, not_stated, KAFKA_LIMIT))
    g, f = BATCH_SPLIT, FIDELITY
    (splits,) = [row for row in found[f.name] if row[f.metric] == "splits"]
    assert (splits[f.checked], splits[f.agreed], dict(splits[f.reasons])) == verdict
    captured = found[g.name][0]
    assert (captured[g.stored_codec], captured[g.over_limit] > 0, captured[g.splits] > 0) == (stored, is_over, is_over)


@pytest.mark.parametrize("cut", [1, 7])
def test_the_rows_do_not_depend_on_how_they_are_cut(cut: int) -> None:
    assert gold_rows(cut=cut) == gold_rows()


def test_a_producer_that_sent_much_is_replayed_in_stretches_with_the_same_records() -> None:
    whole, parts = (gold_rows(most=most)[BATCH_SPLIT.name][0] for most in (STRETCH_RECORDS, 10))
    assert parts[BATCH_SPLIT.records] == whole[BATCH_SPLIT.records]


def test_a_producer_has_a_span_of_its_timeline_for_every_32_batches_and_one_for_the_rest() -> None:
    """Of 100 batches, the last span has four."""
    rows = [sent(8 * at, 8, 900, 8 * at + 9, 0) for at in range(100)]
    t = BATCH_SPLIT_TIMELINE
    found = [row for row in gold_rows(rows)[t.name] if row[t.scenario] == "captured"]
    assert [(row[t.first_batch], row[t.batches]) for row in found] == [(0, 32), (32, 32), (64, 32), (96, 4)]


def test_timelines_are_complete_however_many_spans_are_handed_out_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [sent(8 * at, 8, 900, 8 * at + 9, 0) for at in range(100)]
    whole = gold_rows(rows)
    monkeypatch.setattr("udfs.replay.batch_split.state.SPANS_ROOM", 1)
    assert gold_rows(rows) == whole
