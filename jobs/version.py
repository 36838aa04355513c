"""refetch's version, as pyproject.toml has it, and what tells one decoder from another."""

from __future__ import annotations

from jobs.paths import ROOT
from udfs import code_digest
from udfs.facts.pseudonyms import Pseudonyms

VERSION = "0.1.0"


def decoder(pseudonyms: Pseudonyms | None) -> str:
    """The version, a digest of all code that decides what silver rows a capture gives, and the key of pseudonyms."""
    named = "" if pseudonyms is None else f"+{pseudonyms.key_id}"
    return f"{VERSION}+{code_digest(ROOT / 'udfs', ROOT / 'schemas')}{named}"
