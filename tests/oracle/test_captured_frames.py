"""The decoder reads in every frame of the shared captures, and of those of share groups, what Kafka's classes read.

Records and other opaque bytes are compared only by size, since their content must not be read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark
import pytest

from schemas.wire.declared import DECLARED
from schemas.wire.message import Field, Message
from tests.oracle.conftest import KAFKA_NEWEST, Jars, RunJava
from tests.oracle.test_message_declarations import snake_case
from tests.sort_keys import SortKeys
from tests.unit.wire.reference import SPANS, default, within
from udfs.capture.file_index import index_capture
from udfs.capture.packet_chunks import frames_by_chunk
from udfs.capture.packets import PACKETS, read_packets
from udfs.facts.exchange_messages import decode_both
from udfs.facts.exchanges import Exchanges, completed_exchanges
from udfs.facts.hashed_names import HashedNames, topic_id_text
from udfs.wire.faults import DecodeFault
from udfs.wire.messages import DecodedFrames

Said = tuple[Message, int, dict[str, Any]]
"""A message, its version, and its fields."""

SHARED = Path(__file__).parents[3] / "shared" / "captures"
OF_SHARE_GROUPS = Path(__file__).parents[1] / "captures" / "share_groups"
CAPTURES = [*sorted(SHARED.glob("*.pcap")), *sorted(OF_SHARE_GROUPS.glob("*.pcap.zst"))]
JACKSON = sorted((Path(pyspark.__file__).parent / "jars").glob("jackson-[acd]*-2.*.jar"))
"""The jars that Kafka's JSON converters need: core, databind and annotations, from Spark's own jars."""


def exchanges_in(capture: Path) -> Iterator[Exchanges]:
    ranges = index_capture(str(capture), range_bytes=1 << 30, buckets=1).ranges
    batches = [rows for part in ranges for rows in read_packets(part, file_no=0, buckets=1, batch_bytes=1 << 24)]
    by_connection: SortKeys = [("connection", "ascending"), ("file_no", "ascending"), ("packet_no", "ascending")]
    packets = pa.Table.from_batches(batches, PACKETS).sort_by(by_connection)
    for chunk in frames_by_chunk(packets.to_batches()):
        yield completed_exchanges(chunk, "capture", HashedNames())


class Told:
    """The decoded frames of one message, as nested dicts of the fields of their version."""

    def __init__(self, message: Message, decoded: DecodedFrames, arena: np.ndarray) -> None:
        self.message, self.decoded, self.arena = message, decoded, arena
        self.cells = cache(lambda level, column: decoded.levels[level].column(column).tolist())
        self.ends = cache(self._ends)

    def frame(self, number: int, version: int) -> dict[str, Any]:
        return self._struct(self.message.fields, version, "", number, "")

    def _ends(self, path: str, above: str) -> list[int]:
        rows = np.arange(self.decoded.levels[above].rows + 1)
        return np.searchsorted(self.decoded.levels[path].parent, rows).tolist()

    def _struct(self, fields: tuple[Field, ...], version: int, level: str, row: int, prefix: str) -> dict[str, Any]:
        present = [field for field in fields if within(version, field.versions)]
        return {field.name: self._field(field, version, level, row, prefix + field.name) for field in present}

    def _field(self, field: Field, version: int, level: str, row: int, name: str) -> Any:
        if field.type.startswith("[]"):
            return self._array(field, version, level, row, name)
        if field.fields:
            is_null = within(version, field.nullable) and self.cells(level, name + ".is_null")[row]
            return None if is_null else self._struct(field.fields, version, level, row, name + ".")
        return self._value(field.type, level, row, name)

    def _array(self, field: Field, version: int, level: str, row: int, name: str) -> Any:
        if self.cells(level, name + ".count")[row] < 0:
            return None
        path = f"{level}.{name}" if level else name
        ends = self.ends(path, level)
        rows = range(ends[row], ends[row + 1])
        if field.fields:
            return [self._struct(field.fields, version, path, element, "") for element in rows]
        return [self._value(field.type.removeprefix("[]"), path, element, "value") for element in rows]

    def _value(self, kind: str, level: str, row: int, name: str) -> Any:
        if kind not in SPANS:
            return self.cells(level, name)[row]
        start, length = self.cells(level, name + ".start")[row], self.cells(level, name + ".length")[row]
        if kind in ("bytes", "records"):
            return None if length < 0 else length
        if kind == "uuid":
            return topic_id_text(self.arena[start : start + 16].tobytes() if length == 16 else bytes(16))
        return None if length < 0 else self.arena[start : start + length].tobytes().decode()


def kafkas(fields: tuple[Field, ...], node: dict[str, Any], version: int) -> dict[str, Any]:
    """Kafka's JSON in the shape of `Told`. Adds the tagged fields that the JSON leaves out because of their default."""
    told = {snake_case(name): value for name, value in node.items()}
    found: dict[str, Any] = {}
    for field in fields:
        if not within(version, field.versions):
            continue
        name = field.name if field.type != "records" or field.name in told else f"{field.name}_size_in_bytes"
        if name in told:
            found[field.name] = kafkas_value(field, told.pop(name), version)
        else:
            assert within(version, field.tagged), f"Kafka has no {field.name} in version {version}"
            found[field.name] = tagged_default(field, version)
    assert not told, f"Kafka has {', '.join(told)} in version {version}"
    return found


def kafkas_value(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.fields and field.type.startswith("[]"):
        return [kafkas(field.fields, element, version) for element in value]
    if field.fields:
        return kafkas(field.fields, value, version)
    return len(base64.b64decode(value)) if field.type == "bytes" else value


def tagged_default(field: Field, version: int) -> Any:
    value = default(field)
    if field.type == "uuid":
        return topic_id_text(bytes(16))
    if field.fields and isinstance(value, dict):
        return {inner.name: value[inner.name] for inner in field.fields if within(version, inner.versions)}
    return value.decode() if isinstance(value, bytes) else value


def hex_of(exchanges: Exchanges, which: int, side: str) -> str:
    fields = exchanges.request_fields if side == "request" else exchanges.response_fields
    start, size = (int(fields[name][which]) for name in ("start", "size"))
    return exchanges.frames.arena[start : start + size].tobytes().hex()


def decoded_in(exchanges: Exchanges) -> Iterator[tuple[str, list[Said | None]]]:
    """(line for Kafka, what the decoder reads in request and response), for each exchange of a declared message."""
    for declared in DECLARED:
        both = decode_both(exchanges, declared, exchanges.of_api(declared.request.api_key))
        assert set(both.request.fault.tolist() + both.response.fault.tolist()) <= {DecodeFault.OK}
        arena, version_of = exchanges.frames.arena, exchanges.api_version
        asked, answered = Told(declared.request, both.request, arena), Told(declared.response, both.response, arena)
        answer_of = {exchange: row for row, exchange in enumerate(both.response_exchanges.tolist())}
        for row, exchange in enumerate(both.request_exchanges.tolist()):
            version, answer = int(version_of[exchange]), answer_of.get(exchange)
            request = (declared.request, version, asked.frame(row, version))
            response = None if answer is None else (declared.response, version, answered.frame(answer, version))
            answer_hex = "-" if answer is None else hex_of(exchanges, exchange, "response")
            yield f"{hex_of(exchanges, exchange, 'request')} {answer_hex}", [request, response]


@pytest.fixture(scope="module")
def both_readings(jars: Jars, run_java: RunJava) -> dict[str, list[tuple[Said | None, str]]]:
    """By capture: what the decoder reads in each request and response, and Kafka's JSON of it. Java runs once."""
    lines: list[str] = []
    ours: dict[str, list[Said | None]] = {capture.stem: [] for capture in CAPTURES}
    for capture in CAPTURES:
        for exchanges in exchanges_in(capture):
            for line, both in decoded_in(exchanges):
                lines.append(line)
                ours[capture.stem] += both
    [clients] = jars(f"org.apache.kafka:kafka-clients:{KAFKA_NEWEST}")
    printed = iter(run_java("ParseFrames.java", clients, *JACKSON, stdin="\n".join(lines)).splitlines())
    readings = {capture: [(said, next(printed)) for said in told] for capture, told in ours.items()}
    assert next(printed, None) is None
    return readings


@pytest.mark.parametrize("capture", [capture.stem for capture in CAPTURES])
def test_every_frame_says_what_it_says_to_kafka(
    both_readings: dict[str, list[tuple[Said | None, str]]], capture: str
) -> None:
    assert both_readings[capture]
    for number, (said, text) in enumerate(both_readings[capture]):
        if said is None:
            assert text == "-"
        else:
            message, version, fields = said
            where = f"{message.name} v{version}, message {number}"
            assert fields == kafkas(message.fields, json.loads(text), version), where
