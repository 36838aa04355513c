"""Names that only the whole capture set tells: of topics by id, and of brokers by the addresses they listen on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.captures.topic_ids import CREATION, DELETION, ids_in_force
from schemas.tables.silver import CONNECTIONS
from schemas.tables.silver_topics import CLUSTER_METADATA, TOPIC_CHANGES
from udfs.facts.known_names import Names


def learn_names(metadata: DataFrame, changes: DataFrame, connections: DataFrame) -> Names:
    """What Metadata, CreateTopics and DeleteTopics responses say; it grows with the cluster, not with the traffic."""
    m, t, c = CLUSTER_METADATA, TOPIC_CHANGES, CONNECTIONS
    brokers = metadata.select(m.host, F.col(m.port).cast("string"), F.col(m.node_id).cast("string"))
    done = changes.where((F.col(t.error_code) == 0) & ~F.coalesce(t.validate_only, F.lit(False)))
    asked = F.unix_micros(t.request_time).alias("asked")
    named = done.select(t.topic, t.topic_id, asked, asked.alias("answered"))
    shown = metadata.select(m.topic, m.topic_id, F.unix_micros(m.request_time), F.unix_micros(m.response_time))
    first, last = (F.coalesce(told, F.lit(0)) for told in (F.min("answered"), F.max("asked")))
    pairs = shown.toDF(*named.columns).union(named).groupBy(t.topic, t.topic_id).agg(first, last)
    made = done.where(F.col(t.kind).isin(CREATION, DELETION)).select(t.topic, t.kind, asked)
    tables = [texts_of(pairs), texts_of(made), brokers, connections.select(c.server)]
    shown_ids, breaks, nodes, servers = distinct_together(tables)
    return Names(
        {topic_id: name for name, topic_id, _, _ in shown_ids},
        ids_in_force(
            [(name, topic_id, int(first), int(last)) for name, topic_id, first, last in shown_ids],
            [(name, kind, int(time)) for name, kind, time in breaks],
        ),
        name_brokers([(host, int(port), int(node)) for host, port, node in nodes], [server for (server,) in servers]),
    )


def texts_of(rows: DataFrame) -> DataFrame:
    """The rows with every column as a text."""
    return rows.select(*(F.col(column).cast("string") for column in rows.columns))


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
