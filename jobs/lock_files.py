"""The lock files: pins, each with the hashes of all the files that it may be installed from.

Standard library alone, as for all that `jobs.bootstrap` needs. uv writes the files; CONTRIBUTING.md has the command.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==[^\n]*\n(?:[ ]+[^\n]*\n)*", re.MULTILINE)
"""A pin with the lines below it that belong to it; its first group is the package."""
_HASH = re.compile(r" \\\n +--hash=sha256:[0-9a-f]{64}")
_REFUSED = re.compile(
    r"Hash mismatch for `([^`]+)`"  # uv
    r"|DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.*?\n +(\S+?==\S+?)(?:,| from | \()",  # pip
    re.DOTALL,
)


def pins_of(lock: str, packages: Collection[str]) -> str:
    """The pins of these packages, with their hashes."""
    return "".join(pin[0] for pin in _PIN.finditer(lock) if pin[1] in packages)


def without_hashes(lock: str) -> str:
    """The same pins, which may then be installed from any file."""
    return _HASH.sub("", lock)


def pin_with_other_hash(output: str) -> str | None:
    """The pin whose file had another hash, such as `numba==0.68.1`, by what uv or pip printed; None if none had."""
    match = _REFUSED.search(output)
    return None if match is None else match[1] or match[2]
