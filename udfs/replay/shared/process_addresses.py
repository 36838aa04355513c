"""The address under which each of several processes with one client.id and address is replayed."""

from __future__ import annotations

import re
from typing import NamedTuple

import pyarrow as pa

from schemas.tables.silver import CONNECTIONS, EXCHANGES
from udfs.columns.arrow_columns import compute as pc
from udfs.replay.shared.client_software import numbers_by_connection
from udfs.replay.shared.processes import ONE_EACH, Processes
from udfs.replay.shared.silver_columns import ByConnection, Column, first_text

_PORT = re.compile(r":\d+$")


def without_port(address: str) -> str:
    """The address that processes share, from that of one of them.

    >>> without_port("10.0.0.1:40312"), without_port("10.0.0.1"), without_port("[::1]")
    ('10.0.0.1', '10.0.0.1', '[::1]')
    """
    return _PORT.sub("", address)


class ProcessAddresses(NamedTuple):
    """The processes of clients that are several, by connection.

    process: the place in `addresses` of the address of the process that has the connection. addresses: each process's
    address, with the port of its first connection. unknown: 1 for a connection of which it is not known whose it is.
    """

    process: ByConnection
    addresses: tuple[str, ...]
    unknown: ByConnection

    def of(self, connections: Column, address: Column) -> Column:
        """The address of each row's process; that of its client if that is one process, or if the process is not known.

        connections: the id of each row's connection. address: each row's client_address, a dictionary column.
        """
        if not self.addresses:
            return address
        places = self.process.of(connections, None).cast(pa.int32())
        return first_text(pa.DictionaryArray.from_arrays(places, pa.array(self.addresses, pa.string())), address)

    def are_told_apart(self, connections: Column) -> Column:
        """Whether it is known which process has each row's connection. connections: its id."""
        return pc.equal(self.unknown.of(connections, 0), 0)


def with_process_address(rows: pa.RecordBatch, processes: ProcessAddresses) -> pa.RecordBatch:
    """Rows of EXCHANGES, or of another table with its columns, with the address of each row's process as
    client_address.
    """
    address = EXCHANGES.client_address
    of_process = processes.of(rows[EXCHANGES.connection_id], rows[address])
    return rows.set_column(rows.schema.names.index(address), str(address), of_process)


def process_addresses(processes: Processes, connections: pa.Table) -> ProcessAddresses:
    """The addresses of processes. connections: connection_id and client of CONNECTIONS."""
    columns = (connections[column].to_pylist() for column in (CONNECTIONS.connection_id, CONNECTIONS.client))
    client, firsts = dict(zip(*columns, strict=True)), sorted(set(processes.first.values()))
    place = {first: number for number, first in enumerate(firsts)}
    return ProcessAddresses(
        numbers_by_connection({connection: place[first] for connection, first in processes.first.items()}),
        tuple(str(client[first]) for first in firsts),
        numbers_by_connection(dict.fromkeys(processes.unknown, 1)),
    )


ONE_ADDRESS_EACH = process_addresses(
    ONE_EACH, pa.table({column: [] for column in (CONNECTIONS.connection_id, CONNECTIONS.client)})
)
"""Each client is one process."""
