"""Where a body begins, which version it has, and which bytes can be a request at all."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.wire.apis import APIS
from tests.unit.wire.reference import be, in_arena
from udfs.columns.arrays import read_only
from udfs.wire.faults import DecodeFault
from udfs.wire.header import API_TABLE, plausible_request, request_header, response_body_start, response_version

FETCH, PRODUCE, API_VERSIONS, CONTROLLED_SHUTDOWN = 1, 0, 18, 7


def header_of(frame: bytes) -> tuple[int, ...]:
    """request_header, its offsets counted from the frame's start."""
    arena, start, end = in_arena(frame)
    *ids, client_id, length, body = request_header(arena, start, end, API_TABLE)
    return (*(int(value) for value in ids), max(client_id - start, -1), int(length), max(body - start, -1))


def is_plausible(frame: bytes, size: int | None = None) -> bool:
    arena, start, end = in_arena(frame)
    return bool(plausible_request(arena, start, end, len(frame) if size is None else size, API_TABLE))


def test_a_header_v1_ends_with_the_client_id() -> None:
    assert header_of(be("hhih", FETCH, 11, 42, 3) + b"abcbody") == (DecodeFault.OK, FETCH, 11, 42, 10, 3, 13)


def test_a_header_v2_ends_with_tags_and_keeps_the_long_client_id_length() -> None:
    frame = be("hhih", FETCH, 12, 42, 3) + b"abc" + b"\1\5\2xx" + b"body"
    assert header_of(frame) == (DecodeFault.OK, FETCH, 12, 42, 10, 3, 18)


def test_a_null_client_id_has_length_minus_one() -> None:
    assert header_of(be("hhih", FETCH, 4, 42, -1)) == (DecodeFault.OK, FETCH, 4, 42, 10, -1, 10)


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    assert header_of(be("hhi", CONTROLLED_SHUTDOWN, 0, 42) + b"body") == (0, CONTROLLED_SHUTDOWN, 0, 42, 8, -1, 8)


def test_a_request_that_ends_after_its_ids_still_has_them() -> None:
    assert header_of(be("hhi", FETCH, 11, 42)) == (DecodeFault.TRUNCATED, FETCH, 11, 42, -1, -1, -1)


def test_a_version_newer_than_known_is_taken_for_flexible() -> None:
    assert header_of(be("hhih", FETCH, 99, 42, -1) + b"\0")[-1] == 11


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (be("hhi", FETCH, 11, 42)[:-1], DecodeFault.TRUNCATED),
        (be("hhi", FETCH, 11, 42) + b"\0", DecodeFault.TRUNCATED),
        (be("hhih", FETCH, 11, 42, 4) + b"abc", DecodeFault.BAD_LENGTH),
        (be("hhih", FETCH, 12, 42, -1), DecodeFault.TRUNCATED),
        (be("hhih", FETCH, 12, 42, -1) + b"\2\1\0", DecodeFault.BAD_COUNT),
        (be("hhih", FETCH, 12, 42, -1) + b"\1\5\2x", DecodeFault.BAD_LENGTH),
        (be("hhih", FETCH, 12, 42, -1) + b"\2\5\0\5\0", DecodeFault.BAD_TAG),
        (be("hhih", FETCH, 12, 42, -1) + b"\xff" * 6, DecodeFault.BAD_VARINT),
        (be("hhih", 95, 0, 42, -1), DecodeFault.UNKNOWN_API),
        (be("hhih", -1, 0, 42, -1), DecodeFault.UNKNOWN_API),
    ],
)
def test_a_broken_header_has_a_named_fault_and_no_body(frame: bytes, fault: DecodeFault) -> None:
    header = header_of(frame)
    assert (header[0], header[-1]) == (fault, -1)


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (5, 4), (0, 49)])
def test_a_range_that_is_not_in_the_arena_is_not_read(start: int, end: int) -> None:
    arena = read_only(np.zeros(48, np.uint8))
    assert request_header(arena, start, end, API_TABLE)[0] == DecodeFault.BAD_FRAME
    assert response_body_start(arena, start, end, FETCH, 11, API_TABLE)[0] == DecodeFault.BAD_FRAME


@pytest.mark.parametrize(
    ("api_key", "version", "frame", "body"),
    [
        (FETCH, 11, be("i", 42) + b"body", 4),
        (FETCH, 12, be("i", 42) + b"\1\5\2xx" + b"body", 9),
        (API_VERSIONS, 3, be("i", 42) + b"body", 4),
    ],
)
def test_a_response_header_has_tags_if_the_request_was_flexible_except_for_api_versions(
    api_key: int, version: int, frame: bytes, body: int
) -> None:
    arena, start, end = in_arena(frame)
    found = response_body_start(arena, start, end, api_key, version, API_TABLE)
    assert (found[0], found[1], found[2] - start) == (DecodeFault.OK, 42, body)


@pytest.mark.parametrize(("api_key", "error", "version"), [(API_VERSIONS, 35, 0), (API_VERSIONS, 0, 5), (FETCH, 35, 5)])
def test_a_broker_that_does_not_know_the_version_of_api_versions_answers_in_version_0(
    api_key: int, error: int, version: int
) -> None:
    arena, start, end = in_arena(be("hi", error, 0))
    assert response_version(arena, start, end, api_key, 5) == version


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_every_known_api_is_plausible_up_to_three_versions_ahead(api: object) -> None:
    key, newest = api.key, api.last_version  # type: ignore[attr-defined]
    assert is_plausible(be("hhih", key, newest + 3, 1, 2) + b"me" + b"\0")
    assert not is_plausible(be("hhih", key, newest + 4, 1, 2) + b"me" + b"\0")
    assert not is_plausible(be("hhih", key, -1, 1, 2) + b"me" + b"\0")


@pytest.mark.parametrize(
    ("frame", "plausible"),
    [
        (be("hhih", FETCH, 11, 1, -1), True),
        (be("hhih", FETCH, 11, 1, 6) + "größ".encode(), True),
        (be("hhih", FETCH, 11, 1, 3) + b"a\nb", False),
        (be("hhih", FETCH, 11, 1, 3) + b"a\x7fb", False),
        (be("hhih", FETCH, 11, 1, 300) + b"abc", False),
        (b"GET / HTTP/1.1\r\n", False),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00", False),
        (b"", False),
    ],
)
def test_a_request_is_recognised_by_what_its_header_says(frame: bytes, plausible: bool) -> None:
    assert is_plausible(frame) == plausible


def test_a_header_must_fit_the_declared_size() -> None:
    frame = be("hhih", FETCH, 11, 1, 3) + b"abc" + b"next frame"
    assert is_plausible(frame, size=13)
    assert not is_plausible(frame, size=12)


@pytest.mark.parametrize(
    ("client_id", "is_one"),
    [
        (b"console\x1b[31m-consumer", True),
        (b"two\nlines", True),
        ("größe".encode(), True),
        (b"\0\0\0\1", False),
        (b"a\x01\x02", False),
        ("größe\t".encode(), False),
    ],
)
def test_a_client_id_is_text_with_few_control_characters(client_id: bytes, is_one: bool) -> None:
    assert is_plausible(be("hhih", FETCH, 11, 42, len(client_id)) + client_id) is is_one
