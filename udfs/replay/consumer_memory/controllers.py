"""Connections to the listener of a controller (KRaft), by the requests that only a controller answers.

A controller has a SocketServer of its own, with a pool of its own, even in a process that is a broker as well
(kafka.server.ControllerServer of Kafka 4.3). So its requests take no memory of a broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, EXCHANGES
from schemas.wire.apis import API_KEYS
from udfs.columns.arrow_columns import compute as pc
from udfs.facts.metadata_log import fetches_metadata_log
from udfs.replay.shared.client_software import numbers_by_connection
from udfs.replay.shared.silver_columns import ByConnection

_X = EXCHANGES
OF_CONTROLLER = tuple(
    API_KEYS[name]
    for name in (
        "VOTE", "BEGIN_QUORUM_EPOCH", "END_QUORUM_EPOCH", "FETCH_SNAPSHOT", "BROKER_REGISTRATION", "BROKER_HEARTBEAT",
        "CONTROLLER_REGISTRATION", "ASSIGN_REPLICAS_TO_DIRS",
    )
)  # fmt: skip
"""The APIs that brokers and controllers use only with controllers, and clients never."""
ASKED_COLUMNS = (
    _X.connection_id, _X.api_key, _X.api_version, _X.fetch_replica_id, _X.fetch_session_id, _X.fetch_session_epoch,
)  # fmt: skip
ASKED = pa.schema([pa.field("connection_id", pa.int64())])
"""A connection on which a controller is asked. A connection may have several rows."""


def connections_asking_controllers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of ASKED from rows of EXCHANGES: few, however many exchanges there are."""
    for batch in batches:
        of_log = fetches_metadata_log(
            *(batch[c] for c in (_X.fetch_replica_id, _X.fetch_session_id, _X.fetch_session_epoch, _X.api_version))
        )
        is_asked = pc.or_(pc.is_in(batch[_X.api_key], value_set=pa.array(OF_CONTROLLER, pa.int16())), of_log)
        ids = pc.unique(pc.filter(batch[_X.connection_id], is_asked))
        yield pa.RecordBatch.from_arrays([ids], schema=ASKED)


def connections_to_controllers(asked: pa.Table, connections: pa.Table) -> ByConnection:
    """1 for each connection to an address at which a controller is asked on some connection.

    asked: of ASKED. connections: of CONNECTIONS.
    """
    c, ids = CONNECTIONS, set(asked["connection_id"].to_pylist())
    rows = connections.select([c.connection_id, c.server]).to_pylist()
    servers = {row[c.server] for row in rows if row[c.connection_id] in ids}
    return numbers_by_connection({row[c.connection_id]: 1 for row in rows if row[c.server] in servers})
