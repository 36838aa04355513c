"""Headers, and how Produce requests begin, are read as a cursor over the bytes would read them, one field at a time."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from schemas.wire.apis import APIS
from tests.unit.wire.reference import be, in_arena, uvarint
from udfs.wire.faults import DecodeFault
from udfs.wire.header import (
    API_TABLE,
    begins_request,
    is_client_id,
    is_printable,
    plausible_request,
    request_header,
    response_body_start,
    response_version,
    skip_tags,
)
from udfs.wire.primitives import COMPACT, INT, SHORT, read_length, read_signed, read_unsigned_varint
from udfs.wire.produce_start import acks_offset, begins_produce, expects_response

BY_KEY = {api.key: api for api in APIS}
PRODUCE, CONTROLLED_SHUTDOWN, API_VERSIONS, UNSUPPORTED_VERSION = 0, 7, 18, 35


class UnreadableError(Exception):
    """A field cannot be read."""

    def __init__(self, fault: DecodeFault) -> None:
        super().__init__(fault.name)
        self.fault = fault


@dataclass
class Cursor:
    """Reads fields one after the other."""

    content: bytes
    at: int = 0

    @property
    def rest(self) -> int:
        return len(self.content) - self.at

    def take(self, size: int, fault: DecodeFault = DecodeFault.TRUNCATED) -> bytes:
        if size > self.rest:
            raise UnreadableError(fault)
        self.at += size
        return self.content[self.at - size : self.at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big", signed=True)

    def varint(self) -> int:
        value = 0
        for index in range(5):
            (byte,) = self.take(1)
            value += (byte % 128) * 128**index
            if byte < 128:
                if value > 2**31 - 1:
                    break
                return value
        raise UnreadableError(DecodeFault.BAD_VARINT)

    def length(self, prefix: int) -> int:
        return self.varint() - 1 if prefix == COMPACT else max(self.number(prefix), -1)

    def tags(self) -> None:
        count, before = self.varint(), -1
        if count * 2 > self.rest:
            raise UnreadableError(DecodeFault.BAD_COUNT)
        for _ in range(count):
            tag = self.varint()
            if tag <= before:
                raise UnreadableError(DecodeFault.BAD_TAG)
            before = tag
            self.take(self.varint(), DecodeFault.BAD_LENGTH)


def is_flexible(key: int, version: int) -> bool:
    first = BY_KEY[key].flexible_from if key in BY_KEY else None
    return first is not None and version >= first


def plain_request(frame: bytes) -> tuple[int, ...]:
    """(fault, key, version, correlation id, client id's place and length, body's place)."""
    cursor, ids, client = Cursor(frame), (-1, -1, -1), (-1, -1)
    try:
        if cursor.rest < 8:
            raise UnreadableError(DecodeFault.TRUNCATED)
        key, version, correlation = ids = (cursor.number(2), cursor.number(2), cursor.number(4))
        if (key, version) == (CONTROLLED_SHUTDOWN, 0):
            return (DecodeFault.OK, key, version, correlation, 8, -1, 8)
        length, at = cursor.length(SHORT), cursor.at
        cursor.take(max(length, 0), DecodeFault.BAD_LENGTH)
        client = (at, length)
        if key not in BY_KEY:
            raise UnreadableError(DecodeFault.UNKNOWN_API)
        if is_flexible(key, version):
            cursor.tags()
    except UnreadableError as refused:
        return (refused.fault, *ids, *client, -1)
    return (DecodeFault.OK, *ids, *client, cursor.at)


def plain_response(frame: bytes, key: int, version: int) -> tuple[int, int, int]:
    cursor, correlation = Cursor(frame), -1
    try:
        correlation = cursor.number(4)
        if is_flexible(key, version) and key != API_VERSIONS:
            cursor.tags()
    except UnreadableError as refused:
        return refused.fault, correlation, -1
    return DecodeFault.OK, correlation, cursor.at


def is_control(byte: int) -> bool:
    return byte < 32 or byte == 127


def is_plain_client_id(text: bytes) -> bool:
    controls = sum(map(is_control, text))
    return not controls or (text.isascii() and controls <= len(text) / 4)


def plain_acks(cursor: Cursor, version: int) -> int:
    """Move the cursor past acks, and return its value."""
    if version >= 3:
        size = cursor.length(COMPACT if version >= 9 else SHORT)
        cursor.take(max(size, 0))
    return cursor.number(2)


def begins_plainly(body: bytes, version: int, is_cut: bool) -> bool:
    """Whether a body can be that of a Produce request."""
    cursor, in_names = Cursor(body), COMPACT if version >= 9 else SHORT
    try:
        if plain_acks(cursor, version) not in (-1, 0, 1):
            return False
        cursor.take(4)
        topics = cursor.length(COMPACT if version >= 9 else INT)
        if topics < 1 or version >= 13:
            return topics >= 1
        size = cursor.length(in_names)
        return size > 0 and not any(map(is_control, cursor.take(size)))
    except UnreadableError as refused:
        return is_cut and refused.fault == DecodeFault.TRUNCATED


NUMBERS = st.sampled_from([0, 1, 2, 3, 5, 0x7F, 0x80, 0xFF, 0x41])
NOISE = st.lists(NUMBERS, max_size=8).map(bytes)
TEXT = st.sampled_from(
    [b"", b"a", b"client", "größe".encode(), b"a\nbc", b"a\nb", b"a\x7fbc", b"x" * 100, b" ", b"\x1f"]
)
SHORT_TEXT = TEXT.map(lambda text: be("h", len(text)) + text) | st.sampled_from([be("h", -1), be("h", -2), be("h", 9)])
COMPACT_TEXT = TEXT.map(lambda text: uvarint(len(text) + 1) + text) | st.sampled_from([b"\0", b"\x0a", b"\xff" * 5])
TAGS = (
    st.dictionaries(st.sampled_from([0, 1, 2, 127, 128, 2**31 - 1]), NOISE, max_size=3)
    .map(lambda tags: uvarint(len(tags)) + b"".join(
        uvarint(tag) + uvarint(len(value)) + value for tag, value in sorted(tags.items()))
    )
)  # fmt: skip
KEYS = st.sampled_from([0, 1, 3, CONTROLLED_SHUTDOWN, 17, API_VERSIONS, 94, 95, 96, -1, -2, 32767])
VERSIONS = st.integers(-1, 22)


@st.composite
def cut_or_not(draw: st.DrawFn, parts: st.SearchStrategy[bytes]) -> bytes:
    """Bytes, as a rule whole."""
    content = draw(parts)
    return content if draw(st.integers(0, 2)) else content[: draw(st.integers(0, len(content)))]


REQUESTS = cut_or_not(
    st.builds(
        lambda key, version, text, tags, rest: be("hhi", key, version, version * 0x01020304) + text + tags + rest,
        KEYS, VERSIONS, SHORT_TEXT, TAGS | NOISE, NOISE,
    )
)  # fmt: skip


@given(REQUESTS)
def test_a_request_header_is_read_field_by_field(frame: bytes) -> None:
    arena, start, end = in_arena(frame)
    fault, key, version, correlation, client, length, body = request_header(arena, start, end, API_TABLE)
    found = (fault, key, version, correlation, max(client - start, -1), length, max(body - start, -1))
    assert found == plain_request(frame)


@given(REQUESTS, st.integers(-3, 3))
def test_a_frame_is_a_plausible_request_if_its_header_is_that_of_a_known_api_and_a_client(
    frame: bytes, more: int
) -> None:
    arena, start, end = in_arena(frame)
    size = max(len(frame) + more, 0)
    header = frame[:size]
    fault, key, version, _, client, length, _ = plain_request(header)
    is_known = key in BY_KEY and 0 <= version <= BY_KEY[key].last_version + 3
    expected = fault == DecodeFault.OK and is_known and is_plain_client_id(header[client : client + max(length, 0)])
    assert plausible_request(arena, start, end, size, API_TABLE) == expected
    if expected:
        whole = plain_request(header)[-1]
        assert all(begins_request(arena, start, start + kept, API_TABLE) for kept in range(8, whole))
        assert not begins_request(arena, start, start + whole, API_TABLE)
    _, key, version, *_ = plain_request(frame)
    if not (key in BY_KEY and 0 <= version <= BY_KEY[key].last_version + 3):
        assert not begins_request(arena, start, end, API_TABLE)


@given(cut_or_not(st.builds(lambda tags, rest: be("i", 77) + tags + rest, TAGS | NOISE, NOISE)), KEYS, VERSIONS)
def test_a_response_header_is_read_field_by_field(frame: bytes, key: int, version: int) -> None:
    arena, start, end = in_arena(frame)
    fault, correlation, body = response_body_start(arena, start, end, key, version, API_TABLE)
    assert (fault, correlation, max(body - start, -1)) == plain_response(frame, key, version)


@given(st.sampled_from([b"", b"\0", be("h", 35), be("h", 34) + b"\0", be("h", 35) + b"\0"]), KEYS, VERSIONS)
def test_only_an_answer_that_the_version_is_not_supported_is_in_version_0(body: bytes, key: int, version: int) -> None:
    arena, start, end = in_arena(body)
    is_unsupported = key == API_VERSIONS and len(body) >= 2 and body[:2] == be("h", UNSUPPORTED_VERSION)
    assert response_version(arena, start, end, key, version) == (0 if is_unsupported else version)


@given(TAGS | NOISE)
def test_a_tag_section_is_skipped_tag_by_tag(section: bytes) -> None:
    arena, start, end = in_arena(section)
    cursor = Cursor(section)
    try:
        cursor.tags()
        expected = cursor.at + start
    except UnreadableError as refused:
        expected = -refused.fault
    assert skip_tags(arena, start, end) == expected


@given(st.binary(max_size=12) | TEXT)
def test_text_is_judged_by_its_control_characters(text: bytes) -> None:
    arena, start, end = in_arena(text)
    assert is_client_id(arena, start, end - start) == is_plain_client_id(text)
    assert is_printable(arena, start, end - start) == (not any(map(is_control, text)))


@given(NOISE | st.binary(max_size=9) | st.integers(0, 2**32).map(uvarint), st.sampled_from([COMPACT, SHORT, INT]))
def test_a_length_is_read_byte_by_byte(content: bytes, prefix: int) -> None:
    arena, start, end = in_arena(content)
    cursor, length = Cursor(content), 0
    try:
        length = cursor.length(prefix)
        behind = start + cursor.at
    except UnreadableError as refused:
        behind = -refused.fault
    found = read_length(arena, start, end, prefix)
    assert found == ((behind, length) if behind >= 0 else (behind, found[1]))
    if prefix == COMPACT:
        assert read_unsigned_varint(arena, start, end) == (behind, length + 1 if behind >= 0 else 0)


@given(st.binary(min_size=16, max_size=16), st.integers(1, 8), st.data())
def test_an_integer_of_any_width_is_read_at_any_place(content: bytes, width: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, 16 - width))
    arena, start, _ = in_arena(content)
    expected = int.from_bytes(content[at : at + width], "big", signed=True)
    assert read_signed(arena, start + at, width) == expected
    assert read_signed(arena[: start + at + width], start + at, width) == expected


@st.composite
def produce_bodies(draw: st.DrawFn) -> tuple[int, bytes]:
    """(version, the beginning of the body of a Produce request, or of something like it)."""
    version = draw(st.integers(0, 14))
    text, is_new = (COMPACT_TEXT, True) if version >= 9 else (SHORT_TEXT, False)
    transaction = draw(text) if version >= 3 else b""
    acks = be("h", draw(st.sampled_from([-2, -1, 0, 1, 2, 256])))
    topics = draw(st.sampled_from([-1, 0, 1, 2]))
    count = uvarint(topics + 1) if is_new else be("i", topics)
    return version, draw(cut_or_not(st.just(transaction + acks + be("i", 30_000) + count + draw(text) + draw(NOISE))))


@given(produce_bodies(), st.booleans())
def test_a_produce_request_begins_with_acks_and_the_name_of_a_topic(case: tuple[int, bytes], is_cut: bool) -> None:
    version, body = case
    arena, start, end = in_arena(body)
    assert begins_produce(arena, start, end, version, is_cut) == begins_plainly(body, version, is_cut)


@given(produce_bodies(), st.sampled_from([PRODUCE, 1]))
def test_only_a_produce_request_whose_acks_are_0_gets_no_response(case: tuple[int, bytes], key: int) -> None:
    version, body = case
    arena, start, end = in_arena(body)
    cursor = Cursor(body)
    try:
        acks = plain_acks(cursor, version)
        place = start + cursor.at - 2
    except UnreadableError as refused:
        acks, place = 1, -refused.fault
    assert acks_offset(arena, start, end, version) == place
    assert expects_response(arena, start, end, key, version) == (key != PRODUCE or acks != 0)
