"""KIP-126 as producers run it: what is estimated, when a batch is full, and what a split makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_TIMELINE
from schemas.tables.steps import SENT
from tests.unit.replay.batch_split.producers import (
    KAFKA_LIMIT,
    KAFKA_SIZE,
    Producer,
    Records,
    content_of,
    even_sizes,
    lanes_of,
    limits_of,
    replayed,
)
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.batch_split.estimate import (
    DAMPED,
    KIP_TEXT,
    SPLIT_AT_BATCH_SIZE,
    TODAY,
    UNCOMPRESSED,
    estimated_bytes,
    has_room,
    record_bytes,
    updated,
    upper_bound,
)
from udfs.replay.batch_split.lane import Measure
from udfs.replay.batch_split.outcomes import MICRO
from udfs.replay.batch_split.replay import SplitLanes, replay_splits
from udfs.replay.batch_split.settings import NOT_SAID, TopicLimits
from udfs.replay.batch_split.state import Sizes


def test_the_estimate_rises_at_once_and_falls_in_steps() -> None:
    lanes, estimate, found = lanes_of(Producer(1024, 1024)), np.float32(1), []
    for ratio in (0.5, 0.5, 0.997, 2.0, 0.1, 1.999):
        estimate = np.float32(updated(TODAY, estimate, np.float32(ratio), lanes, 0))
        found.append(round(float(estimate), 4))
    assert found == [0.995, 0.99, 1.04, 2.0, 1.995, 2.045]


def test_sizes_of_records_and_batches_are_kafkas() -> None:
    (content,) = content_of([100]).tolist()
    assert (upper_bound(content), record_bytes(content, 0, 0)) == (186, 109)
    assert estimated_bytes(872, np.float32(1), np.float32(1.05), True) == 61 + 915
    assert estimated_bytes(872, np.float32(0.1), np.float32(1.05), False) == 61 + 872
    assert has_room(0, 5000, 1024, 5000), "a batch takes one record, however large"
    assert not has_room(8, 61 + 915, 1024, 109)
    assert has_room(7, 61 + 801, 1024, 109)


def test_a_batch_of_75_records_is_split_into_ten() -> None:
    """What Kafka 4.3's RecordAccumulator does at an estimate of 0.1 (splitAndReenqueue)."""
    records = Records([0] * 75, [100] * 75, initial=[0.1])
    each = (7991 - 61 - 23) / 75 / 100
    found = replayed(Producer(1024, 2048, linger=5), records, even_sizes(records, [each] * 75, fixed=23))
    assert (found.of("batches"), found.of("records"), found.of("largest")) == (1, 75, 7991)
    assert (found.of("splits"), found.of("split_batches"), found.of("failed")) == (1, 10, 0)
    assert found.of("over_limit") == 1


def test_kip_126s_example_of_a_topic_that_compresses_to_a_tenth_and_one_to_a_fifth() -> None:
    """Before, one topic's estimate filled the other's batches: 2 MB where 1 MB is allowed. Now each has its own."""
    mb, n = 1_000_000, 60_000
    records = Records(
        [*range(n), *range(n, n + 10_000)], [1000] * (n + 10_000), [0] * n + [1] * 10_000, topic=(0, 1)
    )  # fmt: skip
    sizes = even_sizes(records, [0.1] * n + [0.2] * 10_000)
    before = replayed(Producer(mb, mb, linger=10**6, profile=DAMPED), replace(records, initial=[0.1, 0.1]), sizes)
    assert 1.8 * mb < before.sums.largest[0, 1] < 2.1 * mb
    assert before.sums.failed[0, 1] >= 1, "what is too large fails, for nothing is split"
    today = replayed(Producer(mb, mb, linger=10**6), replace(records, initial=[0.1, 1.0]), sizes)
    assert today.of("over_limit") == 0
    assert today.sums.largest[0, 0] > 0.9 * mb, "topic 1 goes on filling its batches"


def test_the_kips_text_resets_the_estimate_where_kafka_keeps_a_ratio_above_one() -> None:
    records = Records([0] * 40, [100] * 40, initial=[0.1])
    sizes = even_sizes(records, [1.5] * 40)
    ends = {
        profile: replayed(Producer(1024, 2048, linger=5, profile=profile), records, sizes)
        for profile in (TODAY, KIP_TEXT)
    }
    assert ends[TODAY].of("split_batches") > ends[KIP_TEXT].of("split_batches")


def test_the_kips_text_splits_in_two_and_goes_by_steps() -> None:
    """Its steps under 2b and 2c, its reset under 2e, and its heading "split it into two"."""
    records = Records([0] * 75, [100] * 75, initial=[0.1])
    sizes = even_sizes(records, [0.7] * 75)
    found = replayed(Producer(1024, 4000, linger=5, profile=KIP_TEXT), records, sizes)
    # 5,311 bytes are too large; two halves of 2,660 and 2,590 are not, whatever batch.size.
    assert (found.of("splits"), found.of("split_batches"), found.of("failed")) == (1, 2, 0)
    assert found.of("bytes_resent") == pytest.approx(75 * 70 + 2 * 61)
    assert float(found.estimates[0]) == pytest.approx(1 - 2 * 0.005), "1.0, and a step for each half"
    lanes, estimate, steps = lanes_of(Producer(1024, 4000)), np.float32(0.5), []
    for ratio in (0.9, 0.1, 0.1, 0.504, 2.0):
        estimate = np.float32(updated(KIP_TEXT, estimate, np.float32(ratio), lanes, 0))
        steps.append(round(float(estimate), 3))
    assert steps == [0.55, 0.545, 0.54, 0.535, 0.585]
    assert float(updated(KIP_TEXT, np.float32(0.98), np.float32(2), lanes, 0)) == 1.0


def test_before_kip_126_the_estimate_is_a_damped_average_of_all_topics_and_nothing_is_split() -> None:
    lanes, estimate, found = lanes_of(Producer(1024, 1024)), np.float32(0.5), []
    for ratio in (0.1, 0.1, 0.1, 1.0):
        estimate = np.float32(updated(DAMPED, estimate, np.float32(ratio), lanes, 0))
        found.append(round(float(estimate), 4))
    assert found == [0.46, 0.424, 0.3916, 0.4524], "nine tenths of what it was, a tenth of what was seen"
    records = Records([0] * 75, [100] * 75, initial=[0.1])
    too_large = replayed(Producer(1024, 4000, linger=5, profile=DAMPED), records, even_sizes(records, [0.7] * 75))
    assert (too_large.of("splits"), too_large.of("failed"), too_large.of("bytes_sent")) == (0, 1, 75 * 70 + 61)


def test_batches_of_uncompressed_size_take_the_same_records_however_they_compress() -> None:
    """The KIP's first rejected alternative: nothing is misjudged, and batches that compress well are small."""
    records = Records([0] * 90, [100] * 90, initial=[0.1])
    for ratio in (0.05, 0.5, 1.5):
        found = replayed(Producer(1024, 1500, 5, profile=UNCOMPRESSED), records, even_sizes(records, [ratio] * 90))
        assert (found.of("batches"), found.of("splits")) == (12, 0), "eight of 109 bytes behind a header of 61"
        assert found.of("largest") == 61 + 8 * 100 * ratio


def test_batches_that_are_split_at_batch_size_are_split_though_the_limit_would_take_them() -> None:
    """The KIP's second rejected alternative: 7,561 bytes are far below the limit, and are sent as eight batches."""
    records = Records([0] * 75, [100] * 75, initial=[0.1])
    sizes = even_sizes(records, [1.0] * 75)
    found = replayed(Producer(1024, 1 << 20, linger=5, profile=SPLIT_AT_BATCH_SIZE), records, sizes)
    assert (found.of("over_limit"), found.of("splits"), found.of("split_batches")) == (0, 1, 10)
    assert found.of("bytes_sent") == 7500 + 10 * 61, "the batch that is split is never sent"
    assert replayed(Producer(1024, 1 << 20, linger=5), records, sizes).of("splits") == 0


def test_the_rejected_designs_send_nothing_that_is_refused() -> None:
    records = Records([0] * 400, [100] * 400, initial=[0.1])
    sizes = even_sizes(records, [0.9] * 400)
    by_bytes = replayed(Producer(1024, 1500, linger=5, profile=UNCOMPRESSED), records, sizes)
    assert (by_bytes.of("over_limit"), by_bytes.of("splits")) == (0, 0)
    before_sending = replayed(Producer(1024, 1500, linger=5, profile=SPLIT_AT_BATCH_SIZE), records, sizes)
    today = replayed(Producer(1024, 1500, linger=5), records, sizes)
    assert before_sending.of("splits") > 0
    assert before_sending.of("bytes_sent") < today.of("bytes_sent")


@pytest.mark.parametrize(("halves", "outcome"), [(True, (2, 1 + 4, 0)), (False, (1, 1, 1))])
def test_a_refused_batch_within_batch_size_is_halved_when_it_comes_back(
    halves: bool, outcome: tuple[int, int, int]
) -> None:
    """A split at batch.size leaves it whole. 4.2 and later halve what came of a split; before, it was so for ever."""
    records = Records([0] * 8, [100] * 8)
    found = replayed(Producer(1024, 700, linger=5, halves=halves), records, even_sizes(records, [0.9] * 8))
    assert found.of("over_limit") == 1
    assert (found.of("splits"), found.of("split_batches"), found.of("failed")) == outcome


def test_a_record_that_is_too_large_alone_fails() -> None:
    records = Records([0, 1], [5000, 10])
    found = replayed(Producer(1024, 2048), records, even_sizes(records, [1.0, 1.0]))
    assert (found.of("batches"), found.of("splits"), found.of("failed")) == (2, 0, 1)


def test_a_batch_is_sent_when_it_lingered() -> None:
    records = Records([0, 4, 9, 10], [10] * 4)
    found = replayed(Producer(16384, 1 << 20, linger=5), records, even_sizes(records, [0.5] * 4))
    assert found.of("batches") == 2


def test_a_batch_that_is_sent_again_lowers_the_estimate_again() -> None:
    once, again = (
        replayed(Producer(16384, 1 << 20), records, even_sizes(records, [0.5]))
        for records in (Records([0], [500]), Records([0], [500], retries=2))
    )
    assert [round(float(found.estimates[0]), 3) for found in (once, again)] == [0.995, 0.985]
    assert again.of("bytes_sent") == 3 * once.of("bytes_sent")


@pytest.mark.parametrize(("is_sticky", "batches"), [(True, 2), (False, 1)])
def test_a_record_without_key_closes_the_full_batch_of_the_partition_it_leaves(is_sticky: bool, batches: int) -> None:
    """Then what comes back to the partition begins another."""
    records = Records([0, 1, 2], [700, 700, 10], [0, 1, 0], topic=(0, 0), is_sticky=is_sticky)
    found = replayed(Producer(1024, 1 << 20, linger=50), records, even_sizes(records, [0.5] * 3))
    assert found.of("batches") == batches + 1


def as_told(sizes: Sizes) -> Measure:
    """What measures batches as a model has them."""

    def size(first: int, end: int, codec: int) -> int:
        return 61 + round(sizes.fixed[codec, first] + sizes.cost[codec, end] - sizes.cost[codec, first])

    return size


def test_a_lane_goes_by_the_sizes_that_are_measured_and_tells_how_far_off_the_model_is() -> None:
    records = Records([0] * 400, [100] * 400, initial=[0.1])
    model, truth = even_sizes(records, [0.5] * 400), even_sizes(records, [0.9] * 400)
    told = replayed(Producer(1024, 1500, 5, measured_every=1), records, model, as_told(truth))
    by_truth = replayed(Producer(1024, 1500, 5), records, truth)
    for outcome in ("batches", "splits", "split_batches", "bytes_sent", "bytes_resent", "largest"):
        assert told.of(outcome) == by_truth.of(outcome)
    assert told.estimates == by_truth.estimates
    assert told.of("measured") == told.of("batches") + told.of("split_batches")
    assert told.of("model_error") / told.of("measured") / MICRO == pytest.approx(4 / 9, rel=0.1)
    assert by_truth.of("measured") == 0


def test_a_sample_is_measured_and_what_is_not_held_has_the_models_size() -> None:
    records = Records([0] * 4000, [100] * 4000, initial=[0.1])
    sizes = even_sizes(records, [0.9] * 4000)
    modelled = replayed(Producer(1024, 1500, 5), records, sizes)
    closed = modelled.of("batches") + modelled.of("split_batches")
    sampled = replayed(Producer(1024, 1500, 5, measured_every=4), records, sizes, as_told(sizes))
    assert 0.15 * closed < sampled.of("measured") < 0.35 * closed
    assert sampled.of("model_error") == 0
    not_held = replayed(Producer(1024, 1500, 5, measured_every=4), records, sizes)
    assert (not_held.of("measured"), not_held.of("bytes_sent")) == (0, modelled.of("bytes_sent"))


def sent(first: int, n: int, size: int, request: int, error: int, **more: Any) -> dict[str, Any]:
    """A batch of `n` records with 100 bytes each that was made within a ms of its time; times in ms."""
    row = {str(c): {"string": "", "boolean": True}.get(c.type, 0) for c in SENT.columns}
    return row | {
        SENT.client_id: "c", SENT.topic: "t", SENT.codec: "gzip", SENT.base_sequence: first, SENT.began_before: False,
        SENT.append_from: first * 1000, SENT.request_time: request * 1000, SENT.response_time: request * 1000 + 500,
        SENT.error_code: error, SENT.size_bytes: size, SENT.keyless_records: 0, SENT.exchange_no: request,
        SENT.uncompressed_bytes: sum(record_bytes(104, at, at) for at in range(n)), SENT.record_sizes: [104] * n,
        SENT.create_times: list(range(first, first + n)), SENT.recompressed_bytes: [],
        SENT.max_message_bytes: None, **more,
    }  # fmt: skip


SENT_ROWS = [
    sent(0, 8, 800, 9, 0),
    sent(8, 8, 2000, 18, 10),  # too large ...
    sent(8, 4, 1000, 20, 0),
    sent(12, 4, 1010, 21, 0),  # ... and sent again in two parts
    sent(16, 8, 900, 26, 7),
    sent(16, 8, 900, 28, 0),  # sent again as it was
    sent(24, 3, 400, 60, 0, client_id="d", record_sizes=[104] * 3, is_java=False),
]


def rows_of_replay(
    rows_a_batch: int, most: int = 1 << 18, sent: list[dict[str, Any]] = SENT_ROWS, limits: TopicLimits | None = None
) -> dict[str, list[dict[str, Any]]]:
    """The gold rows of what was sent by table, in two lanes, from Arrow batches of so many rows."""
    table = pa.Table.from_pylist(sent, schema=arrow_schema(SENT))
    settings = (Producer(1024, 1500, 100), Producer(4096, 1500, 100))
    lanes = SplitLanes(
        ("captured", "producer.batch.size=4KiB"), lanes_of(*settings), limits or limits_of(*settings), KAFKA_SIZE
    )  # fmt: skip
    found: dict[str, list[dict[str, Any]]] = {}
    for packed in replay_splits(table.to_batches(max_chunksize=rows_a_batch), lanes, "run", most):
        for name, content in zip(packed["table"].to_pylist(), packed["rows"], strict=True):
            for batch in pa.ipc.open_stream(content.as_buffer()):
                found.setdefault(str(name), []).extend(batch.to_pylist())
    return found


def test_a_clients_batches_are_judged_and_sent_again() -> None:
    found = rows_of_replay(10_000)
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
    assert dict(verdicts["c", "batches"][t.reasons]) == {"close_append_order": 1}, "made within what a close may take"
    captured, larger = found[BATCH_SPLIT.name]
    g = BATCH_SPLIT
    assert [captured[c] for c in (g.records, g.batches, g.splits, g.split_batches)] == [24, 3, 1, 2]
    assert captured[g.bytes_resent] == pytest.approx(2010, rel=0.05)
    assert (larger[g.batches], larger[g.records]) == (1, 24)
    assert sum(row[BATCH_SPLIT_TIMELINE.batches] for row in found[BATCH_SPLIT_TIMELINE.name]) > 0


@pytest.mark.parametrize(
    ("records", "reason"), [(7, "fewer_records"), (8, None), (9, "more_records")], ids=["fewer", "as Kafka", "more"]
)
def test_a_batch_that_ends_elsewhere_than_kafkas_disagrees(records: int, reason: str | None) -> None:
    """At an estimate of 1.0 a batch takes eight of the records; a request between shows that it was not sent early."""
    of_other = sent(100, 1, 100, 140, 0, topic="u", base_sequence=0)
    rows = [sent(0, records, 900, 150, 0), sent(records, 8, 900, 160, 0), of_other]
    found = rows_of_replay(10_000, sent=sorted(rows, key=lambda row: int(row[SENT.append_from])))
    (verdict,) = [row for row in found[FIDELITY.name] if row[FIDELITY.metric] == "batches"]
    assert (verdict[FIDELITY.checked], verdict[FIDELITY.unknown]) == (3, 0)
    assert dict(verdict[FIDELITY.reasons]) == ({} if reason is None else {reason: 1})


def test_a_batch_is_refused_by_the_limit_of_its_own_topic() -> None:
    """Two topics get the same batches, of 8 records and 2,000 bytes: one was created with a smaller limit."""
    rows = [
        sent(100 * at, 8, 2000, 100 * at + 50, error, topic=topic, base_sequence=at // 2 * 8, **told)
        for at in range(4)
        for topic, error, told in [[("u", 0, {}), ("t", 10, {SENT.max_message_bytes: 1500})][at % 2]]
    ]  # fmt: skip
    unsaid = np.full(2, NOT_SAID)
    two: tuple[dict[str, int], ...] = ({}, {"t": 1 << 20})
    found = rows_of_replay(10_000, sent=rows, limits=TopicLimits(two, unsaid, np.array([4000, 1000]), KAFKA_LIMIT))
    g, f = BATCH_SPLIT, FIDELITY
    assert [(row[g.topic], row[g.max_message_bytes], row[g.over_limit] > 0) for row in found[g.name]] == [
        ("u", 4000, False), ("t", 1500, True), ("u", 1000, True), ("t", 1 << 20, False),
    ]  # fmt: skip
    (splits,) = [row for row in found[f.name] if row[f.metric] == "splits"]
    assert (splits[f.checked], splits[f.agreed]) == (2, 2)


def test_what_a_lane_says_of_a_topic_goes_before_what_it_says_of_all_and_that_before_the_topics_creation() -> None:
    limits = TopicLimits(({}, {}, {"a": 1}), np.array([NOT_SAID, 2, 2]), np.full(3, 4), KAFKA_LIMIT)
    assert limits.of(["a", "b", "c"], {"a": 3, "b": 3}, {}).tolist() == [[3, 3, 4], [2, 2, 2], [1, 2, 2]]


@pytest.mark.parametrize("rows", [1, 7])
def test_the_rows_do_not_depend_on_how_they_are_cut(rows: int) -> None:
    assert rows_of_replay(rows) == rows_of_replay(10_000)


def test_a_long_client_is_replayed_in_stretches_with_the_same_records() -> None:
    whole, parts = (rows_of_replay(10_000, most)[BATCH_SPLIT.name][0] for most in (1 << 18, 10))
    assert parts[BATCH_SPLIT.records] == whole[BATCH_SPLIT.records]
