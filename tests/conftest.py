"""Fixtures of every lane."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent

# The same examples on every machine and in every run; no deadline, because a first call compiles kernels.
settings.register_profile(
    "refetch", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("refetch")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The clone."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_captures() -> Path:
    """Folder of the large captures that lie beside the clone; a test that needs them is skipped without."""
    folder = REPOSITORY.parent / "shared" / "captures"
    if not folder.is_dir():
        pytest.skip("no ../shared/captures beside the clone")
    return folder
