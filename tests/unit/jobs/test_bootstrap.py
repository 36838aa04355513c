"""When the environment is set up, and what the message says if it cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jobs import bootstrap
from tests.conftest import REPOSITORY
from udfs.errors import SetupError

FAKE_UV = """\
import pathlib, sys
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join(arguments) + chr(10))
if arguments[0] == "venv":
    python = pathlib.Path(arguments[-1]) / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to({python!r})
elif pathlib.Path({broken!r}).exists():
    sys.exit(pathlib.Path({broken!r}).read_text())
"""


FAKE_PYTHON = """\
#!/bin/sh
all="$*"
echo "$2 ${{all##* -r }}" >> "{log}"
case "$*" in *uv.txt) exit 1 ;; esac
"""

UNREACHABLE = "error: Failed to fetch: `https://me:secret@mirror.example/simple/numba/`"
OF_ANOTHER_HASH = """\
error: Failed to download `numba==1`
  cause: Hash mismatch for `numba==1`

         Expected:
           sha256:1111

         Computed:
           sha256:2222
"""
HASH = f"--hash=sha256:{'1' * 64}"


class Machine:
    """A clone with its lock files, and a uv that records the commands it gets."""

    def __init__(self, folder: Path) -> None:
        self.run_pins, self.test_pins = folder / "requirements.txt", folder / "requirements-dev.txt"
        self.log, self.broken = folder / "uv.log", folder / "broken"
        self.build_pins = folder / "requirements-build.txt"
        self.run_pins.write_text(f"numba==1 \\\n    {HASH}\naltair==1 \\\n    {HASH}\n")
        self.test_pins.write_text("pytest==1\n")
        self.build_pins.write_text(f"pip==1 \\\n    {HASH}\nuv==1 \\\n    {HASH}\n")
        uv = folder / "bin" / "uv"
        uv.parent.mkdir()
        script = folder / "uv.py"
        script.write_text(FAKE_UV.format(python=sys.executable, log=str(self.log), broken=str(self.broken)))
        # Not by `#!python`, which cannot name a path with a space in it.
        uv.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        uv.chmod(0o755)

    def lose_uv(self) -> None:
        """Take uv off PATH. From now on, .venv's Python records the modules that it runs, and cannot bring uv back."""
        (self.run_pins.parent / "bin" / "uv").unlink()
        python = bootstrap.VENV / "bin" / "python"
        python.unlink()
        python.write_text(FAKE_PYTHON.format(log=self.log))
        python.chmod(0o755)

    def asked(self) -> list[str]:
        """The commands that uv got since the last call, only the first two words of each."""
        return [" ".join(line.split()[:2]) for line in self.commands()]

    def commands(self) -> list[str]:
        """The commands that uv got since the last call."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(bootstrap, "BUILD_PINS", tmp_path / "requirements-build.txt")
    monkeypatch.setattr(bootstrap, "check_java", lambda: None)
    monkeypatch.setattr(bootstrap, "QUICKSTART", ())  # what compiles beside a test would run in the next one, too
    monkeypatch.delenv("REFETCH_PYTHON", raising=False)
    monkeypatch.delenv("REFETCH_ANY_HASH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Machine(tmp_path)


def test_the_environment_is_set_up_once(machine: Machine) -> None:
    python = bootstrap.prepare_python(machine.run_pins)
    assert (python, machine.asked()) == (bootstrap.VENV / "bin/python", ["venv --quiet", "pip install", "pip install"])
    assert (bootstrap.prepare_python(machine.run_pins), machine.asked()) == (python, [])


def test_a_changed_lock_file_sets_it_up_again(machine: Machine) -> None:
    bootstrap.prepare_python(machine.run_pins)
    machine.asked()
    machine.run_pins.write_text(machine.run_pins.read_text().replace("1" * 64, "2" * 64))
    bootstrap.prepare_python(machine.run_pins)
    assert machine.asked() == ["venv --quiet", "pip install", "pip install"]


def test_packages_for_tests_are_installed_in_addition(machine: Machine) -> None:
    bootstrap.prepare_python(machine.run_pins)
    machine.asked()
    bootstrap.prepare_python(machine.run_pins, machine.test_pins)
    assert machine.asked() == ["pip install"]
    bootstrap.prepare_python(machine.run_pins)
    assert machine.asked() == []


def test_an_environment_that_uv_made_gets_pip_if_uv_is_gone(machine: Machine) -> None:
    bootstrap.prepare_python(machine.run_pins)
    machine.lose_uv()
    machine.asked()
    bootstrap.prepare_python(machine.run_pins, machine.test_pins)
    parts = [bootstrap.VENV / "pip.txt", bootstrap.VENV / "uv.txt"]
    assert machine.commands() == ["ensurepip -m ensurepip", *(f"pip {pins}" for pins in [*parts, machine.test_pins])]
    assert "".join(part.read_text() for part in parts) == machine.build_pins.read_text()


def test_an_interrupted_set_up_is_done_again(machine: Machine) -> None:
    machine.broken.write_text(UNREACHABLE)
    with pytest.raises(SetupError):
        bootstrap.prepare_python(machine.run_pins)
    machine.broken.unlink()
    machine.asked()
    bootstrap.prepare_python(machine.run_pins)
    assert machine.asked() == ["venv --quiet", "pip install", "pip install"]


def test_the_environment_is_not_made_by_its_own_python(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted set-up may leave .venv's Python as the one that runs."""
    monkeypatch.setattr(sys, "executable", str(bootstrap.VENV / "bin/python"))
    assert bootstrap.VENV not in bootstrap.base_python().parents
    assert bootstrap.base_python().exists()


def test_the_message_on_packages_that_cannot_be_fetched_has_no_password_of_the_index(machine: Machine) -> None:
    machine.broken.write_text(UNREACHABLE)
    with pytest.raises(SetupError) as raised:
        bootstrap.prepare_python(machine.run_pins)
    told = str(raised.value)
    assert told.startswith(
        "Could not install the Python packages (uv left with 1: error: Failed to fetch: `https://mirror"
    )
    assert "Check the network, the proxy or the package index" in told
    assert "secret" not in told


def test_each_file_is_compared_with_the_lock_files_hashes(machine: Machine) -> None:
    bootstrap.prepare_python(machine.run_pins)
    _, kernels, everything = machine.commands()
    assert all(" --no-deps " in command for command in (kernels, everything))
    assert all(f"--build-constraints {machine.build_pins}" in command for command in (kernels, everything))
    assert everything.endswith(f" --require-hashes -r {machine.run_pins}")
    before, part = kernels.split(" --require-hashes -r ")
    assert before
    assert Path(part).read_text() == f"numba==1 \\\n    {HASH}\n"


def test_the_message_on_a_file_with_another_hash_says_what_to_do(machine: Machine) -> None:
    machine.broken.write_text(OF_ANOTHER_HASH)
    with pytest.raises(SetupError) as raised:
        bootstrap.prepare_python(machine.run_pins)
    told = str(raised.value)
    assert told.startswith("numba==1 was not installed: the file that came is none of those whose hashes")
    assert "docs/running.md#hashes-of-packages" in told
    assert "## Hashes of packages\n" in (REPOSITORY / "docs" / "running.md").read_text()
    assert told.endswith(f"Both hashes: {bootstrap.VENV.parent / '.venv.log'}")
    machine.asked()
    machine.broken.unlink()
    bootstrap.prepare_python(machine.run_pins)
    assert machine.asked() == ["venv --quiet", "pip install", "pip install"]


def test_an_index_that_builds_packages_itself_can_be_used_without_hashes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFETCH_ANY_HASH", "1")
    python = bootstrap.prepare_python(machine.run_pins)
    _, kernels, everything = machine.commands()
    assert "--require-hashes" not in kernels + everything
    assert Path(kernels.rpartition(" -r ")[2]).read_text() == "numba==1\n"
    assert Path(everything.rpartition(" -r ")[2]).read_text() == "numba==1\naltair==1\n"
    assert (bootstrap.prepare_python(machine.run_pins), machine.commands()) == (python, [])


def test_without_java_nothing_is_downloaded(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> None:
        raise SetupError("No Java found")

    monkeypatch.setattr(bootstrap, "check_java", no_java)
    with pytest.raises(SetupError, match="No Java found"):
        bootstrap.prepare_python(machine.run_pins)
    assert machine.asked() == []


def test_a_given_python_is_used_as_it_is(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFETCH_PYTHON", sys.executable)
    assert bootstrap.prepare_python(machine.run_pins) == Path(sys.executable)
    assert machine.asked() == []


@pytest.mark.parametrize(
    ("name", "why"),
    [("gone", "does not exist"), ("plain", "you may not run"), ("bin", "is a folder"), ("x" * 300, "does not exist")],
)
def test_the_message_on_a_python_that_cannot_be_run_has_the_reason(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    (tmp_path / "plain").touch(mode=0o600)
    monkeypatch.setenv("REFETCH_PYTHON", str(tmp_path / name))
    with pytest.raises(SetupError, match=f"REFETCH_PYTHON is .*, which {why}; name a Python"):
        bootstrap.prepare_python(machine.run_pins)


def test_a_python_in_a_closed_folder_is_distinguished_from_a_missing_one(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: object) -> None:
        raise PermissionError

    monkeypatch.setenv("REFETCH_PYTHON", str(tmp_path / "python"))
    monkeypatch.setattr("jobs.bootstrap.os.stat", closed)
    monkeypatch.setattr("jobs.bootstrap.shutil.which", lambda name: None)
    with pytest.raises(SetupError, match="which is in a folder that is closed to you"):
        bootstrap.prepare_python(machine.run_pins)


def test_the_message_names_a_python_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=rf"^{tmp_path}/python: does not start: No such file or directory; check"):
        bootstrap._start_python(tmp_path / "python")
