"""Functions in LLVM's language: compiled once a machine, and never from a file that is not what was written."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from llvmlite import ir

from udfs.wire.machine_code import address_of

INT64 = ir.IntType(64)


class Constant:
    """What writes a function that returns a number, and how often it was asked to."""

    def __init__(self, number: int) -> None:
        self.number, self.written = number, 0

    def write(self, module: ir.Module, name: str) -> None:
        self.written += 1
        function = ir.Function(module, ir.FunctionType(INT64, []), name)
        ir.IRBuilder(function.append_basic_block()).ret(ir.Constant(INT64, self.number))

    def called(self, name: str, made_from: str) -> int:
        return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address_of(name, made_from, self.write))())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def test_what_was_compiled_once_is_taken_from_disk() -> None:
    constant = Constant(42)
    assert [constant.called("kept", "this") for _ in range(3)] == [42, 42, 42]
    assert constant.written == 1


def test_what_is_made_from_something_else_is_compiled_anew() -> None:
    assert Constant(1).called("changed", "this") == 1
    assert Constant(2).called("changed", "that") == 2


@pytest.mark.parametrize("content", [b"", b"\x7fELF", bytes(4096)], ids=["empty", "cut", "zeros"])
def test_a_damaged_file_is_not_run_but_written_again(content: bytes, cache: Path) -> None:
    constant = Constant(7)
    name = f"damaged_{len(content)}"
    assert constant.called(name, "this") == 7
    (file,) = cache.iterdir()
    file.write_bytes(content)
    assert constant.called(name, "this") == 7
    assert constant.written == 2
    assert constant.called(name, "this") == 7
    assert constant.written == 2
