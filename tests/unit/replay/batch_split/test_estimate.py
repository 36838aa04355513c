"""The estimated compression ratio by which a producer fills batches, and the sizes that follow from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.unit.replay.batch_split.producers import Producer, content_of, settings_of
from udfs.replay.batch_split.estimate import (
    compression_ratio,
    estimate_after_split,
    estimated_bytes,
    has_room,
    record_bytes,
    updated_estimate,
    upper_bound,
)
from udfs.replay.batch_split.settings import DAMPED, KIP_TEXT, TODAY

CASES = [
    pytest.param(TODAY, 1.0, (0.5, 0.5, 0.997, 2.0, 0.1, 1.999), [0.995, 0.99, 1.04, 2.0, 1.995, 2.045], id="today"),
    pytest.param(KIP_TEXT, 0.5, (0.9, 0.1, 0.1, 0.504, 2.0), [0.55, 0.545, 0.54, 0.535, 0.585], id="kip"),
    pytest.param(KIP_TEXT, 0.98, (2.0, 2.0), [1.03, 1.08], id="kip, without a bound"),
    pytest.param(KIP_TEXT, 0.5, (0.5, 0.5), [0.5, 0.5], id="kip, as estimated"),
    pytest.param(KIP_TEXT, 0.005, (0.001,), [0.005], id="kip, no step to 0"),
    pytest.param(DAMPED, 0.5, (0.1, 0.1, 0.1, 1.0), [0.46, 0.424, 0.3916, 0.4524], id="damped"),
]
"""Today the estimate rises at once and falls in steps. In KIP-126's text it also rises in steps (2b, 2c). Before
KIP-126, a new estimate was nine tenths of the last one plus a tenth of the ratio seen."""


@pytest.mark.parametrize(("profile", "estimate", "ratios", "estimates"), CASES)
def test_the_estimate_follows_the_ratios_of_closed_batches(
    profile: int, estimate: float, ratios: Sequence[float], estimates: list[float]
) -> None:
    (settings,), found = settings_of(Producer(1024, 1024, profile=profile)), [np.float32(estimate)]
    for ratio in ratios:
        found.append(np.float32(updated_estimate(settings, found[-1], np.float32(ratio))))
    assert [round(float(of), 4) for of in found[1:]] == estimates


def test_a_split_keeps_a_ratio_above_one_except_in_the_kips_text() -> None:
    """KIP-126 resets the estimate to 1.0 under 2e."""
    found = {
        (profile, ratio): estimate_after_split(profile, np.float32(ratio))
        for profile in (TODAY, KIP_TEXT)
        for ratio in (0.5, 1.5)
    }
    assert found == {(TODAY, 0.5): 1.0, (TODAY, 1.5): 1.5, (KIP_TEXT, 0.5): 1.0, (KIP_TEXT, 1.5): 1.0}


def test_a_ratio_leaves_the_header_out() -> None:
    assert compression_ratio(61 + 50, 100) == np.float32(0.5)
    assert compression_ratio(61, 0) == 1.0


def test_sizes_of_records_and_batches_are_kafkas() -> None:
    (content,) = content_of([100]).tolist()
    assert (upper_bound(content), record_bytes(content, 0, 0)) == (186, 109)
    assert estimated_bytes(872, np.float32(1), np.float32(1.05), True) == 61 + 915
    assert estimated_bytes(872, np.float32(0.1), np.float32(1.05), False) == 61 + 872
    assert has_room(0, 5000, 1024, 5000), "a batch takes one record, however large"
    assert not has_room(8, 61 + 915, 1024, 109)
    assert has_room(7, 61 + 801, 1024, 109)
