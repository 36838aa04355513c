"""Compiles functions that are written in LLVM's language for this processor, stores them on disk and loads them.

LLVM compiles them in a fraction of a second. Numba would take seconds, most of them for inferring types.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any

from llvmlite import binding, ir

from udfs import CODE

_SPEED_LEVEL = 2
_DIGEST_BYTES = hashlib.sha256().digest_size
_ONE_AT_A_TIME = Lock()
"""LLVM's engine must not be called from two threads."""


def function_address(name: str, made_from: str, write: Callable[[ir.Module, str], None]) -> int:
    """The address of a function in this process. Threads may call this at the same time.

    made_from: everything on which the function depends, except refetch's own code. write: adds the function to a module
    under a given name; it is called only if the machine code is not on disk.
    """
    key = "\0".join((CODE, made_from, *_processor(), str(binding.llvm_version_info)))
    symbol = f"{name}_{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    with _ONE_AT_A_TIME:
        address: int = _engine().get_function_address(symbol)
        if address == 0:
            _engine().add_object_file(binding.ObjectFileRef.from_data(_load_or_compile(symbol, write)))
            _engine().finalize_object()
            address = _engine().get_function_address(symbol)
    return address


def _load_or_compile(symbol: str, write: Callable[[ir.Module, str], None]) -> bytes:
    """A function's machine code, from disk or compiled. It is stored for others if the folder can be written."""
    file = Path(os.environ["NUMBA_CACHE_DIR"]) / f"{symbol}.o"
    code = _read_code(file, symbol)
    if code is None:
        code = _compile(symbol, write)
        with suppress(OSError):
            _write_code(file, symbol, code)
    return code


def _compile(symbol: str, write: Callable[[ir.Module, str], None]) -> bytes:
    module = ir.Module(symbol)
    write(module, symbol)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    machine = _machine()
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(_SPEED_LEVEL))
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_object(parsed)


def _read_code(file: Path, symbol: str) -> bytes | None:
    """The code in a file. None if the file cannot be read, or if its digest is wrong: LLVM would run any bytes."""
    with suppress(OSError):
        content = file.read_bytes()
        digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return code if _code_digest(symbol, code) == digest else None
    return None


def _write_code(file: Path, symbol: str, code: bytes) -> None:
    """Write a file in one step, so that another process finds the whole file or none."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=file.parent, prefix=f"{symbol}.", delete=False) as part:
        try:
            part.write(_code_digest(symbol, code) + code)
            part.flush()
            Path(part.name).replace(file)
        except OSError:
            Path(part.name).unlink()
            raise


def _code_digest(symbol: str, code: bytes) -> bytes:
    return hashlib.sha256(symbol.encode() + code).digest()


@cache
def _processor() -> tuple[str, str]:
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def _machine() -> Any:
    """A new LLVM target for this processor; each engine needs its own."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    cpu, features = _processor()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=_SPEED_LEVEL, jit=True)


@cache
def _engine() -> Any:
    return binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
