"""Which node each server (address:port) of a capture set is. A broker is one node, however many listeners it has.

The node that advertises an endpoint is the node there. For other servers there are three ways to find the node: which
node lives at the address, whose partitions the server answers for, and which node alone advertises its port. All ways
that show a node have to show the same one. A server is never the node of a follower that fetches from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from jobs.captures.cluster_names import AdvertisedBroker, values_by_key

PORT, ADDRESS, PARTITIONS = "its port", "its address", "the partitions that it answers for"


class Follows(NamedTuple):
    """A follower that fetches: the server from which it fetches, the follower's address, and its node id."""

    server: str
    address: str
    node_id: int


class BrokerNames(NamedTuple):
    """named: the node id by server. unnamed: for servers without a node id the reason, by server. A server that is the
    listener of a controller may be in neither.
    """

    named: dict[str, str]
    unnamed: dict[str, str]


@dataclass(frozen=True)
class BrokerEvidence:
    """What a capture set shows of the nodes of its servers.

    led_by: the nodes that lead the partitions for which a server gives answers that only a leader gives, by server.
    controllers: servers that are listeners of KRaft controllers. cluster_of: cluster id by server.
    """

    servers: Collection[str]
    advertised: Sequence[AdvertisedBroker] = ()
    followers: Sequence[Follows] = ()
    led_by: Mapping[str, Collection[int]] = field(default_factory=dict)
    controllers: Collection[str] = ()
    cluster_of: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def nodes_by_endpoint(self) -> Mapping[str, set[int]]:
        """The nodes that advertise each address:port."""
        return values_by_key((broker.endpoint, broker.node_id) for broker in self.advertised)

    def _cluster(self, server: str) -> str:
        return self.cluster_of.get(server, "")

    @cached_property
    def _advertisers(self) -> Mapping[str, set[tuple[str, int]]]:
        """The nodes that advertise each host, with their clusters."""
        return values_by_key(
            (broker.host, (self._cluster(broker.server), broker.node_id)) for broker in self.advertised
        )

    @cached_property
    def _residents(self) -> Mapping[str, set[tuple[str, int]]]:
        """The nodes that advertise each address and the followers that fetch from it, with their clusters."""
        fetching = ((f.address, (self._cluster(f.server), f.node_id)) for f in self.followers)
        return values_by_key(
            [*((host, node) for host, nodes in self._advertisers.items() for node in nodes), *fetching]
        )

    @cached_property
    def _shared(self) -> set[str]:
        """Addresses of several nodes, which are those where a follower fetches from a server at its own address."""
        ends = ((f.address, f.server) for f in self.followers if f.server not in self.controllers)
        return {address for address, server in ends if address == address_in_server(server)}

    @cached_property
    def _followers_of(self) -> Mapping[str, set[int]]:
        return values_by_key((f.server, f.node_id) for f in self.followers)

    @cached_property
    def _by_port(self) -> Mapping[str, int]:
        """The node of each server whose port no other server has, if one node alone advertises that port."""
        nodes = values_by_key((str(broker.port), broker.node_id) for broker in self.advertised)
        servers = values_by_key((server.rpartition(":")[2], server) for server in self.servers)
        alone = ((next(iter(at)), nodes[port]) for port, at in servers.items() if len(at) == 1 and port in nodes)
        return {server: next(iter(of)) for server, of in alone if len(of) == 1}

    def _among(self, nodes: Mapping[str, set[tuple[str, int]]], server: str) -> list[int]:
        """The node ids at the server's address.

        If the server's cluster is known, only nodes of that cluster count, for two clusters may have the same node id.
        """
        own = self.cluster_of.get(server)
        return [node for cluster, node in nodes.get(address_in_server(server), ()) if own in (None, cluster)]

    def ways(self, server: str) -> dict[str, int]:
        """For a server that nobody advertises: the node that each way shows, by way. Ways that show no node, or
        several, are left out.
        """
        nodes_by_way = {PARTITIONS: list(self.led_by.get(server, ()))}
        if address_in_server(server) not in self._shared:
            nodes_by_way[ADDRESS] = self._among(self._residents, server)
        if server in self._by_port:
            nodes_by_way[PORT] = [self._by_port[server]]
        return {way: next(iter(nodes)) for way, nodes in nodes_by_way.items() if len(nodes) == 1}

    def objection(self, server: str) -> str | None:
        """Why a server must not be taken for the node that its ways show; None if nothing speaks against it."""
        ways, leaders = self.ways(server), sorted(self.led_by.get(server, ()))
        advertisers = self._among(self._advertisers, server)
        if len(leaders) > 1:
            return f"It answers for partitions of {_nodes_text(leaders)}, as a proxy or a load balancer does."
        if len(set(ways.values())) > 1:
            return f"Evidence contradicts itself: {'; '.join(f'{way}: node {node}' for way, node in ways.items())}."
        for way, node in ways.items():
            if node in self._followers_of.get(server, ()):
                return f"By {way} it would be node {node}, which fetches from it as a follower."
            if advertisers and node not in advertisers:
                return f"By {way} it would be node {node}, and its address is that of {_nodes_text(advertisers)}."
        return None


def name_brokers(evidence: BrokerEvidence, stated: Mapping[str, str] | None = None) -> BrokerNames:
    """Node id by server, where it is stated or the evidence shows a single one. stated: node id by server."""
    names = BrokerNames({}, {})
    for server in sorted(evidence.servers):
        node_id = (stated or {}).get(server) or inferred_node(evidence, server)
        if node_id is not None:
            names.named[server] = node_id
        elif server not in evidence.controllers:
            names.unnamed[server] = why_unnamed(evidence, server)
    return names


def inferred_node(evidence: BrokerEvidence, server: str) -> str | None:
    """The node id of a server if the evidence shows a single one."""
    if server in evidence.nodes_by_endpoint:
        nodes: Collection[int] = evidence.nodes_by_endpoint[server]
    elif server in evidence.controllers or evidence.objection(server):
        return None
    else:
        nodes = set(evidence.ways(server).values())
    return str(next(iter(nodes))) if len(nodes) == 1 else None


def why_unnamed(evidence: BrokerEvidence, server: str) -> str:
    """Why a server has no node id, and what to do: one sentence for each."""
    several = evidence.nodes_by_endpoint.get(server)
    why = f"It is advertised by {_nodes_text(several)}." if several else evidence.objection(server)
    if why is None:
        why = "No Metadata response lists it, and nothing else tells one node alone."
    return f'{why} State its node id with --brokers=FILE, in which a line is `"{server}": NODE_ID`.'


def address_in_server(server: str) -> str:
    """The address of address:port, without the brackets around IPv6."""
    return server.rpartition(":")[0].strip("[]")


def _nodes_text(nodes: Iterable[int]) -> str:
    ids = ", ".join(map(str, sorted(nodes)))
    return f"nodes {ids}" if "," in ids else f"node {ids}"
