"""No bytes cause a read outside a frame or an endless loop, and compiled kernels do what their Python says."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.wire.message import Message
from tests.unit.wire.reference import MESSAGES, encode, filled_struct, lay_in_arena, message_values
from udfs.columns.arrays import read_only
from udfs.wire.faults import DecodeFault
from udfs.wire.header import API_TABLE, plausible_request, request_header, response_body_start, skip_tags
from udfs.wire.messages import DecodedFrames, decode_bodies
from udfs.wire.produce_start import begins_produce
from udfs.wire.record_batches import walk_batches


def newest(message: Message) -> int:
    return int(message.versions.split("-")[1])


def decode_one(message: Message, version: int, frame: bytes, before: bytes = b"", behind: bytes = b"") -> DecodedFrames:
    """Decode one frame amid other bytes."""
    arena = np.frombuffer(before + frame + behind, np.uint8)
    start, end = np.array([len(before)]), np.array([len(before) + len(frame)])
    return decode_bodies(message, arena, start, end, np.array([version], np.int16))


def columns_of(decoded: DecodedFrames, offset: int) -> dict[str, list[int]]:
    """All columns, with positions in the arena counted from `offset`."""
    return {
        f"{path}.{name}": [int(cell) - offset * (name.endswith(".start") and cell > 0) for cell in level.column(name)]
        for path, level in decoded.levels.items()
        for name in level.names
    }


damaged = st.tuples(st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), max_size=4), st.integers(0, 8))


def damage(frame: bytes, flips: list[tuple[int, int]], cut: int) -> bytes:
    mutable = bytearray(frame)
    for at, mask in flips:
        if mutable:
            mutable[at % len(mutable)] ^= mask
    return bytes(mutable[: max(len(mutable) - cut, 0)])


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
@settings(max_examples=60)
@given(data=st.data())
def test_bytes_around_a_frame_never_matter(message: Message, data: st.DataObject) -> None:
    version = data.draw(st.integers(0, newest(message)))
    frame = encode(message, version, data.draw(message_values(message, version)))
    frame = data.draw(st.just(damage(frame, *data.draw(damaged))) | st.binary(max_size=100))
    alone = decode_one(message, version, frame)
    amid = decode_one(message, version, frame, before=b"\x7f" * 40, behind=b"\x01" * 40)
    assert amid.fault.tolist() == alone.fault.tolist()
    assert (amid.fault_at - 40 * (amid.fault != 0)).tolist() == alone.fault_at.tolist()
    assert columns_of(amid, 40) == columns_of(alone, 0)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_rows_are_never_more_than_frames_and_bytes_together(message: Message) -> None:
    source = random.Random(7)  # noqa: S311  (no secret depends on it)
    for version in range(newest(message) + 1):
        frames = [source.choice((bytes(300), b"\1" * 300, b"\x7f" * 300, source.randbytes(300))) for _ in range(50)]
        arena, starts, ends = lay_in_arena(frames)
        decoded = decode_bodies(message, arena, starts, ends, np.full(50, version, np.int16))
        assert sum(level.rows for level in decoded.levels.values()) <= 50 + arena.size


ONLY_TAGS = Message("OnlyTags", 0, "0", "0+", ())


@given(
    st.binary(max_size=40) | st.lists(st.sampled_from([0, 1, 2, 3, 5, 0x7F, 0x80, 0x81, 0xFF]), max_size=12).map(bytes)
)
def test_headers_and_bodies_read_tags_alike(section: bytes) -> None:
    arena = read_only(np.frombuffer(section, np.uint8))
    behind = skip_tags(arena, 0, len(section))
    expected = DecodeFault.OK if behind == len(section) else DecodeFault.TRAILING_BYTES
    assert decode_one(ONLY_TAGS, 0, section).fault.tolist() == [-behind if behind < 0 else expected]


def hostile_cases() -> list[tuple[int, int, bytes]]:
    """(message, version, frame) drawn with a fixed seed: noise, small numbers, and large counts."""
    source = random.Random(11)  # noqa: S311  (no secret depends on it)
    cases = []
    for number, message in enumerate(MESSAGES):
        for version in range(newest(message) + 1):
            for _ in range(4):
                size = source.randrange(120)
                cases.append((number, version, source.randbytes(size)))
                cases.append((number, version, bytes(source.choice((0, 0, 0, 1, 2, 3, 255)) for _ in range(size))))
    return cases


def filled_cases() -> list[tuple[int, int, bytes]]:
    """(message, version, frame) with rows in every level, whole and cut."""
    cases = []
    for number, message in enumerate(MESSAGES):
        for version in {0, newest(message)}:
            frame = encode(message, version, filled_struct(message.fields, version))
            cases += [(number, version, frame), (number, version, frame[:-1])]
    return cases


def decoded_cells(message: Message, version: int, frame: bytes) -> list[int]:
    """Faults and cells of the frame, once beside a frame of an unknown version, and once in unknown versions only."""
    arena = np.frombuffer(frame, np.uint8)
    cells = []
    for versions in ([version, -1, version], [-1, 99, -1]):
        ends = np.full(3, len(frame))
        decoded = decode_bodies(message, arena, np.zeros(3, np.int64), ends, np.array(versions, np.int16))
        cells += [*decoded.fault.tolist(), *decoded.fault_at.tolist()]
        cells += [int(cell) for _, column in sorted(columns_of(decoded, 0).items()) for cell in column]
    return cells


def outcomes() -> list[list[int]]:
    """The results of every kernel for the cases. Each arena ends with its frame, so reading on is reading outside."""
    found = []
    for number, version, frame in chain(hostile_cases(), filled_cases()):
        arena = read_only(np.frombuffer(frame, np.uint8))
        size = len(frame)
        batches = walk_batches(arena, np.array([0]), np.array([size]))
        header = request_header(arena, 0, size, API_TABLE)
        response = response_body_start(arena, 0, size, MESSAGES[number].api_key, version, API_TABLE)
        found.append(
            [
                *(int(value) for value in (*header, *response)),
                int(plausible_request(arena, 0, size, size, API_TABLE)),
                *(int(begins_produce(arena, header[-1], size, version, is_cut)) for is_cut in (False, True)),
                *(int(value) for value in (*batches.fault, *batches.size, *batches.available, *batches.crc_valid)),
                *decoded_cells(MESSAGES[number], version, frame),
            ]
        )
    return found


def test_kernels_in_plain_python_read_nothing_outside_their_arrays_and_agree_with_compiled_code(
    repository: Path,
) -> None:
    # numpy checks the bounds that compiled code does not.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(repository), "PYTHONWARNINGS": "ignore"}
    code = "import json; from tests.unit.wire.test_hostile_frames import outcomes; print(json.dumps(outcomes()))"
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    assert json.loads(run.stdout) == outcomes()
