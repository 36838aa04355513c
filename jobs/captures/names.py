"""Names that only the whole capture set tells: of topics by id, and of brokers by the addresses they listen on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.tables.silver import CONNECTIONS
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from udfs.facts.known_names import Names


def learn_names(metadata: DataFrame, changes: DataFrame, connections: DataFrame) -> Names:
    """What Metadata, CreateTopics and DeleteTopics responses say; it grows with the cluster, not with the traffic."""
    m, c = CLUSTER_METADATA, CONNECTIONS
    topics = metadata.select(m.topic, m.topic_id).union(changes.select(TOPIC_CHANGES.topic, TOPIC_CHANGES.topic_id))
    brokers = metadata.select(m.host, F.col(m.port).cast("string"), F.col(m.node_id).cast("string"))
    pairs, nodes, servers = distinct_together([topics, brokers, connections.select(c.server)])
    ids_by_name: dict[str, set[str]] = defaultdict(set)
    for name, topic_id in pairs:
        ids_by_name[name].add(topic_id)
    return Names(
        {topic_id: name for name, topic_id in pairs},
        {name: next(iter(ids)) for name, ids in ids_by_name.items() if len(ids) == 1},
        name_brokers([(host, int(port), int(node)) for host, port, node in nodes], [server for (server,) in servers]),
    )


def distinct_together(tables: Sequence[DataFrame]) -> list[list[tuple[str, ...]]]:
    """The distinct rows of each table of texts in their order, those with a null left out, by one Spark job for all."""
    as_texts = [
        rows.dropna().select(F.lit(place).alias("table"), F.array(*rows.columns).alias("texts"))
        for place, rows in enumerate(tables)
    ]
    found: list[list[tuple[str, ...]]] = [[] for _ in tables]
    for place, texts in reduce(DataFrame.union, as_texts).distinct().collect():
        found[place].append(tuple(texts))
    return [sorted(rows) for rows in found]


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
