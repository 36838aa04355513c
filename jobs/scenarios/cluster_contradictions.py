"""Values of a described cluster that contradict each other, though each is right by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set

from jobs.scenarios.cluster import Cluster, SizeClass, Topics
from jobs.scenarios.located_yaml import Address, Fault, LocatedYaml

MAX_PARTITIONS = 5_000_000
"""The most partitions that a described cluster may come to; more is a slip of the pen."""


def contradictions(located: LocatedYaml, cluster: Cluster, unknown: Set[Address]) -> Iterator[Fault]:
    """The contradictions in what is known of a file.

    unknown: where the file is malformed; there the cluster has the least that is possible.
    """
    sized: dict[Address, Topics | SizeClass] = {("topics", i): topics for i, topics in enumerate(cluster.topics)}
    sized |= {("growth", "topics", i): topics for i, topics in enumerate(cluster.growth.topics)}
    brokers = enumerate(cluster.brokers)
    ids = [broker.id for i, broker in brokers if not {("brokers", i), ("brokers", i, "id")} & unknown]
    yield from (Fault(located.at(("brokers",)), f"broker {node} is given twice") for node in _repeated_values(ids))
    if not {(), ("brokers",)} & unknown:
        yield from _short_of_brokers(located, sized, len(cluster.brokers) - len(ids) + len(set(ids)))
    names = set(_repeated_values(topics.name for topics in sized.values()))
    again = [(address, topics.name) for address, topics in sized.items() if topics.name in names]
    yield from (Fault(located.at(address), f"{name} is given twice") for address, name in again)
    partitions = partitions_in_the_end(cluster)
    if partitions > MAX_PARTITIONS:
        fault = f"{'at least ' if unknown else ''}{partitions:,} partitions in the end; at most {MAX_PARTITIONS:,}"
        yield Fault(located.at(()), fault)


def _short_of_brokers(
    located: LocatedYaml, sized: Mapping[Address, Topics | SizeClass], brokers: int
) -> Iterator[Fault]:
    """Topics with more replicas than there are brokers."""
    for address, topics in sized.items():
        if topics.replication_factor > brokers:
            fault = f"{topics.name}: replication.factor {topics.replication_factor} on {brokers} brokers"
            yield Fault(located.at(address), fault)


def partitions_in_the_end(cluster: Cluster) -> int:
    """Partitions of the topics that are there and of those that are to come."""
    present = sum(topics.count * topics.partitions for topics in cluster.topics)
    growth = cluster.growth
    return present + sum(int(growth.days * size.per_day) * size.partitions for size in growth.topics)


def _repeated_values(values: Iterable[int | str]) -> list[int | str]:
    """The values that occur more than once."""
    return [value for value, times in Counter(values).items() if times > 1]
