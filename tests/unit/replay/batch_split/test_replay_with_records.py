"""Producers replayed with the records in the packets of their connections."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.steps import SENT
from schemas.wire.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from tests.unit.capture import conversations
from tests.unit.capture.conversations import OPENING, packets
from tests.unit.facts.brokers import answered, asked, turns
from tests.unit.replay.batch_split.producers import Producer, lanes_of, unpacked
from tests.unit.wire.encoding import record
from tests.unit.wire.test_record_batches import record_batch
from udfs.capture.packets import PACKETS
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.exchanges import connection_ids
from udfs.replay.batch_split import held_records
from udfs.replay.batch_split.held_records import read_held
from udfs.replay.batch_split.replay import IS_SENT, replay_with_records
from udfs.wire.compressed_sizes import compressed_size
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD
from udfs.wire.records import record_sizes

SECRET = b"pin-0000-of-the-safe"
VALUES = [SECRET + bytes([at * 10]) * 40 for at in range(24)]
RECORDS = [b"".join(record(at, at, None, VALUES[first + at]) for at in range(8)) for first in (0, 8, 16)]
"""The encoded records of three produced batches."""
CLIENT = {str(SENT.client_id): "c", str(SENT.client_address): "10.0.0.1"}
PRODUCERS = [Producer(size, 1 << 20, linger=10, measured_every=1) for size in (4096, 256)]
LANES = lanes_of(*PRODUCERS, names=("captured", "other"))

Rows = list[dict[str, Any]]


def conversation() -> Rows:
    """Packets of a producer's connection."""
    frames = []
    for number, records in enumerate(RECORDS):
        data = [{"name": b"t", "partition_data": [{"index": 0, "records": record_batch(records=records, count=8)}]}]
        answer = [{"name": b"t", "partition_responses": [{"index": 0, "base_offset": 8 * number}]}]
        frames.append(asked(PRODUCE_REQUEST, 8, number, acks=-1, topic_data=data))
        frames.append(answered(PRODUCE_RESPONSE, 8, number, responses=answer))
    return packets([*OPENING, *turns(*frames)])


def sent(number: int, place: tuple[int, int, int]) -> dict[str, Any]:
    """A row of SENT: the same batch, as if it had been compressed by gzip."""
    records, at = RECORDS[number], 1_700_000_000_000 + 10 * number
    sizes = record_sizes(records, 8)
    empty = {str(c): {"string": "", "boolean": True}.get(c.type, 0) for c in SENT.columns}
    connection_id, exchange_no, position = place
    return empty | CLIENT | {
        SENT.topic: "t", SENT.codec: "gzip", SENT.base_sequence: 8 * number, SENT.append_from: at * 1000,
        SENT.request_time: (at + 9) * 1000, SENT.response_time: (at + 10) * 1000, SENT.began_before: False,
        SENT.connection_id: connection_id, SENT.exchange_no: exchange_no, SENT.position: position,
        SENT.size_bytes: RECORD_BATCH_OVERHEAD + compressed_size(1, records), SENT.uncompressed_bytes: len(records),
        SENT.record_sizes: sizes.content.tolist(), SENT.create_times: [at + delta for delta in range(8)],
        SENT.recompressed_bytes: [], IS_SENT: True,
    }  # fmt: skip


def replayed(packets_of: Rows, rows_a_batch: int) -> tuple[dict[str, Rows], bytes]:
    """(gold rows by table, the bytes of all output) of these packets and the batches sent on their connection."""
    places = list(read_held([pa.RecordBatch.from_pylist(conversation(), schema=PACKETS)]).batches)
    fields = [*arrow_schema(SENT), *PACKETS, pa.field(IS_SENT, pa.bool_())]
    schema = pa.schema([field.with_nullable(True) for field in fields if field.name not in ("shard", "bucket")])
    events = [row | CLIENT | {IS_SENT: False} for row in packets_of]
    events += [sent(number, place) for number, place in enumerate(places)]
    table = pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in events], schema=schema)
    packed = list(replay_with_records(table.to_batches(max_chunksize=rows_a_batch), LANES, "run"))
    return unpacked(packed), b"".join(content.as_py() for batch in packed for content in batch["rows"])


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_no_more_bytes_of_records_are_held_than_allowed_wherever_chunks_end(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(held_records, "MOST_HELD", len(RECORDS[0]) + 1)
    held = read_held(conversations.cut(conversations.batch(conversation()), rows), rows=rows)
    assert [place[1:] for place in held.batches] == [(0, 0)]


def test_records_of_produce_requests_are_held_by_connection_exchange_and_position() -> None:
    rows = conversation()
    held = read_held([pa.RecordBatch.from_pylist(rows, schema=PACKETS)])
    assert {connection for connection, _, _ in held.batches} == {connection_ids([rows[0]["connection"]])[0]}
    assert [place[1:] for place in sorted(held.batches)] == [(number, 0) for number in range(3)]
    assert [held.batches[place].records.tobytes() for place in sorted(held.batches)] == RECORDS


@pytest.mark.parametrize("rows_a_batch", [1, 7, 10_000])
def test_every_batch_has_the_exact_size_of_its_records_and_no_output_contains_them(rows_a_batch: int) -> None:
    found, everything = replayed(conversation(), rows_a_batch)
    (exact,) = [row for row in found[FIDELITY.name] if row[FIDELITY.metric] == "first_bytes_exact"]
    assert (exact[FIDELITY.checked], exact[FIDELITY.agreed]) == (3, 3)
    g = BATCH_SPLIT
    rows = found[g.name]
    assert {row[g.scenario]: row[g.batches] > 0 for row in rows} == {"captured": True, "other": True}
    assert all(row[g.measured_batches] == row[g.batches] + row[g.split_batches] for row in rows)
    assert SECRET[:8] not in everything


def test_without_their_packets_batches_have_the_models_sizes() -> None:
    found, _ = replayed([], 10_000)
    assert all(row[BATCH_SPLIT.measured_batches] == 0 < row[BATCH_SPLIT.batches] for row in found[BATCH_SPLIT.name])
    assert not [row for row in found[FIDELITY.name] if row[FIDELITY.metric].endswith("_exact")]
