"""Where machine code is kept if the user's cache is full."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from jobs.session.kernel_cache import choose_kernel_cache
from tests.full_disk import files_of_at_most
from udfs.kernels.compiled_parts import DECODER


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache" / "kernels-1"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return folder


def test_a_cache_with_room_is_used(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choose_kernel_cache()
    assert os.environ["NUMBA_CACHE_DIR"] == str(cache)
    assert list(cache.iterdir()) == []
    assert capsys.readouterr().err == ""


def test_a_full_cache_is_reported_in_a_line_and_not_used(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with files_of_at_most(1 << 20):
        choose_kernel_cache()
    elsewhere = tmp_path / f"refetch-{os.getuid()}" / "kernels-1"
    assert os.environ["NUMBA_CACHE_DIR"] == str(elsewhere)
    said = f"refetch: {cache}: File too large. The kernels' machine code is kept in {elsewhere} instead\n"
    assert capsys.readouterr().err == said


def test_a_full_cache_that_has_the_kernels_is_used(cache: Path) -> None:
    cache.mkdir(parents=True)
    for part in DECODER:
        (cache / f"{part}.compiled").touch()
    with files_of_at_most(0):
        choose_kernel_cache()
    assert os.environ["NUMBA_CACHE_DIR"] == str(cache)
