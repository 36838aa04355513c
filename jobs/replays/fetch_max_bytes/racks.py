"""The racks of consumers and brokers: those that somebody states, otherwise those that captures show (KIP-392)."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from jobs.replays.algorithm import Source
from jobs.scenarios.settings import Value, subnet_of
from schemas.tables.gold_racks import RACK_READS
from schemas.tables.silver import EXCHANGES
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.values import BROKER
from udfs.facts.arrow_tables import arrow_schema

CLIENT_RACK, BROKER_RACK = "client.rack", "broker.rack"
ALL_CLIENTS = f"consumer.{CLIENT_RACK}"
OF_CLIENT, OF_ADDRESS, OF_BROKER = "client.", "address.", "broker."
CONSUMER_RACKS = pa.schema(
    [
        arrow_schema(table).field(column)
        for table, column in ((EXCHANGES, EXCHANGES.connection_id), (RACK_READS, RACK_READS.client_rack))
    ]
)
"""The rack of the consumer of each connection, null if it is not known."""


class Consumer(NamedTuple):
    """A consumer, and the rack that its requests state; None or empty for none."""

    client_id: str
    address: str
    shown: str | None


def consumer_racks(source: Source) -> pa.Table:
    """The rack of the consumer of each connection with fetches: rows of CONSUMER_RACKS.

    Consumers in several racks may share their client.id, and their address too if it is translated. So what a request
    states holds for its connection alone. The driver holds a row of each, as it holds the software of connections.
    """
    x = EXCHANGES
    of_consumers = source.rows(x).where(F.col(x.fetch_replica_id) < 0)
    client_id = F.coalesce(F.max(x.client_id), F.lit(""))
    shown = of_consumers.groupBy(x.connection_id).agg(client_id, F.max(x.client_address), F.max(x.fetch_rack_id))
    stated = source.run.scenario.captured
    rows = [(number, rack_of_consumer(Consumer(*consumer), stated)) for number, *consumer in shown.collect()]
    named = [dict(zip(CONSUMER_RACKS.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=CONSUMER_RACKS)


def rack_of_consumer(consumer: Consumer, stated: Mapping[str, Value]) -> str | None:
    """The rack that is stated for its client.id, otherwise for the smallest subnet that it is in, otherwise for all,
    otherwise the rack in its requests. None if there is none of these.

    stated: settings in force by key.
    """
    by_id = stated.get(f"{OF_CLIENT}{consumer.client_id}.{CLIENT_RACK}")
    rack = by_id or _rack_of_address(consumer.address, stated) or stated.get(ALL_CLIENTS) or consumer.shown
    return str(rack) if rack else None


def _rack_of_address(address: str, stated: Mapping[str, Value]) -> Value | None:
    """What is stated for the smallest subnet that has an address; a pseudonym stands for a single address."""
    racks = {
        key.removeprefix(OF_ADDRESS).removesuffix(f".{CLIENT_RACK}"): rack
        for key, rack in stated.items()
        if key.startswith(OF_ADDRESS)
    }
    if address in racks:
        return racks[address]
    subnets = {subnet: rack for text, rack in racks.items() if (subnet := subnet_of(text)) is not None}
    try:
        within = [subnet for subnet in subnets if ip_address(address.strip("[]")) in subnet]
    except ValueError:  # a pseudonym
        return None
    return subnets[max(within, key=lambda subnet: subnet.prefixlen)] if within else None


def broker_racks(source: Source) -> dict[str, str]:
    """The known racks of brokers by node id: as stated, otherwise as Metadata responses last show."""
    m = CLUSTER_METADATA
    brokers = source.rows(m).where(F.col(m.entry) == BROKER).groupBy(F.col(m.node_id).cast("string"))
    shown: dict[str, str | None] = dict(brokers.agg(F.max_by(m.rack, m.response_time)).collect())
    return racks_in_force(shown, source.run.scenario.captured)


def racks_in_force(shown: Mapping[str, str | None], stated: Mapping[str, Value]) -> dict[str, str]:
    """The rack of each broker. What is stated for one broker overrides what is stated for all, and that overrides what
    Metadata responses show.
    """
    of_all = stated.get(BROKER_RACK)
    of_one = {
        key.removeprefix(OF_BROKER).removesuffix(f".{BROKER_RACK}"): str(rack)
        for key, rack in stated.items()
        if key.endswith(f".{BROKER_RACK}")
    }
    racks = {node: str(of_all or rack or "") for node, rack in shown.items()}
    return {node: rack for node, rack in {**racks, **of_one}.items() if rack}
