"""Columns of frames become columns of structs: every message and version, whatever else is in the column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.wire.apis import APIS
from schemas.wire.message import Message
from tests.unit.frames.kafka_frames import decoded_struct, frame_of, request, response, sized
from tests.unit.wire.reference import MESSAGES, be, message_values
from tests.unit.wire.test_hostile_frames import damage, damaged
from udfs.errors import FrameError
from udfs.frames.spark_functions import NAMES, decoded_column, frame_function, result_type, spelt_in_snake_case

FETCH_V4 = be("iiiib", -1, 500, 1, 1048576, 0) + be("i", 0)
SASL_AUTHENTICATE = 36
ids = spelt_in_snake_case


def newest(message: Message) -> int:
    return int(message.versions.split("-")[1])


def column(name: str, versions: Sequence[int | None], frames: Sequence[bytes | None]) -> pa.Array[Any]:
    """The function's result, checked to be valid Arrow of the declared type."""
    found = decoded_column(name, pa.array(versions, pa.int32()), pa.array(frames, pa.binary()))
    found.validate(full=True)
    assert found.type == result_type(name)
    return found


def rows_of(found: pa.Array[Any]) -> list[dict[str, Any]]:
    """The structs of a result, checked not to be null."""
    rows = [row for row in found.to_pylist() if row is not None]
    assert len(rows) == len(found)
    return rows


def faults(name: str, versions: list[int | None], frames: list[bytes | None]) -> list[str | None]:
    found = column(name, versions, frames)
    return [row and row["decode_fault"] for row in found.to_pylist()]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: ids(message.name))
@settings(max_examples=2)
@given(data=st.data())
def test_every_version_of_a_message_can_be_in_one_column(message: Message, data: st.DataObject) -> None:
    versions = list(range(newest(message) + 1))
    values = [data.draw(message_values(message, version)) for version in versions]
    frames = [frame_of(message, version, value) for version, value in zip(versions, values, strict=True)]
    found = column(ids(message.name), versions, frames)
    of_versions = zip(versions, values, strict=True)
    assert found.to_pylist() == [decoded_struct(message, version, value) for version, value in of_versions]


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_rows_do_not_depend_on_how_the_column_is_cut_into_batches(rows: int) -> None:
    topic = be("h", 1) + b"t" + be("i", 2) + be("iqi", 0, 5, 100) + be("iqi", 1, 6, 100)
    fetch = request(1, 4, FETCH_V4[:-4] + be("i", 1) + topic)
    frames = pa.array([fetch, request(1, 4, FETCH_V4), None, fetch[:-3], fetch, b"", b"noise"] * 30, pa.binary())
    versions = pa.array([4, 4, 4, 4, None, 4, 4] * 30, pa.int8())
    whole = decoded_column("fetch_request", versions, frames)
    cuts = range(0, len(frames), rows)
    parts = [decoded_column("fetch_request", versions.slice(at, rows), frames.slice(at, rows)) for at in cuts]
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: ids(message.name))
@settings(max_examples=8)
@given(data=st.data())
def test_bytes_from_anyone_are_a_struct_of_nulls_with_a_reason(message: Message, data: st.DataObject) -> None:
    version = data.draw(st.integers(0, newest(message)))
    frame = damage(frame_of(message, version, data.draw(message_values(message, version))), *data.draw(damaged))
    noise = data.draw(st.binary(max_size=60))
    good = frame_of(message, version, data.draw(message_values(message, version)))
    given_version = data.draw(st.none() | st.integers(-(2**31), 2**31 - 1))
    found = column(ids(message.name), [version, version, given_version, version], [frame, sized(noise), noise, good])
    for row in rows_of(found):
        fault = row.pop("decode_fault")
        assert fault is None or set(map(str, row.values())) == {"None"}
    assert fault is None, "a neighbour's fault is its own"


WRONG = {
    "cut": ("fetch_request", 4, request(1, 4, FETCH_V4)[:-1], "truncated"),
    "empty": ("fetch_request", 4, b"", "truncated"),
    "longer than its size": ("fetch_request", 4, request(1, 4, FETCH_V4) + b"\0", "trailing_bytes"),
    "a negative size": ("fetch_request", 4, b"\xff\xff\xff\xff" + FETCH_V4, "bad_length"),
    "of another API": ("fetch_request", 1, request(3, 1, be("i", -1)), "other_api"),
    "of an API with credentials": ("fetch_request", 0, request(SASL_AUTHENTICATE, 0, be("i", 3) + b"pwd"), "other_api"),
    "of no API": ("fetch_request", 4, request(999, 4, FETCH_V4), "unknown_api"),
    "in another version than was said": ("fetch_request", 5, request(1, 4, FETCH_V4), "other_version"),
    "in a version of tomorrow": ("fetch_request", None, request(1, 99, FETCH_V4, flexible=True), "unknown_version"),
    "a response whose version nobody says": ("fetch_response", None, response(be("i", 0)), "unknown_version"),
    "a response in a version below 0": ("fetch_response", -3, response(be("i", 0)), "unknown_version"),
    "a response in a version that is none": ("fetch_response", 70_000, response(be("i", 0)), "unknown_version"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_frame_that_cannot_be_decoded_says_why(what: str) -> None:
    name, version, frame, fault = WRONG[what]
    assert faults(name, [version], [frame]) == [fault]


def test_a_requests_version_is_read_from_its_header_and_a_null_frame_gives_null() -> None:
    found = column("fetch_request", [None, 4], [request(1, 4, FETCH_V4), None])
    (asked,) = rows_of(found[:1])
    assert (asked["max_bytes"], found[1].as_py()) == (1048576, None)


def test_a_broker_that_does_not_know_a_version_of_api_versions_answers_in_version_0() -> None:
    refusal = response(be("h", 35) + be("ihhh", 1, 18, 0, 3))
    (row,) = rows_of(column("api_versions_response", [5], [refusal]))
    assert (row["error_code"], row["api_keys"]) == (35, [{"api_key": 18, "min_version": 0, "max_version": 3}])


def test_binary_columns_with_64_bit_offsets_are_accepted() -> None:
    frames = pa.array([request(1, 4, FETCH_V4)], pa.large_binary())
    (row,) = rows_of(decoded_column("fetch_request", pa.array([4]), frames))
    assert row["max_bytes"] == 1048576


def test_the_header_of_any_request_can_be_read_and_nothing_after_it() -> None:
    cut = request(SASL_AUTHENTICATE, 0, be("i", 3) + b"pwd", client_id=b"caf\xe9")[:-4]
    frames = pa.array([cut, request(999, 4, b""), b"\0\0\0\x08\0\1\0\4", None], pa.binary())
    found = decoded_column("request_header", frames)
    rows = rows_of(found[:3])
    assert rows[0] == {
        "api_key": 36, "api_name": "SASL_AUTHENTICATE", "api_version": 0, "correlation_id": 7, "client_id": "caf\ufffd",
        "decode_fault": None,
    }  # fmt: skip
    assert (rows[1]["api_key"], rows[1]["api_name"], rows[1]["decode_fault"]) == (999, None, "unknown_api")
    assert set(rows[2].values()) == {None, "truncated"}
    assert found[3].as_py() is None


def test_responses_belong_to_requests_by_correlation_id() -> None:
    frames = pa.array([response(b""), None, b"\0\0\0\0"], pa.binary())
    assert decoded_column("response_correlation_id", frames).to_pylist() == [7, None, None]


def test_there_is_a_function_for_every_declared_message_and_none_for_credentials() -> None:
    assert {ids(message.name) for message in MESSAGES} == set(NAMES) - {"request_header", "response_correlation_id"}
    for api in APIS:
        if api.bears_credentials:
            with pytest.raises(FrameError, match=f"{api.name} bears credentials"):
                frame_function(f"{api.name.lower()}_request")
    with pytest.raises(FrameError, match="there is no function fetch_reqest; there are request_header"):
        frame_function("fetch_reqest")


@pytest.mark.parametrize("name", NAMES)
def test_the_structs_have_numbers_and_texts_and_no_bytes_of_a_message(name: str) -> None:
    def leaves(kind: pa.DataType) -> list[pa.DataType]:
        if pa.types.is_struct(kind):
            return [leaf for field in kind for leaf in leaves(field.type)]
        return leaves(kind.value_type) if pa.types.is_list(kind) else [kind]

    numbers = {pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.bool_()}
    assert set(leaves(result_type(name))) <= numbers | {pa.string()}
