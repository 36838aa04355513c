"""The step of ingest for packets: from packets of whole connections to packed rows of the silver tables."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, DECODED, EXCHANGES, FETCH_PARTITIONS, QUARANTINE, RECORD_BATCHES
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.steps import EXCHANGE_COUNTS
from schemas.tables.table import Table
from schemas.tables.values import FROM_FETCH, FROM_PRODUCE
from schemas.wire.declared import API_VERSIONS, FETCH, METADATA, PRODUCE
from udfs.capture.packet_chunks import Frames, frames_by_chunk
from udfs.facts.arrow_tables import pack_rows
from udfs.facts.client_software import ClientSoftware, learn_software
from udfs.facts.connections import connection_rows, quarantine_rows
from udfs.facts.continued_connections import ContinuedConnections, EarlierSet
from udfs.facts.exchange_messages import decode_both, note_messages_without_rows
from udfs.facts.exchange_rows import count_rows, exchange_rows
from udfs.facts.exchanges import Exchanges, completed_exchanges
from udfs.facts.fetches import CarriedSession, decode_fetches, fetch_rows
from udfs.facts.hashed_names import HashedNames
from udfs.facts.metadata import metadata_rows
from udfs.facts.pseudonyms import Pseudonyms
from udfs.facts.record_batch_rows import batch_rows, fetched_fields, produced_fields
from udfs.facts.record_sampling import RecordSampling
from udfs.facts.releases import release_rows
from udfs.facts.share_fetches import share_rows
from udfs.facts.topic_changes import auto_created_topics, topic_change_rows

TABLES = (*DECODED, EXCHANGE_COUNTS)
"""The tables for which rows are made."""


@dataclass
class EarlierChunks:
    """What is kept from earlier chunks to make the rows of the next one. records: which records are read. continued:
    the connections of the capture set that this one continues, if any.
    """

    names: HashedNames = field(default_factory=HashedNames)
    session: CarriedSession = field(default_factory=CarriedSession)
    software: ClientSoftware = field(default_factory=ClientSoftware)
    records: RecordSampling | None = None
    continued: ContinuedConnections | None = None


def rows_from_packets(
    batches: Iterable[pa.RecordBatch],
    capture_id: str,
    pseudonyms: Pseudonyms | None = None,
    records: RecordSampling | None = None,
    earlier: EarlierSet | None = None,
    **chunk_size: int,
) -> Iterator[pa.RecordBatch]:
    """Rows of PACKED from packet batches that come sorted by connection and in the order of PACKETS.

    pseudonyms: what to call topics, clients and hosts; None to keep their names.
    records: which records of batches to read; None for none.
    earlier: what an earlier capture set knows about connections that are continued; None if the set continues none.
    chunk_size: `rows` and `payload_bytes` of `udfs.capture.packet_chunks.frames_by_chunk`; the rows do not depend on
    them.
    """
    carried = EarlierChunks(records=records, continued=None if earlier is None else ContinuedConnections(earlier))
    for chunk in frames_by_chunk(batches, **chunk_size):
        for table, rows in tables_of_chunk(chunk, capture_id, carried):
            yield from pack_rows(table, rows if pseudonyms is None else pseudonyms.applied_to(table, rows))
        if len(chunk.connections) == chunk.finished:
            carried.session, carried.software = CarriedSession(), ClientSoftware()


def tables_of_chunk(
    chunk: Frames, capture_id: str, carried: EarlierChunks, wanted: Container[Table] = TABLES
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows of each table from one chunk of frames.

    carried: from earlier chunks; it is updated. wanted: other tables are left out if that saves time. Either all chunks
    of a connection must want FETCH_PARTITIONS, or none, because its rows come from following the fetch session.
    """
    exchanges = completed_exchanges(chunk, capture_id, carried.names)
    versions = decode_both(exchanges, API_VERSIONS, exchanges.of_api(API_VERSIONS.request.api_key))
    software = learn_software(
        exchanges, carried.software, carried.continued.begin(exchanges) if carried.continued else {}
    )
    yield CLUSTER_METADATA, release_rows(exchanges, versions)
    yield from fetch_and_produce_tables(exchanges, carried, wanted)
    yield from topic_tables(exchanges)
    yield from share_rows(exchanges)
    note_messages_without_rows(exchanges)
    if EXCHANGES in wanted:
        yield EXCHANGES, exchange_rows(exchanges)
    if EXCHANGE_COUNTS in wanted:
        yield EXCHANGE_COUNTS, count_rows(exchanges)
    yield CONNECTIONS, connection_rows(exchanges, software, carried.continued)
    for rows in quarantine_rows(exchanges) if QUARANTINE in wanted else ():
        yield QUARANTINE, rows


def fetch_and_produce_tables(
    exchanges: Exchanges, carried: EarlierChunks, wanted: Container[Table]
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows from Fetch and Produce messages; arguments are those of `tables_of_chunk`."""
    messages = decode_fetches(exchanges, exchanges.of_api(FETCH.request.api_key))
    if FETCH_PARTITIONS in wanted or EXCHANGE_COUNTS in wanted:  # counts depend on whether sessions are known
        going_on = carried.continued.sessions(messages) if carried.continued else {}
        for rows in fetch_rows(exchanges, messages, carried.session, going_on):
            yield FETCH_PARTITIONS, rows
    if RECORD_BATCHES in wanted:
        for rows in batch_rows(exchanges, fetched_fields(messages), FROM_FETCH, carried.records):
            yield RECORD_BATCHES, rows
    if len(produces := exchanges.of_api(PRODUCE.request.api_key)):
        fields = produced_fields(exchanges, produces)
        for rows in batch_rows(exchanges, fields, FROM_PRODUCE, carried.records) if RECORD_BATCHES in wanted else ():
            yield RECORD_BATCHES, rows


def topic_tables(exchanges: Exchanges) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """The rows from Metadata messages and from requests that change topics."""
    if len(which := exchanges.of_api(METADATA.request.api_key)):
        metadata = decode_both(exchanges, METADATA, which)
        for rows in metadata_rows(exchanges, metadata):
            yield CLUSTER_METADATA, rows
        yield TOPIC_CHANGES, auto_created_topics(exchanges, metadata)
    for rows in topic_change_rows(exchanges):
        yield TOPIC_CHANGES, rows
