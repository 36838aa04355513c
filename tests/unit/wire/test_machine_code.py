"""Functions in LLVM's language are compiled once on a machine, and never loaded from a file with other content."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from llvmlite import ir

from udfs.wire import machine_code
from udfs.wire.machine_code import function_address

INT64 = ir.IntType(64)


class Constant:
    """Writes a function that returns a number, and counts how often it did."""

    def __init__(self, number: int) -> None:
        self.number, self.written = number, 0

    def write(self, module: ir.Module, name: str) -> None:
        self.written += 1
        function = ir.Function(module, ir.FunctionType(INT64, []), name)
        ir.IRBuilder(function.append_basic_block()).ret(ir.Constant(INT64, self.number))

    def called(self, name: str, made_from: str) -> int:
        return int(ctypes.CFUNCTYPE(ctypes.c_int64)(function_address(name, made_from, self.write))())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture
def another_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A call of it forgets all functions that were loaded, as in a new process."""
    make = machine_code._engine.__wrapped__
    return lambda: monkeypatch.setattr(machine_code, "_engine", cache(make))


def test_a_function_that_was_compiled_once_is_taken_from_disk(another_process: Callable[[], None]) -> None:
    constant = Constant(42)
    assert constant.called("kept", "this") == 42
    another_process()
    assert constant.called("kept", "this") == 42
    assert constant.written == 1


def test_a_function_that_is_made_from_something_else_is_compiled_anew() -> None:
    assert Constant(1).called("changed", "this") == 1
    assert Constant(2).called("changed", "that") == 2


def test_a_function_that_another_version_of_the_code_has_compiled_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Constant(1).called("of_code", "this") == 1
    monkeypatch.setattr(machine_code, "CODE", "another")
    assert Constant(2).called("of_code", "this") == 2


@pytest.mark.parametrize("content", [b"", b"\x7fELF", bytes(4096)], ids=["empty", "cut", "zeros"])
def test_a_damaged_file_is_not_run_but_written_again(
    content: bytes, folder: Path, another_process: Callable[[], None]
) -> None:
    constant = Constant(7)
    name = f"damaged_{len(content)}"
    assert constant.called(name, "this") == 7
    (file,) = folder.iterdir()
    file.write_bytes(content)
    for _ in range(2):
        another_process()
        assert constant.called(name, "this") == 7
    assert constant.written == 2


def test_the_file_of_another_function_is_not_run(folder: Path, another_process: Callable[[], None]) -> None:
    one, other = Constant(1), Constant(2)
    assert one.called("one", "this") == 1
    (file,) = folder.iterdir()
    assert other.called("other", "this") == 2
    (other_file,) = set(folder.iterdir()) - {file}
    other_file.write_bytes(file.read_bytes())
    another_process()
    assert other.called("other", "this") == 2
    assert other.written == 2


def test_if_nothing_can_be_kept_on_disk_functions_are_compiled_all_the_same(folder: Path) -> None:
    folder.write_text("a file in the folder's place")
    assert Constant(3).called("not_kept", "this") == 3
    assert folder.read_text() == "a file in the folder's place"


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(folder: Path) -> None:
    file = folder / "in_the_way.o"
    file.mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        machine_code._write_code(file, "symbol", b"code")
    assert list(folder.iterdir()) == [file]


THREADS = """
from concurrent.futures import ThreadPoolExecutor
from schemas.wire.metadata import METADATA_REQUEST
from udfs.wire.message_reader import reader_address
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(lambda number: reader_address(METADATA_REQUEST, number % 4), range(32)))
assert len(set(found)) == 4 and 0 not in found, found
"""


def test_threads_may_ask_for_functions_at_the_same_time(repository: Path, folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(repository), "NUMBA_CACHE_DIR": str(folder)}
    for _ in range(2):  # first compiled, then taken from disk
        run = subprocess.run(
            [sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr[-2000:]
