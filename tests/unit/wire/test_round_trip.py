"""Every version of every declared message decodes into what was encoded, whatever tags a newer peer adds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.wire.message import Message
from tests.unit.wire.reference import (
    MESSAGE_VERSIONS,
    MESSAGES,
    Struct,
    encode,
    expected,
    junk_in_memory,
    lay_in_arena,
    message_values,
    read_back,
)
from udfs.wire.faults import DecodeFault
from udfs.wire.messages import DecodedFrames, decode_bodies


@pytest.mark.parametrize(("message", "version"), MESSAGE_VERSIONS, ids=lambda value: getattr(value, "name", value))
@settings(max_examples=5)
@given(data=st.data())
def test_decoding_gives_what_was_encoded(message: Message, version: int, data: st.DataObject) -> None:
    sent = data.draw(st.lists(message_values(message, version), min_size=1, max_size=3))
    arena, starts, ends = lay_in_arena([encode(message, version, value) for value in sent])
    with junk_in_memory():
        decoded = decode_bodies(message, arena, starts, ends, np.full(len(sent), version, np.int16))
    assert decoded.fault.tolist() == [DecodeFault.OK] * len(sent)
    assert decoded.fault_at.tolist() == [-1] * len(sent)
    for frame, value in enumerate(sent):
        assert read_back(message, decoded, arena, frame) == expected(message.fields, value, version)


def mixed_frames(message: Message, values: list[tuple[int, Struct | None]]) -> tuple[np.ndarray, ...]:
    """Frames of several versions. Every third one is cut short, and those without a value are empty."""
    frames = [b"" if value is None else encode(message, version, value) for version, value in values]
    frames = [frame[:-1] if number % 3 == 2 else frame for number, frame in enumerate(frames)]
    return (*lay_in_arena(frames, b"\xff"), np.array([version for version, _ in values], np.int16))


def level_above(path: str, decoded: DecodedFrames) -> str:
    """The level that holds a level's array, also if the array is in a struct."""
    above = path.rpartition(".")[0]
    return above if above in decoded.levels else level_above(above, decoded)


def concatenated(parts: list[DecodedFrames]) -> tuple[list[int], dict[str, dict[str, list[int]]]]:
    """Faults and columns of consecutive batches, with parents counted from the first batch on."""
    faults: list[int] = []
    columns: dict[str, dict[str, list[int]]] = {}
    for decoded in parts:
        before = {path: len(found["parent"]) for path, found in columns.items()}
        faults += decoded.fault.tolist()
        for path, level in decoded.levels.items():
            above = before.get(level_above(path, decoded), 0) if path else len(faults) - len(decoded.fault)
            found = columns.setdefault(path, {})
            for name in level.names:
                found.setdefault(name, []).extend((level.column(name) + above * (name == "parent")).tolist())
    return faults, columns


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
@settings(max_examples=5)
@given(data=st.data())
def test_how_frames_are_cut_into_batches_does_not_matter(message: Message, data: st.DataObject) -> None:
    newest = int(message.versions.split("-")[1])
    versions = data.draw(st.lists(st.integers(-1, newest + 1), min_size=20, max_size=20))
    values = [(v, data.draw(message_values(message, v)) if 0 <= v <= newest else None) for v in versions]
    arena, starts, ends, version_of = mixed_frames(message, values)

    def in_batches_of(rows: int) -> tuple[list[int], dict[str, dict[str, list[int]]]]:
        cuts = [slice(first, first + rows) for first in range(0, len(starts), rows)]
        with junk_in_memory():
            return concatenated(
                [decode_bodies(message, arena, starts[cut], ends[cut], version_of[cut]) for cut in cuts]
            )

    whole = in_batches_of(10_000)
    assert in_batches_of(1) == whole
    assert in_batches_of(7) == whole
