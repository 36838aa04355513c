"""Finished connections as rows of `connections`, and what could not be decoded as rows of `quarantine`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, QUARANTINE
from udfs.capture.conversation import KAFKA
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.arrow_columns import arrow_array, repeated_text_column
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import make_rows, ns_to_us
from udfs.facts.continued_connections import ContinuedConnections
from udfs.facts.exchange_rows import present_bytes
from udfs.facts.exchanges import Exchanges
from udfs.facts.quarantine_reasons import BY_LOSS, QuarantineReason

PROTOCOLS = pa.array(["unknown", "kafka", "tls", "other"])
COUNTED = (
    "payload_bytes", "framed_bytes", "unframed_bytes", "repeated_bytes", "late_bytes", "missing_bytes",
    "repeated_packets", "doubled_packets",
)  # fmt: skip


def connection_rows(
    exchanges: Exchanges, software: Ints, continued: ContinuedConnections | None = None
) -> pa.RecordBatch:
    """Rows of `connections` for the connections that have ended.

    software: int64[2, connections], hashes of the name and version of each client's software. continued: the
    connections of the capture set that this one continues, if any.
    """
    frames, n = exchanges.frames, exchanges.frames.finished
    connections = frames.connections[:n]
    server, client = exchanges.server.slice(0, n), exchanges.client.slice(0, n)
    by_side = frames.directions[: 2 * n].reshape(n, 2)
    counts = {name: by_side[name].sum(axis=1) for name in COUNTED}
    is_kafka = connections["protocol"] == KAFKA
    t = CONNECTIONS
    return make_rows(
        t,
        {
            t.capture_id: repeated_text_column(exchanges.capture_id, n),
            t.connection_id: exchanges.connection_ids[:n],
            t.protocol: PROTOCOLS.take(connections["protocol"]),
            t.broker: pa.compute.if_else(pa.array(is_kafka), server, None),
            t.cluster_id: pa.nulls(n, pa.string()),
            t.server: server,
            t.client: client,
            t.client_software_name: exchanges.names.texts_of(software[0, :n]),
            t.client_software_version: exchanges.names.texts_of(software[1, :n]),
            t.began_before_capture: connections["syn_sequence"] == UNKNOWN,
            t.continuation: pa.nulls(n, pa.string()) if continued is None else continued.words(exchanges, n),
            t.first_time: ns_to_us(connections["first_time"]),
            t.last_time: ns_to_us(connections["last_time"]),
            t.ended: pa.compute.if_else(pa.array(connections["packets"] > 0), pa.array(has_ended(by_side)), None),
            t.packets: connections["packets"],
            t.requests: connections["requests"],
            t.orphan_responses: connections["orphan_responses"],
            t.one_sided: (by_side["payload_bytes"] > 0).sum(axis=1) == 1,
            t.sasl_token_bytes: by_side["token_bytes"].sum(axis=1),
            **counts,
        },
    )


def has_ended(by_side: Records) -> Bools:
    """Which connections were ended by a FIN or RST of either side: bool[n]. by_side: DIRECTION[n, 2]."""
    ended: Bools = ((by_side["fin"] != UNKNOWN) | (by_side["rst"] != UNKNOWN)).any(axis=1)
    return ended


def quarantine_rows(exchanges: Exchanges) -> Iterator[pa.RecordBatch]:
    """Rows of `quarantine`: bytes in no frame, cut frames, and bodies that cannot be decoded."""
    yield loss_rows(exchanges)
    for side in ("request", "response"):
        yield frame_rows(exchanges, side)


def loss_rows(exchanges: Exchanges) -> pa.RecordBatch:
    """A row of `quarantine` for each range of bytes that is in no frame."""
    losses = exchanges.frames.losses
    client = exchanges.frames.connections["client"][losses["connection"]]
    side = np.where(client < 0, 2, (losses["direction"] != client).astype(np.int64))
    reasons = pa.array([BY_LOSS[code].value for code in sorted(BY_LOSS)])
    t = QUARANTINE
    return make_rows(
        t,
        {
            t.capture_id: repeated_text_column(exchanges.capture_id, len(losses)),
            t.connection_id: exchanges.connection_ids[losses["connection"]],
            t.direction: pa.array(["request", "response", "unknown"]).take(side),
            t.stream_offset: losses["stream_offset"],
            t.exchange_no: pa.nulls(len(losses), pa.int64()),
            t.reason: reasons.take(losses["reason"]),
            t.bytes: losses["bytes"],
            t.missing_bytes: np.zeros(len(losses), np.int64),
            t.time: ns_to_us(losses["time"]),
            t.packet: losses["packet"],
            **not_refused_columns(len(losses)),
        },
    )


def frame_rows(exchanges: Exchanges, side: str) -> pa.RecordBatch:
    """A row of `quarantine` for each frame of an exchange that could not be decoded, with the first of its reasons.

    side: request or response.
    """
    is_request = side == "request"
    fields = exchanges.request_fields if is_request else exchanges.response_fields
    is_there, missing = fields["size"] != UNKNOWN, fields["missing"]
    reasons = {
        QuarantineReason.CUT_FRAME: missing > 0,
        QuarantineReason.UNFINISHED_FRAME: fields["unsent"] > 0,
        QuarantineReason.ORPHAN_RESPONSE: exchanges.request == UNKNOWN,
        QuarantineReason.UNDECODABLE: exchanges.fault != 0,
    }
    is_faulty = np.stack(list(reasons.values())) & is_there
    rows = np.flatnonzero(is_faulty.any(axis=0))
    faulty = (
        exchanges.frames.requests[exchanges.request[rows]]
        if is_request
        else exchanges.frames.responses[exchanges.response[rows]]
    )
    t = QUARANTINE
    return make_rows(
        t,
        {
            t.capture_id: repeated_text_column(exchanges.capture_id, len(rows)),
            t.connection_id: exchanges.connection_id[rows],
            t.direction: repeated_text_column(side, len(rows)),
            t.stream_offset: faulty["stream_offset"],
            t.exchange_no: arrow_array(exchanges.number[rows], np.ones(len(rows), np.bool_)),
            t.reason: pa.array([reason.value for reason in reasons]).take(is_faulty[:, rows].argmax(axis=0)),
            t.bytes: present_bytes(fields)[rows],
            t.missing_bytes: missing[rows],
            t.time: ns_to_us(faulty["first_time"]),
            t.packet: faulty["first_packet"],
            **not_refused_columns(len(rows)),
        },
    )


def not_refused_columns(rows: int) -> dict[str, pa.Array[Any]]:
    """The columns of `quarantine` that only a gate fills, for whole rows that it refuses: all null here."""
    return {column: pa.nulls(rows, pa.string()) for column in (QUARANTINE.refused_from, QUARANTINE.refused_row)}
