"""The lock files have a hash for every package that is installed, and do not say where it came from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from jobs.environment import pin_with_other_hash, pins_of, without_hashes

LOCKS = ("requirements.txt", "requirements-dev.txt", "requirements-build.txt")
PIN = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)

LOCK = """\
# Written by uv.
numba==0.68.1 \\
    --hash=sha256:{one} \\
    --hash=sha256:{two}
    # via refetch (pyproject.toml)
numba-more==1 ; python_full_version < '3.12' \\
    --hash=sha256:{two}
numpy==2.4.6 \\
    --hash=sha256:{one}
    # via
    #   numba
    #   refetch
""".format(one="1" * 64, two="2" * 64)

TOLD_BY_UV = """\
error: Failed to download `altair==6.3.0`
  cause: Hash mismatch for `altair==6.3.0`

         Expected:
           sha256:00
"""
TOLD_BY_PIP = """\
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, \
please update the hashes. Otherwise, examine the package contents carefully; someone may have tampered with them.
    altair==6.3.0 from https://mirror.example/altair-6.3.0-py3-none-any.whl (from -r requirements.txt (line 3)):
        Expected sha256 00
"""


@pytest.fixture(params=LOCKS)
def lock(request: pytest.FixtureRequest, repository: Path) -> str:
    return (repository / str(request.param)).read_text()


def test_every_pin_has_a_hash(lock: str) -> None:
    pins = re.split(r"\n(?=[a-z])", lock)[1:]
    assert len(pins) >= 3
    assert [pin.partition("\n")[0] for pin in pins if "--hash=sha256:" not in pin] == []


def test_a_lock_file_names_no_index_and_no_address(lock: str) -> None:
    assert re.findall(r"https?:|//|--(?:extra-)?index|--find-links", lock) == []


def test_lock_files_agree_on_packages_that_they_share(repository: Path) -> None:
    pins: dict[str, set[str]] = {}
    for name in LOCKS:
        for package, version in PIN.findall(without_hashes((repository / name).read_text())):
            pins.setdefault(package, set()).add(version)
    # Which version of these is installed depends on Python's version.
    assert {package for package, versions in pins.items() if len(versions) > 1} == {"deprecated", "scipy"}


def test_lock_files_have_what_the_project_declares(repository: Path) -> None:
    declared = tomllib.loads((repository / "pyproject.toml").read_text())
    asked = (declared["project"]["dependencies"], *(declared["dependency-groups"][of] for of in ("dev", "build")))
    for name, requirements in zip(LOCKS, asked, strict=True):
        locked = [f"{package}=={version}" for package, version in PIN.findall((repository / name).read_text())]
        assert {one for one in requirements if "==" in one} <= {*locked}


def test_tests_import_jsonschema_as_users_do(repository: Path) -> None:
    """With a package that only cyclonedx-bom asks for, each import of jsonschema takes 1.6 seconds longer."""
    tests = (repository / "requirements-dev.txt").read_text()
    pinned = re.findall(r"^rfc3987-syntax==.*", tests, re.MULTILINE)
    assert [pin for pin in pinned if "sys_platform == 'never'" not in pin] == []


def test_some_pins_are_taken_out_whole() -> None:
    taken = pins_of(LOCK, {"numba", "numpy", "scipy"})
    assert taken == LOCK.replace("# Written by uv.\n", "").replace(taken_out(LOCK, "numba-more"), "")


def taken_out(lock: str, package: str) -> str:
    (pin,) = re.findall(rf"^{package}==.*\n.*\n", lock, re.MULTILINE)
    return str(pin)


def test_pins_without_hashes_are_the_same_pins() -> None:
    assert without_hashes(LOCK).splitlines() == [
        "# Written by uv.",
        "numba==0.68.1",
        "    # via refetch (pyproject.toml)",
        "numba-more==1 ; python_full_version < '3.12'",
        "numpy==2.4.6",
        "    # via",
        "    #   numba",
        "    #   refetch",
    ]


@pytest.mark.parametrize("told", [TOLD_BY_UV, TOLD_BY_PIP], ids=["uv", "pip"])
def test_a_file_of_another_hash_is_recognised_by_what_the_installer_says(told: str) -> None:
    assert pin_with_other_hash(told) == "altair==6.3.0"


def test_a_package_that_fails_for_another_reason_was_not_refused() -> None:
    assert pin_with_other_hash("error: Failed to fetch: `https://mirror.example/simple/numba/`") is None
