"""What frames are decoded into, and the faults of those that cannot be decoded."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.wire.api_versions import API_VERSIONS_RESPONSE
from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from schemas.wire.message import Field, Message
from schemas.wire.metadata import METADATA_REQUEST
from schemas.wire.produce import PRODUCE_REQUEST
from tests.unit.wire.reference import MESSAGES, be, decode_frames, junk_in_memory, lay_in_arena
from udfs.wire.decoding_plan import plan_of_versions
from udfs.wire.faults import DecodeFault
from udfs.wire.layout import PARENT, message_layout
from udfs.wire.messages import decode_bodies

TOPIC_ID = bytes(range(16))
# Fetch requests up to their topics; v12 has a session. A Metadata request v1 is an array of names.
FETCH_V4 = be("iiiib", -1, 500, 1, 52428800, 0)
FETCH_V12 = be("iiiibii", -1, 500, 1, 52428800, 0, 7, 1)
NO_TAGS = b"\0"
EMPTY = b"\1"  # an empty compact array or string


def one_partition(partition: int, fetch_offset: int, tags: bytes = NO_TAGS) -> bytes:
    return be("iiqiqi", partition, 5, fetch_offset, -1, -1, 1048576) + tags


def test_a_fetch_of_two_partitions_has_one_topic_row_and_two_partition_rows() -> None:
    frame = (
        be("iiibii", 500, 1, 52428800, 1, 7, 3)
        + b"\2" + TOPIC_ID
        + b"\3" + one_partition(4, 1000) + one_partition(6, 2000)
        + NO_TAGS + EMPTY + b"\5rack" + NO_TAGS
    )  # fmt: skip
    arena, decoded = decode_frames(FETCH_REQUEST, 17, [frame])
    request, topics, partitions = (decoded.levels[path] for path in ("", "topics", "topics.partitions"))
    assert {name: request.column(name)[0] for name in ("max_wait_ms", "min_bytes", "max_bytes", "session_epoch")} == {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 52428800,
        "session_epoch": 3,
    }
    assert request.column("topics.count").tolist() == [1]
    start, length = topics.span("topic_id")
    assert arena[start[0] : start[0] + length[0]].tobytes() == TOPIC_ID
    assert partitions.parent.tolist() == [0, 0]
    assert partitions.column("partition").tolist() == [4, 6]
    assert partitions.column("fetch_offset").tolist() == [1000, 2000]


def test_partitions_with_and_without_tags_can_be_neighbours() -> None:
    tagged = one_partition(5, 2000, b"\1\1\x08" + be("q", 77))
    head = be("iiibii", 500, 1, 1024, 0, 7, 3) + b"\2" + TOPIC_ID
    frames = [
        head + bytes([len(partitions) + 1]) + b"".join(partitions) + NO_TAGS + EMPTY + EMPTY + NO_TAGS
        for partitions in ([one_partition(4, 1000), tagged, one_partition(6, 3000)], [one_partition(7, 4000)] * 2)
    ]
    _, decoded = decode_frames(FETCH_REQUEST, 18, frames)
    partitions = decoded.levels["topics.partitions"]
    assert partitions.column("partition").tolist() == [4, 5, 6, 7, 7]
    assert partitions.column("fetch_offset").tolist() == [1000, 2000, 3000, 4000, 4000]
    assert partitions.column("high_watermark").tolist() == [2**63 - 1, 77, 2**63 - 1, 2**63 - 1, 2**63 - 1]


def test_a_field_that_a_version_lacks_has_kafkas_default() -> None:
    _, decoded = decode_frames(FETCH_REQUEST, 0, [be("iiii", 2, 500, 1, 0)])
    request = decoded.levels[""]
    assert request.column("replica_id").tolist() == [2]
    assert request.column("max_bytes").tolist() == [0x7FFFFFFF]
    assert request.column("session_epoch").tolist() == [-1]
    assert request.column("replica_state.replica_id").tolist() == [-1]


def test_a_null_array_and_an_empty_one_differ() -> None:
    _, decoded = decode_frames(METADATA_REQUEST, 1, [be("i", -1), be("i", 0)])
    assert decoded.levels[""].column("topics.count").tolist() == [-1, 0]
    assert decoded.levels["topics"].rows == 0


def test_a_follower_says_who_it_is_in_a_tag() -> None:
    replica_state = b"\1" + b"\1\x0d" + be("iq", 2, 99) + NO_TAGS
    frame = be("iiibii", 500, 1, 10485760, 0, 0, 0) + EMPTY + EMPTY + EMPTY + replica_state
    _, decoded = decode_frames(FETCH_REQUEST, 15, [frame])
    assert decoded.fault.tolist() == [DecodeFault.OK]
    assert decoded.levels[""].column("replica_state.replica_id").tolist() == [2]
    assert decoded.levels[""].column("replica_state.replica_epoch").tolist() == [99]


def test_tags_nobody_declared_are_skipped_by_their_length() -> None:
    replica_state = b"\1\x0d" + be("iq", 2, 99) + NO_TAGS
    tags = b"\3" + replica_state + b"\5\3abc" + b"\xff\x01\0"
    frame = be("iiibii", 500, 1, 10485760, 0, 0, 0) + EMPTY + EMPTY + EMPTY + tags
    _, decoded = decode_frames(FETCH_REQUEST, 15, [frame])
    assert decoded.fault.tolist() == [DecodeFault.OK]
    assert decoded.levels[""].column("replica_state.replica_id").tolist() == [2]


def test_records_are_a_span_of_the_arena_and_are_not_copied() -> None:
    records = b"records of some sort"
    frame = be("h", -1) + be("hii", -1, 30000, 1) + be("h", 1) + b"t" + be("iii", 1, 0, len(records)) + records
    arena, decoded = decode_frames(PRODUCE_REQUEST, 3, [frame])
    start, length = decoded.levels["topic_data.partition_data"].span("records")
    assert arena[start[0] : start[0] + length[0]].tobytes() == records


FETCH_V12_EMPTY = FETCH_V12 + EMPTY * 3  # all but its tags

# Message, version, body, what is wrong, offset of the field that cannot be read.
BROKEN = {
    "ends in a number": (FETCH_REQUEST, 4, FETCH_V4[:-1], DecodeFault.TRUNCATED, 0),
    "ends in a count": (FETCH_REQUEST, 4, FETCH_V4 + b"\0\0", DecodeFault.TRUNCATED, 17),
    "ends before its tags": (FETCH_REQUEST, 12, FETCH_V12_EMPTY, DecodeFault.TRUNCATED, 28),
    "a name longer than the frame": (METADATA_REQUEST, 1, be("ih", 1, 5) + b"name", DecodeFault.BAD_LENGTH, 4),
    "more elements than bytes": (METADATA_REQUEST, 1, be("i", 2_000_000_000), DecodeFault.BAD_COUNT, 0),
    "more topics than bytes": (FETCH_REQUEST, 12, FETCH_V12 + b"\x7f" + bytes(20), DecodeFault.BAD_COUNT, 25),
    "more tags than bytes": (FETCH_REQUEST, 12, FETCH_V12_EMPTY + b"\2\1\0", DecodeFault.BAD_COUNT, 28),
    "a varint of six bytes": (FETCH_REQUEST, 12, FETCH_V12 + b"\xff" * 6, DecodeFault.BAD_VARINT, 25),
    "a varint beyond 2^31-1": (FETCH_REQUEST, 12, FETCH_V12 + b"\xff\xff\xff\xff\x08", DecodeFault.BAD_VARINT, 25),
    "a null name": (METADATA_REQUEST, 1, be("ih", 1, -1), DecodeFault.UNEXPECTED_NULL, 4),
    "a null array": (FETCH_REQUEST, 4, FETCH_V4 + be("i", -1), DecodeFault.UNEXPECTED_NULL, 17),
    "a tag twice": (FETCH_REQUEST, 12, FETCH_V12_EMPTY + b"\2\5\0\5\0", DecodeFault.BAD_TAG, 31),
    "a tag longer than the frame": (FETCH_REQUEST, 12, FETCH_V12_EMPTY + b"\1\5\1", DecodeFault.BAD_LENGTH, 29),
    "a tag shorter than said": (FETCH_REQUEST, 12, FETCH_V12_EMPTY + b"\1\0\3\2c\0", DecodeFault.BAD_LENGTH, 33),
    "a tagged id of three bytes": (
        FETCH_REQUEST,
        17,
        be("iiibii", 500, 1, 1024, 0, 7, 3) + b"\2" + TOPIC_ID + b"\2" + one_partition(4, 1000, b"\1\0\3" + bytes(20)),
        DecodeFault.TRUNCATED,
        74,
    ),
    "a byte too many": (FETCH_REQUEST, 4, FETCH_V4 + be("i", 0) + b"\0", DecodeFault.TRAILING_BYTES, 21),
    "a later version": (FETCH_REQUEST, 19, b"", DecodeFault.UNKNOWN_VERSION, 0),
    "a negative version": (FETCH_REQUEST, -1, b"", DecodeFault.UNKNOWN_VERSION, 0),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_frame_has_a_named_fault_and_no_rows(what: str) -> None:
    message, version, body, fault, at = BROKEN[what]
    _, decoded = decode_frames(message, version, [body])
    assert (DecodeFault(decoded.fault[0]), decoded.fault_at[0]) == (fault, at)
    assert {path: level.rows for path, level in decoded.levels.items() if path} == dict.fromkeys(
        [path for path in decoded.levels if path], 0
    )


def test_a_broken_frame_leaves_defaults_and_its_neighbours_alone() -> None:
    good = be("i", 2) + be("h", 1) + b"a" + be("h", 1) + b"b"
    broken = be("i", 2) + be("h", 1) + b"c" + be("h", 9) + b"d"
    _, decoded = decode_frames(METADATA_REQUEST, 1, [good, broken, good])
    assert decoded.fault.tolist() == [0, DecodeFault.BAD_LENGTH, 0]
    assert decoded.levels[""].column("topics.count").tolist() == [2, 0, 2]
    assert decoded.levels["topics"].parent.tolist() == [0, 0, 2, 2]


def test_a_tag_of_a_broken_frame_is_not_left_over_for_the_next_one() -> None:
    tagged = one_partition(4, 1000, b"\1\1\x08" + be("q", 77))
    plain = one_partition(4, 1000)
    head = be("iiibii", 500, 1, 1024, 0, 7, 3) + b"\2" + TOPIC_ID + b"\2"
    tail = NO_TAGS + EMPTY + EMPTY + NO_TAGS
    _, decoded = decode_frames(FETCH_REQUEST, 18, [head + tagged + tail[:-1], head + plain + tail])
    assert decoded.fault.tolist() == [DecodeFault.TRUNCATED, 0]
    assert decoded.levels["topics.partitions"].column("high_watermark").tolist() == [2**63 - 1]


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (3, 2), (0, 5), (2**62, 2**62 + 4), (4, 2**63 - 1)])
def test_a_range_that_is_not_in_the_arena_is_not_read(start: int, end: int) -> None:
    arena = np.zeros(4, np.uint8)
    decoded = decode_bodies(METADATA_REQUEST, arena, np.array([start]), np.array([end]), np.array([1], np.int16))
    assert decoded.fault.tolist() == [DecodeFault.BAD_FRAME]


def test_if_no_frame_is_of_a_declared_version_all_have_defaults() -> None:
    _, decoded = decode_frames(METADATA_REQUEST, 99, [b"", b"\0"])
    assert decoded.fault.tolist() == [DecodeFault.UNKNOWN_VERSION] * 2
    assert decoded.levels[""].parent.tolist() == [0, 1]
    assert decoded.levels[""].column("topics.count").tolist() == [0, 0]
    assert decoded.levels["topics"].column("name.length").tolist() == []


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_frames_that_cannot_be_read_have_defaults(message: Message) -> None:
    newest = int(message.versions.split("-")[1])
    arena, starts, ends = lay_in_arena([b""] * 3)
    ends[2] = 1 << 40
    with junk_in_memory():
        decoded = decode_bodies(message, arena, starts, ends, np.array([newest, 99, newest], np.int16))
    assert decoded.fault.tolist() == [DecodeFault.TRUNCATED, DecodeFault.UNKNOWN_VERSION, DecodeFault.BAD_FRAME]
    top = decoded.levels[""]
    columns = {name: top.column(name).tolist() for name in top.names if name != PARENT}
    layout = message_layout(message)
    assert columns == {
        name: [layout.columns[layout.column("", name)].default] * 3 for name in columns
    }  # fmt: skip


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    arena = np.zeros(8, np.uint8)
    with pytest.raises(ValueError, match="2 starts, 1 ends and 2 versions"):
        decode_bodies(METADATA_REQUEST, arena, two, one, two.astype(np.int16))
    with pytest.raises(TypeError, match="versions are int64, expected int16"):
        decode_bodies(METADATA_REQUEST, arena, one, one, one)  # type: ignore[arg-type]


def test_a_field_may_have_more_columns_in_a_tag_than_without_one() -> None:
    number, new = Field("n", "int32", "0+"), Field("new", "int32", "1+")
    message = Message("Grown", 0, "0-1", "1+", (
        Field("xs", "[]X", "0+", tagged="1+", tag=0, fields=(number, new)),
        Field("s", "S", "0+", tagged="1+", tag=1, fields=(number, new)),
    ))  # fmt: skip
    plain = be("iii", 1, 7, 8)
    tagged = b"\2" + b"\0\x0a" + b"\2" + be("ii", 5, 6) + NO_TAGS + b"\1\x09" + be("ii", 3, 4) + NO_TAGS
    arena, starts, ends = lay_in_arena([plain, tagged])
    decoded = decode_bodies(message, arena, starts, ends, np.array([0, 1], np.int16))
    assert decoded.fault.tolist() == [DecodeFault.OK] * 2
    assert [decoded.levels["xs"].column(name).tolist() for name in ("n", "new")] == [[7, 5], [0, 6]]
    assert [decoded.levels[""].column(name).tolist() for name in ("s.n", "s.new")] == [[8, 3], [0, 4]]


def test_fields_that_a_version_lacks_have_defaults_whatever_was_in_memory_before() -> None:
    inner = (Field("n", "int32", "0+"), Field("m", "int32", "1", default="7"))
    message = Message("Mixed", 0, "0-1", "none", (
        Field("a", "int32", "0+"), Field("b", "int32", "1", default="5"), Field("xs", "[]X", "0+", fields=inner),
    ))  # fmt: skip
    old, new = be("iiii", 1, 2, 11, 12), be("iiiii", 2, 3, 1, 13, 14)
    versions = [0, 1, 0, 0, 1, 0]
    arena, starts, ends = lay_in_arena([[old, new][version] for version in versions], b"\xff")
    with junk_in_memory():
        decoded = decode_bodies(message, arena, starts, ends, np.array(versions, np.int16))
    top, elements = decoded.levels[""], decoded.levels["xs"]
    assert [top.column(name).tolist() for name in ("a", "b")] == [[1, 2, 1, 1, 2, 1], [5, 3, 5, 5, 3, 5]]
    assert elements.parent.tolist() == [0, 0, 1, 2, 2, 3, 3, 4, 5, 5]
    assert elements.column("n").tolist() == [11, 12, 13, 11, 12, 11, 12, 13, 11, 12]
    assert elements.column("m").tolist() == [7, 7, 14, 7, 7, 7, 7, 14, 7, 7]


def test_without_frames_every_column_is_there_and_has_no_rows() -> None:
    nothing = np.array([], np.int64)
    decoded = decode_bodies(FETCH_RESPONSE, np.zeros(0, np.uint8), nothing, nothing, nothing.astype(np.int16))
    assert "responses.partitions.aborted_transactions" in decoded.levels
    assert {level.rows for level in decoded.levels.values()} == {0}


def test_rows_beyond_the_first_guess_are_all_there() -> None:
    names = [be("h", 1) + bytes([65 + number % 26]) for number in range(5000)]
    small, large = be("i", 1) + names[0], be("i", 5000) + b"".join(names)
    arena, decoded = decode_frames(METADATA_REQUEST, 1, [small, large, small, large])
    start, length = decoded.levels["topics"].span("name")
    assert decoded.levels["topics"].rows == 10_002
    assert arena[start].tolist() == [65, *(65 + number % 26 for number in range(5000))] * 2
    assert set(length.tolist()) == {1}


def test_finalized_features_name_their_highest_level_first() -> None:
    feature = b"\x11metadata.version"[:17] + be("hh", 27, 7) + NO_TAGS
    tags = b"\1\2" + bytes([1 + len(feature)]) + b"\2" + feature
    _, decoded = decode_frames(API_VERSIONS_RESPONSE, 3, [be("h", 0) + EMPTY + be("i", 0) + tags])
    features = decoded.levels["finalized_features"]
    assert (features.column("max_version_level")[0], features.column("min_version_level")[0]) == (27, 7)


def test_a_type_the_decoder_does_not_know_is_refused_when_compiled() -> None:
    message = Message("Strange", api_key=0, versions="0", flexible="none", fields=(Field("x", "float128", "0+"),))
    with pytest.raises(TypeError, match="Strange: x has the type float128, which the decoder does not know"):
        plan_of_versions(message, (0,))
