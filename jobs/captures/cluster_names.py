"""Which cluster each server of a capture set belongs to, where the set shows several: by the cluster ids in Metadata
responses and the addresses that they list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class AdvertisedBroker(NamedTuple):
    """A broker that a server's response lists: the server, and the broker's host, port and node id."""

    server: str
    host: str
    port: int
    node_id: int

    @property
    def endpoint(self) -> str:
        """host:port, as servers are written where the host is an address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def name_clusters(
    cluster_ids: Iterable[tuple[str, str]], brokers: Sequence[AdvertisedBroker], servers: Iterable[str]
) -> dict[str, str]:
    """Cluster id by server (address:port). Servers whose cluster is not known are left out.

    If all responses have the same cluster id, all servers belong to that cluster. Otherwise a server without an id of
    its own, such as one from which only followers fetch, belongs to the single cluster whose servers list its endpoint,
    or else to the single one whose servers list any port of its address. If a server's responses have several ids, as
    when a cluster was set up anew, the first in the order of ids counts.

    cluster_ids: (server, cluster id that its responses have). brokers: what Metadata responses list.
    """
    own = {server: min(ids) for server, ids in values_by_key(cluster_ids).items()}
    if len(set(own.values())) <= 1:
        return dict.fromkeys(servers, next(iter(own.values()))) if own else {}
    listed = [(broker, own[broker.server]) for broker in brokers if broker.server in own]
    by_endpoint = _lone_values((broker.endpoint, cluster) for broker, cluster in listed)
    by_address = _lone_values((broker.endpoint.rpartition(":")[0], cluster) for broker, cluster in listed)
    ways = (own.get, by_endpoint.get, lambda server: by_address.get(server.rpartition(":")[0]))
    named = {server: next(filter(None, (way(server) for way in ways)), None) for server in servers}
    return {server: cluster for server, cluster in named.items() if cluster is not None}


def values_by_key(pairs: Iterable[tuple[K, V]]) -> Mapping[K, set[V]]:
    """The values of each key."""
    groups: dict[K, set[V]] = defaultdict(set)
    for key, value in pairs:
        groups[key].add(value)
    return dict(groups)


def _lone_values(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The value of each key that has a single one."""
    return {key: next(iter(values)) for key, values in values_by_key(pairs).items() if len(values) == 1}
