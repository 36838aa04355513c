"""Reads messages in request logs (org.apache.kafka.common.message.*JsonConverter) into the columns of the decoder.

The JSON has the fields of Kafka's own schemas, so the declarations in schemas/wire also say how to read it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.wire.message import Field, Message
from udfs.capture.json_lines import parse_json_lines
from udfs.columns.arrays import Bools, Bytes, Ints
from udfs.columns.arrow_columns import arrow_array, is_not_null, offsets_and_bytes
from udfs.columns.arrow_columns import compute as pc
from udfs.wire.decoded_level import Level
from udfs.wire.encoding import UUID_BYTES
from udfs.wire.layout import INT_WIDTHS, PARENT, default_value, element_fields, element_path, is_array, is_span
from udfs.wire.messages import DecodedFrames

NULL, UNREADABLE_ID = -1, -2
UUID_CHARACTERS = 22
INTS = {name: pa.from_numpy_dtype(np.dtype(f"i{width}")) for name, width in INT_WIDTHS.items()}


@dataclass
class Texts:
    """Texts that are put one after the other into an arena, so that spans can refer to them as to texts in frames."""

    parts: list[Bytes] = field(default_factory=list)
    size: int = 0

    def arena(self) -> Bytes:
        """The bytes of all texts: uint8[size]."""
        return np.concatenate([np.zeros(0, np.uint8), *self.parts])

    def add(self, texts: pa.Array[Any]) -> tuple[Ints, Ints]:
        """Add texts; returns (starts, lengths) in the arena, int64[n] each, length NULL for null."""
        ends, content = offsets_and_bytes(texts)
        starts = self.size + ends[:-1] - ends[0]
        self._append(content[ends[0] : ends[-1]])
        return starts, np.where(is_not_null(texts), np.diff(ends), NULL)

    def add_ids(self, texts: pa.Array[Any]) -> tuple[Ints, Ints]:
        """Add ids, given as text, as sixteen bytes each, as in frames. Returns (starts, lengths), int64[n] each.

        The length is NULL for null, and UNREADABLE_ID for a text that is no id.
        """
        coded = texts.dictionary_encode()
        ids = [id_bytes(text) for text in coded.dictionary.to_pylist() if text is not None]
        known = np.array([raw is not None for raw in ids] + [False])
        starts = self.size + UUID_BYTES * np.arange(len(ids) + 1)
        self._append(np.frombuffer(b"".join(raw or bytes(UUID_BYTES) for raw in ids), np.uint8))
        code = pc.fill_null(coded.indices, len(ids)).to_numpy()
        lengths = np.where(known[code], UUID_BYTES, UNREADABLE_ID)
        return starts[code], np.where(is_not_null(texts), lengths, NULL)

    def _append(self, part: Bytes) -> None:
        self.parts.append(part)
        self.size += len(part)


def id_bytes(text: str) -> bytes | None:
    """The sixteen bytes of an id as Kafka prints it (org.apache.kafka.common.Uuid); None if the text is no id."""
    if len(text) != UUID_CHARACTERS:
        return None
    try:
        return base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None


def json_name(declared: Field) -> str:
    """The key of a field in JSON: Kafka's name. For records, request logs have the size instead."""
    first, *rest = declared.name.split("_")
    return "recordsSizeInBytes" if declared.type == "records" else first + "".join(part.capitalize() for part in rest)


def arrow_struct(fields: Sequence[Field]) -> pa.StructType:
    """The Arrow type of a message's or struct's JSON."""
    return pa.struct([pa.field(json_name(declared), _arrow_type(declared)) for declared in fields])


def _arrow_type(declared: Field) -> pa.DataType:
    scalar = declared.type.removeprefix("[]")
    if declared.fields:
        kind: pa.DataType = arrow_struct(declared.fields)
    elif scalar == "records":
        kind = pa.int32()
    elif scalar == "bool":
        kind = pa.bool_()
    else:
        kind = INTS.get(scalar, pa.string())
    return pa.list_(kind) if is_array(declared) else kind


@dataclass(frozen=True)
class LoggedBodies:
    """Requests and responses of one API's lines.

    read: bool[lines], the lines that could be read. answered: bool[lines read], those with a response.
    """

    read: Bools
    answered: Bools
    request: DecodedFrames
    response: DecodedFrames


def read_bodies(request: Message, response: Message, lines: pa.Array[Any], texts: Texts) -> LoggedBodies:
    """Read the lines of one API. request, response: its messages. The spans refer to the arena of `texts`."""
    schema = pa.schema([("request", arrow_struct(request.fields)), ("response", arrow_struct(response.fields))])
    objects, read = parse_json_lines(lines, schema)
    bodies = _read_both(request, response, objects, read, texts)
    no_request = np.flatnonzero(~is_not_null(pc.struct_field(objects, "request")))
    answers = np.flatnonzero(bodies.answered)[_bodies_with_bad_ids(bodies.response)]
    wrong = np.unique(np.concatenate([no_request, _bodies_with_bad_ids(bodies.request), answers]))
    if not len(wrong):
        return bodies
    sound = np.ones(len(objects), np.bool_)
    sound[wrong] = False
    still_read = read.copy()
    still_read[read] = sound
    return _read_both(request, response, objects.filter(arrow_array(sound)), still_read, texts)


def _read_both(request: Message, response: Message, objects: pa.StructArray, read: Bools, texts: Texts) -> LoggedBodies:
    requests, responses = pc.struct_field(objects, "request"), pc.struct_field(objects, "response")
    answered = is_not_null(responses)
    there = responses.filter(arrow_array(answered))
    return LoggedBodies(
        read, answered, _decode_structs(request, requests, texts), _decode_structs(response, there, texts)
    )


def _decode_structs(message: Message, bodies: pa.StructArray, texts: Texts) -> DecodedFrames:
    levels: dict[str, Level] = {"": Level("", len(bodies), {})}
    for path, name, values in _level_columns(message.fields, bodies, "", "", texts):
        levels.setdefault(path, Level(path, len(values), {})).columns[name] = values
    return DecodedFrames(np.zeros(len(bodies), np.int8), np.full(len(bodies), -1), levels)


def _level_columns(
    fields: Sequence[Field], rows: pa.Array[Any], path: str, prefix: str, texts: Texts
) -> Iterator[tuple[str, str, Ints]]:
    """(level, name, values) of the columns of `fields`; rows: their structs, or the elements of a primitive array."""
    for declared in fields:
        name = prefix + declared.name
        values = pc.struct_field(rows, json_name(declared)) if pa.types.is_struct(rows.type) else rows
        if is_array(declared):
            child = element_path(path, name)
            yield path, f"{name}.count", _ints(pc.list_value_length(values), NULL)
            yield child, PARENT, _ints(pc.list_parent_indices(values), 0)
            yield from _level_columns(element_fields(declared), pc.list_flatten(values), child, "", texts)
        elif declared.fields:
            yield from _level_columns(declared.fields, values, path, f"{name}.", texts)
        elif declared.type == "records":
            yield path, f"{name}.start", np.full(len(values), NULL)
            yield path, f"{name}.length", _ints(values, NULL)
        elif is_span(declared):
            starts, lengths = texts.add_ids(values) if declared.type == "uuid" else texts.add(values)
            yield path, f"{name}.start", starts
            yield path, f"{name}.length", lengths
        else:
            yield path, name, _ints(values, default_value(declared))


def _ints(values: pa.Array[Any], missing: int) -> Ints:
    # A copy that can be written, like the decoder's columns: for read-only arrays kernels would be compiled again.
    return np.array(pc.fill_null(values.cast(pa.int64()), missing).to_numpy())


def _bodies_with_bad_ids(decoded: DecodedFrames) -> Ints:
    """The bodies that have an unreadable id."""
    bodies = [np.zeros(0, np.int64)]
    for path, level in decoded.levels.items():
        for name, lengths in level.columns.items():
            if name.endswith(".length"):
                bodies.append(_bodies_of(decoded, path, np.flatnonzero(lengths == UNREADABLE_ID)))
    return np.unique(np.concatenate(bodies))


def _bodies_of(decoded: DecodedFrames, path: str, rows: Ints) -> Ints:
    """The bodies of some rows of a level."""
    while path:
        rows = decoded.levels[path].parent[rows]
        path = path.rpartition(".")[0]
        while path not in decoded.levels:  # the array is in a struct
            path = path.rpartition(".")[0]
    return rows
