"""Quantities as people write them in Kafka configurations: bytes and milliseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import isinf

import numpy as np

_BINARY: Mapping[str, int] = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
_DECIMAL: Mapping[str, int] = {"GB": 10**9, "MB": 10**6, "kB": 10**3}
_BYTES: Mapping[str, int] = {**_BINARY, **_DECIMAL, "B": 1, "": 1}
_MS: Mapping[str, int] = {"min": 60_000, "s": 1_000, "ms": 1, "": 1}
_WHOLE = re.compile(r"(-?(?:\d+|\d{1,3}(?:_\d{3})+))(?:\.0+)?", re.ASCII)
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?|\d{1,3}(?:_\d{3})+)\s*([A-Za-z]*)", re.ASCII)


def parse_bytes(text: str) -> int:
    """Bytes from `1048576`, `8MiB`, `50 MB`, `1.5 GiB`; upper and lower case of the unit are the same.

    KiB, MiB, GiB are powers of 1024; kB, MB, GB powers of 1000. Raises ValueError with what is wrong.
    """
    return _parse_quantity(text, _BYTES, "a size in bytes such as 1048576, 8MiB or 50 MB")


def parse_ms(text: str) -> int:
    """Milliseconds from `500`, `500ms`, `30s`, `2 min`. Raises ValueError with what is wrong."""
    return _parse_quantity(text, _MS, "a time such as 500 (ms), 500ms, 30s or 2min")


def parse_int(text: str) -> int:
    """A whole number from `1000`, `1_000` or `-1`. Raises ValueError with what is wrong."""
    match = _WHOLE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"`{text}` is not a whole number")
    return int(match[1].replace("_", ""))


def parse_number(text: str) -> float:
    """A plain decimal number such as `0.05` or `1`. Raises ValueError with what is wrong."""
    if not re.fullmatch(r"\d+(\.\d+)?", text.strip(), re.ASCII):
        raise ValueError(f"`{text}` is not a number such as 0.05")
    return float(text)


def format_bytes(count: int) -> str:
    """The shortest exact spelling: in the largest binary unit that divides the count, else in the largest decimal unit
    that does, else as digits.

    >>> format_bytes(8388608), format_bytes(50_000_000), format_bytes(1025), format_bytes(0)
    ('8MiB', '50MB', '1025', '0')
    """
    for unit, factor in (*_BINARY.items(), *_DECIMAL.items()):
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return str(count)


def format_ms(count: int) -> str:
    """Milliseconds as `500ms`."""
    return f"{count}ms"


def format_number(number: float) -> str:
    """The shortest spelling that `parse_number` reads back.

    >>> format_number(0.05), format_number(2.0), format_number(0.00001)
    ('0.05', '2', '0.00001')
    """
    return np.format_float_positional(number, trim="-")


def _parse_quantity(text: str, units: Mapping[str, int], expected: str) -> int:
    match = _QUANTITY.fullmatch(text.strip())
    factors = {unit.lower(): factor for unit, factor in units.items()}
    if not match or match[2].lower() not in factors:
        raise ValueError(f"`{text}` is not {expected}")
    exact = Fraction(match[1].replace("_", "")) * factors[match[2].lower()]
    if exact.denominator != 1:
        raise ValueError(f"`{text}` is not a whole number of {'bytes' if units is _BYTES else 'units'}")
    return int(exact)


def none_if_infinite(value: float) -> float | None:
    """The value; None if it is infinite, which tables show as null."""
    return None if isinf(value) else value
