"""The key file of --pseudonymise."""

from __future__ import annotations

from pathlib import Path

from udfs.errors import ArgumentError
from udfs.facts.pseudonyms import Pseudonyms

FEWEST_BYTES = 16


def read_pseudonyms(path: str | None, asked_by: str = "--pseudonymise") -> Pseudonyms | None:
    """The pseudonyms under the key in a file, without the file's last line end; None if no file is named.

    asked_by: the argument that names the file. Raises ArgumentError if the file cannot be read, or the key is so
    short that names can be guessed.
    """
    if path is None:
        return None
    try:
        key = Path(path).read_bytes().rstrip(b"\r\n")
    except OSError as fault:
        raise ArgumentError(f"{asked_by} {path}: {fault.strerror}; name a file that holds a secret key") from fault
    if len(key) < FEWEST_BYTES:
        raise ArgumentError(
            f"{asked_by} {path}: the key has {len(key)} bytes, expected at least {FEWEST_BYTES}; "
            f"`openssl rand -hex 32 > {path}` makes one"
        )
    return Pseudonyms(key)
