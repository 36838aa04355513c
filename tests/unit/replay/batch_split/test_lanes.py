"""The lanes of one producer: when a batch is full, when it is refused, and which batches a split makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.replay.batch_split.producers import (
    Produced,
    Producer,
    as_produced,
    captured,
    even_sizes,
    replayed,
    settings_of,
)
from udfs.columns.arrays import Ints
from udfs.replay.batch_split.lanes import Measure, replay_stretch
from udfs.replay.batch_split.recompression import BY_PARTS
from udfs.replay.batch_split.settings import DAMPED, KIP_TEXT, SPLIT_AT_BATCH_SIZE, TODAY, UNCOMPRESSED
from udfs.replay.batch_split.state import MICRO, SizeModel, new_sim, no_outcomes


def batches_and_last_close(**captured_batch: int) -> Ints:
    """(number of batches, us at which the last one is closed) of 400 records that come at once, with a batch.size of
    1 KiB and of 4 KiB. captured_batch: fields of the captured batch that had the records.
    """
    records, found = Produced([0] * 400, [100] * 400), []
    capture = captured(records, even_sizes(records, [1.0] * 400))
    for name, value in captured_batch.items():
        capture.batches[name] = value
    for batch_size in (1024, 4096):
        outcomes, rules = no_outcomes(1, 1), as_produced(8192)
        settings = settings_of(Producer(batch_size, 8192, linger=5))
        sim = new_sim(capture, settings, rules, np.ones((1, 1, 5), np.float32), outcomes)
        replay_stretch(sim, range(1))
        found.append((int(outcomes["batches"][0, 0]), int(sim.filling["last_closed"][0])))
    return np.array(found)


def test_a_client_that_is_behind_is_done_sooner_with_fewer_and_larger_batches() -> None:
    """A batch takes as long as the captured one, except for the part of the time that is in proportion to bytes."""
    (small, took), (large, sooner) = batches_and_last_close(delay=20_000, in_turn=1)
    assert (took, sooner) == (20_000 * small, 20_000 * large)
    assert 3 * large < small < 5 * large
    by_bytes = batches_and_last_close(delay=20_000, by_bytes=20_000, uncompressed=1_000, in_turn=1)[:, 1]
    assert by_bytes[1] == pytest.approx(by_bytes[0], rel=0.02)


def test_if_a_client_is_not_behind_all_its_batches_are_only_as_late_as_the_captured_one() -> None:
    """For example the first batches of a client that has yet to connect."""
    assert batches_and_last_close(delay=400_000)[:, 1].tolist() == [400_000, 400_000]


def test_a_batch_of_75_records_is_split_into_ten() -> None:
    """What Kafka 4.3's RecordAccumulator does at an estimate of 0.1 (splitAndReenqueue)."""
    records = Produced([0] * 75, [100] * 75, initial=[0.1])
    each = (7991 - 61 - 23) / 75 / 100
    found = replayed(Producer(1024, 2048, linger=5), records, even_sizes(records, [each] * 75, fixed=23))
    assert (found.of("batches"), found.of("records"), found.of("largest")) == (1, 75, 7991)
    assert (found.of("splits"), found.of("split_batches"), found.of("failed")) == (1, 10, 0)
    assert found.of("over_limit") == 1


def test_kip_126s_example_of_a_topic_that_compresses_to_a_tenth_and_one_to_a_fifth() -> None:
    """Before KIP-126 topics shared an estimate: batches had 2 MB where 1 MB is allowed. Now each topic has its own."""
    mb, n = 1_000_000, 60_000
    records = Produced(
        [*range(n), *range(n, n + 10_000)], [1000] * (n + 10_000), [0] * n + [1] * 10_000, topic=(0, 1)
    )  # fmt: skip
    sizes = even_sizes(records, [0.1] * n + [0.2] * 10_000)
    before = replayed(Producer(mb, mb, linger=10**6, profile=DAMPED), replace(records, initial=[0.1, 0.1]), sizes)
    assert 1.8 * mb < before.outcomes["largest"][1] < 2.1 * mb
    assert before.outcomes["failed"][1] >= 1, "a batch that is too large fails, for nothing is split"
    today = replayed(Producer(mb, mb, linger=10**6), replace(records, initial=[0.1, 1.0]), sizes)
    assert today.of("over_limit") == 0
    assert today.outcomes["largest"][0] > 0.9 * mb, "the first topic goes on filling its batches"


def test_the_kips_text_resets_the_estimate_where_kafka_keeps_a_ratio_above_one() -> None:
    records = Produced([0] * 40, [100] * 40, initial=[0.1])
    sizes = even_sizes(records, [1.5] * 40)
    ends = {
        profile: replayed(Producer(1024, 2048, linger=5, profile=profile), records, sizes)
        for profile in (TODAY, KIP_TEXT)
    }
    assert ends[TODAY].of("split_batches") > ends[KIP_TEXT].of("split_batches")


def test_the_kips_text_splits_in_two_and_goes_by_steps() -> None:
    """KIP-126 has the steps under 2b and 2c, the reset under 2e, and the halves in its heading "split it into two"."""
    records = Produced([0] * 75, [100] * 75, initial=[0.1])
    sizes = even_sizes(records, [0.7] * 75)
    found = replayed(Producer(1024, 4000, linger=5, profile=KIP_TEXT), records, sizes)
    # 5,311 bytes are too large. The halves of 2,721 and 2,651 bytes are not, although they are larger than batch.size.
    assert (found.of("splits"), found.of("split_batches"), found.of("failed")) == (1, 2, 0)
    assert found.of("bytes_resent") == pytest.approx(75 * 70 + 2 * 61)
    assert float(found.estimates[0]) == pytest.approx(1 - 2 * 0.005), "1.0 less a step for each half"


def test_before_kip_126_nothing_is_split_and_a_batch_that_is_too_large_fails() -> None:
    records = Produced([0] * 75, [100] * 75, initial=[0.1])
    too_large = replayed(Producer(1024, 4000, linger=5, profile=DAMPED), records, even_sizes(records, [0.7] * 75))
    assert (too_large.of("splits"), too_large.of("failed"), too_large.of("bytes_sent")) == (0, 1, 75 * 70 + 61)


def test_before_kip_126_a_batch_that_is_being_filled_follows_the_current_estimate() -> None:
    """One topic fills its batch while another, which does not compress, raises the estimate of both."""
    n = 1000
    times = [at for at in range(n) for _ in range(2)]
    records = Produced(times, [100, 1000] * n, [0, 1] * n, topic=(0, 1), initial=[0.1, 0.1])
    sizes = even_sizes(records, [0.1, 1.0] * n)
    before = replayed(Producer(10_000, 1 << 20, linger=10**6, profile=DAMPED), records, sizes)
    today = replayed(Producer(10_000, 1 << 20, linger=10**6), records, sizes)
    assert (today.outcomes["batches"][0], before.outcomes["batches"][0] > 5) == (2, True)


def test_batches_of_uncompressed_size_take_the_same_records_however_they_compress() -> None:
    """The KIP's first rejected alternative: nothing is misjudged, and batches that compress well are small."""
    records = Produced([0] * 90, [100] * 90, initial=[0.1])
    for ratio in (0.05, 0.5, 1.5):
        found = replayed(Producer(1024, 1500, 5, profile=UNCOMPRESSED), records, even_sizes(records, [ratio] * 90))
        assert (found.of("batches"), found.of("splits")) == (12, 0), "each has 61 bytes and eight records of 109"
        assert found.of("largest") == 61 + 8 * 100 * ratio


def test_under_the_second_rejected_design_batches_are_split_though_they_are_within_the_limit() -> None:
    """The KIP's second rejected alternative: 7,561 bytes are far below the limit, and are sent as ten batches."""
    records = Produced([0] * 75, [100] * 75, initial=[0.1])
    sizes = even_sizes(records, [1.0] * 75)
    found = replayed(Producer(1024, 1 << 20, linger=5, profile=SPLIT_AT_BATCH_SIZE), records, sizes)
    assert (found.of("over_limit"), found.of("splits"), found.of("split_batches")) == (0, 1, 10)
    assert found.of("bytes_sent") == 7500 + 10 * 61, "the batch that is split is never sent"
    assert replayed(Producer(1024, 1 << 20, linger=5), records, sizes).of("splits") == 0


def test_the_rejected_designs_send_nothing_that_is_refused() -> None:
    records = Produced([0] * 400, [100] * 400, initial=[0.1])
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
    """A split at batch.size leaves it whole. Kafka 4.2 and later halve a batch that a split made. Before, it was sent
    and refused for ever.
    """
    records = Produced([0] * 8, [100] * 8)
    found = replayed(Producer(1024, 700, linger=5, halves=halves), records, even_sizes(records, [0.9] * 8))
    assert found.of("over_limit") == 1
    assert (found.of("splits"), found.of("split_batches"), found.of("failed")) == outcome


@pytest.mark.parametrize("values", [[5000, 10], [10, 5000]], ids=["first", "last"])
def test_a_record_that_is_too_large_alone_fails(values: list[int]) -> None:
    records = Produced([0, 1], values)
    found = replayed(Producer(1024, 2048), records, even_sizes(records, [1.0, 1.0]))
    assert (found.of("batches"), found.of("splits"), found.of("failed")) == (2, 0, 1)


def test_a_batch_is_sent_when_it_lingered() -> None:
    records = Produced([0, 4, 9, 10], [10] * 4)
    found = replayed(Producer(16384, 1 << 20, linger=5), records, even_sizes(records, [0.5] * 4))
    assert found.of("batches") == 2


def test_a_batch_that_is_sent_again_lowers_the_estimate_again() -> None:
    once, again = (
        replayed(Producer(16384, 1 << 20), records, even_sizes(records, [0.5]))
        for records in (Produced([0], [500]), Produced([0], [500], retries=2))
    )
    assert [round(float(found.estimates[0]), 3) for found in (once, again)] == [0.995, 0.985]
    assert again.of("bytes_sent") == 3 * once.of("bytes_sent")


@pytest.mark.parametrize(("is_sticky", "batches"), [(True, 2), (False, 1)])
def test_a_record_without_key_closes_the_full_batch_of_the_partition_it_leaves(is_sticky: bool, batches: int) -> None:
    """The next record for that partition begins another batch."""
    records = Produced([0, 1, 2], [700, 700, 10], [0, 1, 0], topic=(0, 0), is_sticky=is_sticky)
    found = replayed(Producer(1024, 1 << 20, linger=50), records, even_sizes(records, [0.5] * 3))
    assert found.of("batches") == batches + 1


def measured_by(sizes: SizeModel) -> Measure:
    """A measure that gives the sizes of a model."""

    def size(first: int, end: int, codec: int) -> int:
        return 61 + round(
            sizes.fixed[codec, first] + sizes.cost[BY_PARTS, codec, end] - sizes.cost[BY_PARTS, codec, first]
        )

    return size


def test_a_lane_goes_by_the_sizes_that_are_measured_and_shows_how_far_off_the_model_is() -> None:
    records = Produced([0] * 400, [100] * 400, initial=[0.1])
    model, truth = even_sizes(records, [0.5] * 400), even_sizes(records, [0.9] * 400)
    measured = replayed(Producer(1024, 1500, 5, measured_every=1), records, model, measured_by(truth))
    by_truth = replayed(Producer(1024, 1500, 5), records, truth)
    for outcome in ("batches", "splits", "split_batches", "bytes_sent", "bytes_resent", "largest"):
        assert measured.of(outcome) == by_truth.of(outcome)
    assert measured.estimates == by_truth.estimates
    assert measured.of("measured") == measured.of("batches") + measured.of("split_batches")
    assert measured.of("model_error") / measured.of("measured") / MICRO == pytest.approx(4 / 9, rel=0.1)
    assert by_truth.of("measured") == 0


def test_a_sample_is_measured_and_batches_that_are_not_held_have_the_models_size() -> None:
    records = Produced([0] * 4000, [100] * 4000, initial=[0.1])
    sizes = even_sizes(records, [0.9] * 4000)
    modelled = replayed(Producer(1024, 1500, 5), records, sizes)
    closed = modelled.of("batches") + modelled.of("split_batches")
    sampled = replayed(Producer(1024, 1500, 5, measured_every=4), records, sizes, measured_by(sizes))
    assert 0.15 * closed < sampled.of("measured") < 0.35 * closed
    assert sampled.of("model_error") == 0
    not_held = replayed(Producer(1024, 1500, 5, measured_every=4), records, sizes)
    assert (not_held.of("measured"), not_held.of("bytes_sent")) == (0, modelled.of("bytes_sent"))
