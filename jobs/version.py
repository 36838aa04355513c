"""refetch's version, as pyproject.toml has it, and what tells one decoder from another."""

from __future__ import annotations

from functools import cache

from jobs.paths import ROOT
from udfs import code_digest

VERSION = "0.1.0"


@cache
def decoder() -> str:
    """The version, and a digest of all code that decides what silver rows a capture gives."""
    return f"{VERSION}+{code_digest(ROOT / 'udfs', ROOT / 'schemas')}"
