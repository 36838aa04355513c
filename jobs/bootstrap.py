"""What ./spark-submit.sh runs: sets up the Python environment where it is missing or stale, then hands over to it.

Standard library only: it runs in whatever Python 3.11 or newer the machine has.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from jobs.cli import parse_arguments, run_guarded
from jobs.environment import Environment
from jobs.paths import ROOT
from jobs.quickstart import quickstart_arguments
from jobs.session.child_process import bound_command, end_at_exit
from jobs.session.java import check_java, utf8_locale
from jobs.terminal.signals import end_at_signals, end_plainly, hold_signals
from jobs.terminal.streams import survive_closed_streams
from udfs.errors import SetupError
from udfs.kernels.compiled_parts import QUICKSTART
from udfs.kernels.one_at_a_time import one_at_a_time

VENV = ROOT / ".venv"
RUN_PINS = ROOT / "requirements.txt"
TEST_PINS = ROOT / "requirements-dev.txt"
BUILD_PINS = ROOT / "requirements-build.txt"
KERNEL_PACKAGES = ("llvmlite", "numba", "numpy", "pyarrow", "zstandard")
"""The packages that udfs.kernels.warm_up imports, and the packages that these need."""
_TO_RUN = "check that you may run it, and that there is memory left"
ALL_TESTS = ("-n2", "--dist=loadfile", "--no-loadscope-reorder")
"""pytest's arguments where none are given: two processes, each with a Spark of its own, in pytest's order of files."""


def main(argv: Sequence[str]) -> int:
    """Run `test [pytest arguments]`, a job with its flags, or the quickstart. Returns an exit code, if it returns."""
    survive_closed_streams()
    end_at_signals()
    return run_guarded(lambda: _hand_over(list(argv) or quickstart_arguments()))


def _hand_over(argv: list[str]) -> NoReturn:
    if argv[0] == "test":
        python = prepare_python(RUN_PINS, TEST_PINS)
        os.chdir(ROOT)
        end_plainly()
        _start_python(python, "-m", "pytest", *(argv[1:] or ALL_TESTS))
    # Help is printed and wrong flags are reported here, before minutes of set-up.
    parse_arguments(argv, prog="spark-submit.sh")
    python = prepare_python(RUN_PINS)
    hold_signals()
    _start_python(python, "-P", "-m", "jobs", *argv)


def _start_python(python: Path, *arguments: str) -> NoReturn:
    sys.stdout.flush()
    os.environ |= utf8_locale()
    try:
        os.execv(python, [str(python), *arguments])  # noqa: S606 - no shell is the point
    except OSError as fault:
        raise SetupError(f"{python}: does not start: {fault.strerror or fault}; {_TO_RUN}") from fault


def prepare_python(*pins: Path) -> Path:
    """A Python that has the packages pinned in these files: the one that REFETCH_PYTHON names, which is not changed,
    else that of .venv, which is set up if needed.

    Raises SetupError if Java is missing (before anything is downloaded) or the packages cannot be installed.
    """
    python_named = os.environ.get("REFETCH_PYTHON")
    if python_named:
        return _check_given_python(python_named)
    python = VENV / "bin" / "python"
    if _is_current(python, pins):
        return python
    check_java()
    with one_at_a_time(ROOT / ".venv.lock"):  # a second command started meanwhile finds it done
        if not _is_current(python, pins):
            _set_up(python, pins)
    return python


def _check_given_python(name: str) -> Path:
    executable = shutil.which(name)
    if not executable:
        raise SetupError(
            f"REFETCH_PYTHON is {name}, {_why_not_run(name)}; name a Python with requirements.txt installed, or "
            "unset it"
        )
    return Path(executable)


def _why_not_run(name: str) -> str:
    try:
        is_folder = stat.S_ISDIR(os.stat(name).st_mode)
    except PermissionError:
        return "which is in a folder that is closed to you"
    except OSError:
        return "which does not exist"
    return "which is a folder" if is_folder else "which you may not run"


def _is_current(python: Path, pins: Sequence[Path]) -> bool:
    return python.exists() and all(
        _stamp_file(pin).is_file() and _stamp_file(pin).read_text() == _digest_of_pins(pin) for pin in pins
    )


def _set_up(python: Path, pins: Sequence[Path]) -> None:
    """Install the packages of lock files that have no stamp yet. The stamp of a file is written last, so that an
    interrupted set-up is done again.
    """
    fresh = not _is_current(python, pins[:1])
    environment = Environment(VENV, BUILD_PINS)
    _print_step(f"Setting up the Python environment in {VENV} (needed once; a few minutes if nothing is cached) ...")
    if fresh:
        environment.make(base_python())
        environment.install(environment.part(pins[0], KERNEL_PACKAGES))
        _start_compiling(python)
    environment.install(*pins)
    for pin in pins:
        _stamp_file(pin).write_text(_digest_of_pins(pin))
    environment.log.unlink(missing_ok=True)
    _print_step("Done.")


def _start_compiling(python: Path) -> None:
    """Compile the kernels in the background. The job waits for them, and reports faults."""
    for parts in QUICKSTART:
        command = bound_command([str(python), "-P", "-m", "udfs.kernels.warm_up", *parts])
        # The program that this process becomes stays their parent; nothing here has to wait for them.
        nowhere = subprocess.DEVNULL
        end_at_exit(subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere))


def base_python() -> Path:
    """The Python outside any virtual environment: .venv's own is deleted when .venv is made anew."""
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return base if base.exists() else Path(sys.executable)


def _stamp_file(pin: Path) -> Path:
    return VENV / f".{pin.name}.sha256"


def _digest_of_pins(pin: Path) -> str:
    return hashlib.sha256(pin.read_bytes()).hexdigest()


def _print_step(text: str) -> None:
    sys.stderr.write(f"refetch: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
