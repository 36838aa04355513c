"""Parses lines, each of which is one JSON object, into Arrow structs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import json as pa_json

from udfs.columns.arrays import Bools
from udfs.columns.arrow_columns import offsets_and_bytes

LEAST_BLOCK_BYTES = 1 << 10


def parse_json_lines(lines: pa.Array[Any], schema: pa.Schema) -> tuple[pa.StructArray, Bools]:
    """(the objects of the lines that can be read, bool[n] which lines those are).

    lines: string[n], each one object and a newline. A line cannot be read if it is not one object, has a key twice, or
    has another type in a field of the schema. Fields that the schema lacks are ignored, absent fields are null. All
    lines are parsed at once. If that fails, they are halved again and again until the wrong lines are found.
    """
    objects = _parse_strictly(lines, schema)
    if objects is not None:
        return objects, np.ones(len(lines), np.bool_)
    if len(lines) == 1:
        return _no_objects(schema), np.zeros(1, np.bool_)
    half = len(lines) // 2
    (first, first_read), (second, second_read) = (
        parse_json_lines(lines[:half], schema),
        parse_json_lines(lines[half:], schema),
    )
    return pa.concat_arrays([first, second]), np.concatenate([first_read, second_read])


def _no_objects(schema: pa.Schema) -> pa.StructArray:
    empty: Any = pa.array([], pa.struct(list(schema)))
    return empty


def _parse_strictly(lines: pa.Array[Any], schema: pa.Schema) -> pa.StructArray | None:
    """The objects of all lines, or None if a line is not exactly one object."""
    if not len(lines):
        return _no_objects(schema)
    offsets, content = offsets_and_bytes(lines)
    text = content[offsets[0] : offsets[-1]]
    read_json: Any = pa_json.read_json  # its stub takes no buffer
    try:
        table = read_json(
            pa.BufferReader(text.data),
            parse_options=pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=max(len(text) + 1, LEAST_BLOCK_BYTES)),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(lines):
        return None
    return table.select(schema.names).combine_chunks().to_struct_array().combine_chunks()
