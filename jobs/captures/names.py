"""Names that only the whole capture set tells: of topics by id, and of brokers by the addresses they listen on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.captures.topic_ids import ids_in_force
from jobs.packed_tables import of_tables
from udfs.facts.known_names import Names
from udfs.facts.table_files import unpacked_rows
from udfs.facts.told_names import BROKER, CHANGE, SERVER, SHOWN_ID, TOLD, TOLD_BY, distinct, told_names


def names_in(packed: DataFrame) -> Names:
    """What packed rows, columns PACKED_TABLE and PACKED_ROWS, tell of names."""

    def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_names(unpacked_rows(batches, TOLD_BY, None)).to_batches()

    return learn_names(of_tables(packed, TOLD_BY).mapInArrow(gather, from_arrow_schema(TOLD)).toArrow())


def learn_names(told: pa.Table) -> Names:
    """What Metadata, CreateTopics and DeleteTopics responses and connections say: rows of TOLD, in any order."""
    rows = distinct(told.cast(TOLD)).sort_by([(name, "ascending") for name in TOLD.names])
    found: dict[str, list[tuple[str, str, int | None, int | None]]] = defaultdict(list)
    for what, *row in zip(*(rows[name].to_pylist() for name in TOLD.names), strict=True):
        found[what].append((row[0], row[1], row[2], row[3]))
    return Names(
        {topic_id: name for name, topic_id, _, _ in found[SHOWN_ID]},
        ids_in_force(
            [(name, topic_id, first or 0, last or 0) for name, topic_id, first, last in found[SHOWN_ID]],
            [(name, kind, at) for name, kind, at, _ in found[CHANGE] if at is not None],
        ),
        name_brokers(
            [(host, int(port), node) for host, port, node, _ in found[BROKER] if node is not None],
            [server for server, *_ in found[SERVER]],
        ),
    )


def name_brokers(brokers: list[tuple[str, int, int]], servers: list[str]) -> dict[str, str]:
    """Node id by server (address:port) from what brokers advertise: (host, port, node id).

    A host that is an address is compared as it is; one that is a name can only be told by a port that one broker alone
    advertises and one server alone has.
    """
    exact = {f"[{host}]:{port}" if ":" in host else f"{host}:{port}": node for host, port, node in brokers}
    nodes_by_port: dict[int, set[int]] = defaultdict(set)
    servers_by_port: dict[int, set[str]] = defaultdict(set)
    for _, port, node in brokers:
        nodes_by_port[port].add(node)
    for server in servers:
        servers_by_port[int(server.rpartition(":")[2])].add(server)
    named = {server: str(exact[server]) for server in servers if server in exact}
    for port, nodes in nodes_by_port.items():
        alone = servers_by_port[port]
        if len(nodes) == 1 and len(alone) == 1:
            named.setdefault(next(iter(alone)), str(next(iter(nodes))))
    return named
