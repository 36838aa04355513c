"""Sizes and times as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.units import format_bytes, parse_bytes, parse_int, parse_ms


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1048576", 1048576),
        ("1_048_576", 1048576),
        ("8MiB", 8 * 1024 * 1024),
        ("50 MB", 50_000_000),
        ("64kB", 64_000),
        ("1.5 GiB", 1610612736),
        ("55mib", 57671680),
        (" 7 B ", 7),
    ],
)
def test_a_size_has_a_binary_or_a_decimal_unit_or_none(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "8M", "8 MiBs", "1e6", "0x10", "1,000", "٣", "1 2", "1__0"])
def test_anything_else_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size in bytes such as 1048576, 8MiB or 50 MB"):
        parse_bytes(text)


def test_a_fraction_of_a_byte_is_no_size() -> None:
    with pytest.raises(ValueError, match=r"`0.3kiB` is not a whole number of bytes"):
        parse_bytes("0.3kiB")


@pytest.mark.parametrize(("text", "ms"), [("500", 500), ("500ms", 500), ("1.5 s", 1500), ("2min", 120_000)])
def test_a_time_is_in_milliseconds_unless_it_says_otherwise(text: str, ms: int) -> None:
    assert parse_ms(text) == ms


def test_a_count_has_no_unit() -> None:
    assert parse_int("1_000") == 1000
    assert parse_int(" -131_072") == -131072
    assert parse_int("8.0") == 8
    for text in ("--1", "- 1", "-", "0.5"):
        with pytest.raises(ValueError, match=f"`{text}` is not a whole number"):
            parse_int(text)
    with pytest.raises(ValueError, match="`8MiB` is not a whole number"):
        parse_int("8MiB")


@given(st.integers(min_value=0, max_value=2**63))
def test_a_formatted_size_reads_back_exactly(size: int) -> None:
    assert parse_bytes(format_bytes(size)) == size
