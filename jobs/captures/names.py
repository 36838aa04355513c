"""Names that only the whole capture set tells: of topics by id, and of brokers by the addresses they listen on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.lake import rows_here
from schemas.tables.silver import CONNECTIONS
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from schemas.tables.table import Table


@dataclass(frozen=True)
class Names:
    """topic_of: name by topic id; id_of: id by topic name, where that had one id only; broker_of: node id by server."""

    topic_of: dict[str, str]
    id_of: dict[str, str]
    broker_of: dict[str, str]


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


def with_names(spark: SparkSession, rows: DataFrame, table: Table, names: Names) -> DataFrame:
    """The rows with brokers and topics called by name where it is known."""
    named: dict[str, Column] = {}
    broker, topic, topic_id = str(CONNECTIONS.broker), str(CLUSTER_METADATA.topic), str(CLUSTER_METADATA.topic_id)
    if broker in table.columns:
        rows = looked_up(spark, rows, broker, names.broker_of, "known_broker")
        named[broker] = F.coalesce("known_broker", broker)
    if table is not CLUSTER_METADATA and topic_id in table.columns:
        rows = looked_up(spark, rows, topic_id, names.topic_of, "known_topic")
        rows = looked_up(spark, rows, topic, names.id_of, "known_id")
        named[topic_id] = F.coalesce(topic_id, "known_id")
        named[topic] = F.coalesce(topic, "known_topic", named[topic_id])
    return rows.select(*(named.get(c, F.col(c)).alias(c) for c in table.columns))


def looked_up(spark: SparkSession, rows: DataFrame, key: str, texts: dict[str, str], into: str) -> DataFrame:
    """The rows with the text for their `key` column in the column `into`, null where there is none."""
    if not texts:
        return rows.withColumn(into, F.lit(None).cast("string"))
    columns = {key: pa.array(texts, pa.string()), into: pa.array(texts.values(), pa.string())}
    found = rows_here(spark, pa.table(columns))
    return rows.join(F.broadcast(found), key, "left")
