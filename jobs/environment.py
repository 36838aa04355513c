"""A Python environment, and how uv or pip installs into it what lock files pin: only files whose hashes these state.

Standard library only, like everything that `jobs.bootstrap` needs. uv writes the lock files; CONTRIBUTING.md says how.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jobs.paths import SHOWN_DOCS
from jobs.session.child_process import bound_command
from udfs.errors import SetupError

_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==[^\n]*\n(?:[ ]+[^\n]*\n)*", re.MULTILINE)
"""A pin with the indented lines below it; its first group is the package."""
_HASH = re.compile(r" \\\n +--hash=sha256:[0-9a-f]{64}")
_REFUSED = re.compile(
    r"Hash mismatch for `([^`]+)`"  # uv
    r"|DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.*?\n +(\S+?==\S+?)(?:,| from | \()",  # pip
    re.DOTALL,
)
ANY_HASH = "REFETCH_ANY_HASH"
"""The environment variable with which packages are installed whatever hashes their files have."""
_ADVICE = "Check the network, the proxy or the package index that pip or uv is set to."
_PASSWORD = re.compile(r"(?<=//)[^/@\s]+@")


@dataclass(frozen=True)
class Environment:
    """A virtual environment in `folder`. `build_pins` is the lock file of pip, uv, and the packages that build packages
    without a wheel."""

    folder: Path
    build_pins: Path

    @property
    def python(self) -> Path:
        """Its Python, whether it is there or not."""
        return self.folder / "bin" / "python"

    @property
    def log(self) -> Path:
        """The file with the output of the last command, beside the folder."""
        return self.folder.with_suffix(".log")

    def make(self, base_python: Path) -> None:
        """Make it anew, without packages."""
        uv = shutil.which("uv")
        with_uv = [uv or "", "venv", "--quiet", "--python", str(base_python)]
        maker = with_uv if uv else [str(base_python), "-m", "venv"]
        shutil.rmtree(self.folder, ignore_errors=True)
        advice = "On Debian and Ubuntu: apt install python3-venv."
        self._run([*maker, str(self.folder)], "make a virtual environment", advice)

    def install(self, *pins: Path) -> None:
        """Install what these lock files pin. Raises SetupError, with a message of its own for a file whose hash is none
        of those in the lock file.
        """
        self._run([*self._installer, *self._from(*pins)], "install the Python packages", _ADVICE)

    def part(self, pin: Path, packages: Collection[str]) -> Path:
        """A lock file with only the pins of these packages."""
        part = self.folder / f"{'-'.join(packages)}.txt"
        part.write_text(pins_of(pin.read_text(), packages))
        return part

    @cached_property
    def _installer(self) -> list[str]:
        """The command that installs: that of uv, which pip installs first if it is missing; else that of pip, which
        takes longer.
        """
        build = str(_pins_to_install(self.build_pins, self.folder))
        uv = shutil.which("uv") or self._brought_uv()
        if uv is None:
            return [*self._pip, "--build-constraint", build]
        # pip compiles what it installs. uv leaves that to the first import, which may have no right to write it.
        command = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(self.python)]
        return [*command, "--build-constraints", build]

    def _brought_uv(self) -> str | None:
        """The uv that pip installs; None if there is none for this machine."""
        # An environment that uv made has no pip.
        subprocess.run([str(self.python), "-m", "ensurepip"], capture_output=True, check=False)
        # Python's own pip may be too old to compare the hashes of what packages are built with.
        pip = self._from(self.part(self.build_pins, ["pip"]))
        self._run([*self._pip, *pip], "install the Python packages", _ADVICE)
        uv = self._from(self.part(self.build_pins, ["uv"]))
        brought = subprocess.run([*self._pip, *uv], capture_output=True, check=False).returncode == 0
        return str(self.python.with_name("uv")) if brought else None

    @property
    def _pip(self) -> list[str]:
        return [str(self.python), "-m", "pip", "install", "--quiet"]

    def _from(self, *pins: Path) -> list[str]:
        """The arguments that install what these lock files pin, and nothing else; they are the same for pip and uv.

        When uv wrote the lock files it resolved what each package needs, with the overrides of pyproject.toml, which an
        installer does not read.
        """
        files = [part for pin in pins for part in ("-r", str(_pins_to_install(pin, self.folder)))]
        return ["--no-deps", *files] if os.environ.get(ANY_HASH) else ["--no-deps", "--require-hashes", *files]

    def _run(self, command: Sequence[str], what: str, advice: str) -> None:
        with self.log.open("w") as log:
            code = subprocess.run(bound_command(command), stdout=log, stderr=subprocess.STDOUT, check=False).returncode
        if code:
            output = self.log.read_text(errors="replace")
            self._check_refused(output)
            lines = [line.strip() for line in output.splitlines() if line.strip()]
            last = _PASSWORD.sub("", lines[-1]) if lines else "it gave no reason"
            program = Path(command[0]).name
            raise SetupError(f"Could not {what} ({program} left with {code}: {last}). {advice} Its output: {self.log}")

    def _check_refused(self, output: str) -> None:
        pin = pin_with_other_hash(output)
        if pin:
            raise SetupError(
                f"{pin} was not installed: the file that came is none of those whose hashes the lock file has. If it "
                "was damaged on its way, empty the caches (uv cache clean, pip cache purge) and try again. If your "
                f"package index builds packages itself, {SHOWN_DOCS}/running.md#hashes-of-packages says how to use "
                "them. Otherwise somebody may have changed the file: do not install it, and report it. Both hashes: "
                f"{self.log}"
            )


def _pins_to_install(pin: Path, folder: Path) -> Path:
    """The lock file itself; if any hash is allowed, a copy of it in this folder without hashes."""
    if not os.environ.get(ANY_HASH):
        return pin
    plain = folder / f"any-hash-{pin.name}"
    plain.write_text(without_hashes(pin.read_text()))
    return plain


def pins_of(lock: str, packages: Collection[str]) -> str:
    """The pins of these packages, with their hashes."""
    return "".join(pin[0] for pin in _PIN.finditer(lock) if pin[1] in packages)


def without_hashes(lock: str) -> str:
    """The pins of a lock file without their hashes, so that they may be installed from any file."""
    return _HASH.sub("", lock)


def pin_with_other_hash(output: str) -> str | None:
    """The pin whose file had another hash, such as `numba==0.68.1`, as uv or pip printed it; None if there is none."""
    match = _REFUSED.search(output)
    return None if match is None else match[1] or match[2]
