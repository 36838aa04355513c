"""What readers touch of memory: no byte outside their frame, no cell outside the rows there is room for."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.wire.message import Message
from tests.unit.wire.reference import JUNK, MESSAGES, encode, message_values
from tests.unit.wire.test_hostile_frames import hostile_cases, newest
from udfs.wire.arrays import read_only
from udfs.wire.frame_loop import DONE, read_frames
from udfs.wire.messages import decode
from udfs.wire.output import allocate
from udfs.wire.program import compile_message
from udfs.wire.reader_code import FULL

PROT_NONE = 0


def page_between_forbidden_ones() -> np.ndarray:
    """A page of memory; any access to a byte before or behind it kills the process."""
    size = mmap.PAGESIZE
    whole = np.frombuffer(mmap.mmap(-1, 3 * size), np.uint8)
    for forbidden in (0, 2 * size):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(whole.ctypes.data + forbidden), size, PROT_NONE) == 0
    return whole[size : 2 * size]


def arenas(frame: bytes, page: np.ndarray) -> Iterator[np.ndarray]:
    """A frame at the beginning and at the end of the page."""
    for arena in (page[: len(frame)], page[len(page) - len(frame) :]):
        arena[:] = np.frombuffer(frame, np.uint8)
        yield arena


def decode_between_forbidden_pages() -> None:
    """Decode the hostile cases where not a byte around them can be read."""
    page = page_between_forbidden_ones()
    for number, version, frame in hostile_cases():
        for arena in arenas(frame, page):
            ends = np.array([len(frame)])
            decode(MESSAGES[number], arena, np.zeros(1, np.int64), ends, np.array([version], np.int16))


def test_no_reader_reads_outside_its_frame(repository: Path) -> None:
    code = "from tests.unit.wire.test_reader_memory import decode_between_forbidden_pages as run; run()"
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
@settings(max_examples=20)
@given(data=st.data())
def test_no_reader_writes_a_row_for_which_there_is_no_room(message: Message, data: st.DataObject) -> None:
    version, rows = data.draw(st.integers(0, newest(message))), data.draw(st.integers(0, 3))
    frame = encode(message, version, data.draw(message_values(message, version)))
    arena, program = read_only(np.frombuffer(frame, np.uint8)), compile_message(message, (version,))
    output = allocate(program, np.full(len(program.layout.levels), rows), program.settable)
    output.capacity[0] = 1
    output.out[:] = JUNK
    first_rows = output.addresses()
    _, outcome = read_frames(
        program.readers, arena, np.zeros(1, np.int64), np.array([len(frame)]), np.array([version], np.int16), 0,
        np.array([each.ctypes.data for each in (arena, first_rows, output.levels)]), output.levels,
        program.layout.level_of, output.first_cells, program.layout.defaults, output.out,
        np.zeros(1, np.int8), np.zeros(1, np.int64),
    )  # fmt: skip
    assert outcome == DONE or outcome <= FULL
    room = output.capacity[program.layout.level_of]
    columns = zip(output.first_cells.tolist(), room.tolist(), strict=True)
    inside = np.concatenate([np.arange(first, first + rows_of_it) for first, rows_of_it in columns if first >= 0])
    assert set(np.delete(output.out, inside).tolist()) <= {JUNK}
