"""Functions given in LLVM's language: compiled for this processor, kept on disk, loaded.

LLVM takes some hundredths of a second for what numba takes seconds for, most of them to find out the types.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import binding, ir

_SPEED_LEVEL = 2
_DIGEST_BYTES = hashlib.sha256().digest_size


def address_of(name: str, made_from: str, write: Callable[[ir.Module, str], None]) -> int:
    """Where a function is in this process. `write` adds it to a module, under the name it is given, where its machine
    code is not on disk already.

    made_from: all that the function depends on but for the code in udfs, after which the folder is named.
    """
    key = "\0".join((made_from, *_processor(), str(binding.llvm_version_info)))
    symbol = f"{name}_{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    file = Path(os.environ["NUMBA_CACHE_DIR"]) / f"{symbol}.o"
    code = _kept(file)
    if code is None:
        code = _compiled(symbol, write)
        _keep(file, code)
    _engine().add_object_file(binding.ObjectFileRef.from_data(code))
    _engine().finalize_object()
    address: int = _engine().get_function_address(symbol)
    return address


def _compiled(symbol: str, write: Callable[[ir.Module, str], None]) -> bytes:
    module = ir.Module(symbol)
    write(module, symbol)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    passes = binding.create_pass_builder(_machine(), binding.create_pipeline_tuning_options(_SPEED_LEVEL))
    passes.getModulePassManager().run(parsed, passes)
    code: bytes = _machine().emit_object(parsed)
    return code


def _kept(file: Path) -> bytes | None:
    """The code in a file, unless there is none or it is not what was written: LLVM would run, or crash on, anything."""
    with suppress(FileNotFoundError):
        content = file.read_bytes()
        digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return code if hashlib.sha256(code).digest() == digest else None
    return None


def _keep(file: Path, code: bytes) -> None:
    """Write a file at once, so that another process finds all of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(hashlib.sha256(code).digest() + code)
    part.replace(file)


@cache
def _processor() -> tuple[str, str]:
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


@cache
def _machine() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    cpu, features = _processor()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=_SPEED_LEVEL, jit=True)


@cache
def _engine() -> Any:
    return binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
