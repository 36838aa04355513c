"""Readers touch no byte outside their frame, and no cell outside the rows for which there is room."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.wire.message import Message
from tests.unit.wire.forbidden_pages import arenas, page_between_forbidden_ones, run_apart
from tests.unit.wire.reference import JUNK, MESSAGES, encode, filled_struct, message_values, within
from tests.unit.wire.test_hostile_frames import hostile_cases, newest
from udfs.columns.arrays import read_only
from udfs.wire.column_buffer import new_column_buffer
from udfs.wire.decoding_plan import plan_of_versions
from udfs.wire.frame_loop import Faults, FrameBatch, WorkingMemory, decode_frames
from udfs.wire.messages import decode_bodies
from udfs.wire.reader_code import DONE, FULL


def damaged_cases() -> Iterator[tuple[int, int, bytes]]:
    """(message, version, frame) with rows in every level: whole, cut at each byte, and with each byte replaced by 0x7E.

    The versions are the oldest, the newest, and those between which the encoding changes.
    """
    for number, message in enumerate(MESSAGES):
        flexible = [version for version in range(newest(message) + 1) if within(version, message.flexible)]
        for version in sorted({0, max(min(flexible, default=0) - 1, 0), *flexible[:1], newest(message)}):
            frame = encode(message, version, filled_struct(message.fields, version))
            for at in range(len(frame)):
                yield number, version, frame[:at]
                yield number, version, frame[:at] + b"\x7e" + frame[at + 1 :]
            yield number, version, frame


def decode_alone(message: Message, version: int, frame: np.ndarray) -> None:
    """Decode a frame that is all of its arena."""
    decode_bodies(message, frame, np.zeros(1, np.int64), np.array([frame.size]), np.array([version], np.int16))


def decode_between_forbidden_pages() -> None:
    """Decode frames around which no byte can be read. Frames that nobody damaged have rows in every level."""
    page = page_between_forbidden_ones()
    for number, version, frame in chain(damaged_cases(), hostile_cases()):
        for arena in arenas(frame, page):
            decode_alone(MESSAGES[number], version, arena)


def test_no_reader_reads_outside_its_frame(repository: Path) -> None:
    run = run_apart(decode_between_forbidden_pages, repository)
    assert run.returncode == 0, run.stderr[-2000:]


UNCHECKED = {
    "all": "ReaderCode.require = lambda self, size: None",
    "elements": """
require, each_row = ReaderCode.require, ReaderCode.each_row
@contextmanager
def unchecked_rows(self, level, count):
    with each_row(self, level, count) as parent:
        ReaderCode.require = lambda self, size: None
        yield parent
        ReaderCode.require = require
ReaderCode.each_row = unchecked_rows
""",
}


@pytest.mark.parametrize("where", UNCHECKED)
def test_a_reader_that_does_not_check_how_many_bytes_remain_would_be_noticed(
    where: str, repository: Path, tmp_path: Path
) -> None:
    imports = "from contextlib import contextmanager\nfrom udfs.wire.reader_code import ReaderCode\n"
    run = run_apart(
        decode_between_forbidden_pages, repository, before=imports + UNCHECKED[where], NUMBA_CACHE_DIR=str(tmp_path)
    )
    assert run.returncode == -signal.SIGSEGV, run.stderr[-2000:]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
@settings(max_examples=20)
@given(data=st.data())
def test_no_reader_writes_a_row_for_which_there_is_no_room(message: Message, data: st.DataObject) -> None:
    version, rows = data.draw(st.integers(0, newest(message))), data.draw(st.integers(0, 3))
    frame = encode(message, version, data.draw(message_values(message, version)))
    arena, plan = read_only(np.frombuffer(frame, np.uint8)), plan_of_versions(message, (version,))
    output = new_column_buffer(plan, np.full(len(plan.layout.levels), rows), plan.settable)
    output.capacity[0] = 1
    output.out[:] = JUNK
    batch = FrameBatch(arena, np.zeros(1, np.int64), np.array([len(frame)]), np.array([version], np.int16))
    faults = Faults(np.zeros(1, np.int8), np.zeros(1, np.int64))
    memory = WorkingMemory(np.empty_like(output.first_cells), np.empty_like(output.used))
    _, outcome = decode_frames(plan.readers, batch, 0, output.columns, faults, memory)
    assert outcome == DONE or outcome <= FULL
    room = output.capacity[plan.layout.level_of]
    places = zip(output.first_cells.tolist(), room.tolist(), strict=True)
    outside = np.ones(output.out.size, np.bool_)
    for first, rows_of_it in places:
        if first >= 0:
            outside[first : first + rows_of_it] = False
    assert set(output.out[outside].tolist()) <= {JUNK}
