"""The client of the closed loop asks for what Kafka's fetcher asks for, at the same time, and polls as Kafka's does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.oracle.conftest import Jars, RunJava
from tests.unit.replay.fetch_max_bytes.closed_units import Client, Part, Times, replayed, turns
from udfs.replay.fetch_max_bytes.closed_loop.state import ReaderLanes

KAFKA = "4.3.1"
SEED, CONSUMERS = 74, 60
BEGIN = 1
"""The time at which the closed loop of `replayed` begins, in us."""

Request = tuple[int, int, tuple[tuple[int, int], ...]]
"""Node, time in us, and (partition, records) for each partition that gets records."""


@dataclass(frozen=True)
class Consumer:
    """A consumer of records of one byte, in batches of one record.

    partitions: (node, records, most records in a response).
    """

    max_bytes: int
    max_poll_records: int
    answer_us: int
    record_us: int
    partitions: list[tuple[int, int, int]]

    def line(self) -> str:
        """The consumer as ConsumeInTurn.java reads it."""
        client = f"{self.max_bytes} {self.max_poll_records} {self.answer_us} {self.record_us}"
        return f"{client}|{' '.join(':'.join(map(str, partition)) for partition in self.partitions)}"


def some_consumer(chance: random.Random) -> Consumer:
    """A random consumer. Its polls end before, at and after the ends of partitions and of responses."""
    nodes = chance.randint(1, 3)
    most = chance.choice([4, 10, 25])
    count = chance.randint(nodes, 9)
    partitions = [(p if p < nodes else chance.randrange(nodes), chance.randint(0, 80), most) for p in range(count)]
    max_bytes, max_poll_records = chance.choice([10, 25, 40]), chance.choice([1, 3, 5, 10, 100])
    answer_us, record_us = chance.choice([97, 1009]), chance.choice([1, 7, 101])
    return Consumer(max_bytes, max_poll_records, answer_us, record_us, partitions)


def asked_by_kafka(line: str) -> tuple[list[int], list[Request]]:
    """The client's first order of partitions, and the requests that got records, by node and time."""
    order, *requests = line.split("|")
    found = []
    for node, time, *got in (request.split() for request in requests):
        pairs = (part.split(":") for part in got)
        found.append((int(node), int(time), tuple((int(p), int(records)) for p, records in pairs)))
    return [int(p) for p in order.split()], found


def asked_in_closed_loop(consumer: Consumer, order: list[int]) -> list[Request]:
    """The requests of the closed loop that got records, if it first asks for the partitions in this order."""
    by_node = sorted(order, key=lambda p: consumer.partitions[p][0])
    parts = [
        Part([1] * records, max_bytes=most, node=node)
        for node, records, most in (consumer.partitions[p] for p in by_node)
    ]
    client = Client(
        max_bytes=consumer.max_bytes, max_poll_records=consumer.max_poll_records, overlaps=True, in_session=False,
        record_us=float(consumer.record_us),
    )  # fmt: skip
    out = replayed(parts, [client], pace=Times(gap=0.0, answer=float(consumer.answer_us)))
    return [
        request
        for node in range(max(part.node for part in parts) + 1)
        for request in requests_of(out, consumer, node, by_node)
    ]


def requests_of(out: ReaderLanes, consumer: Consumer, node: int, numbers: list[int]) -> Iterator[Request]:
    """A node's requests that got records. numbers: the partitions, by their places in the replay."""
    order = iter(turns(out, node))
    left = {p: consumer.partitions[p][1] for p in numbers}
    responses = out.responses[0]
    for response in responses[(responses["node"] == node) & (responses["size"] > 0)]:
        limit, got = consumer.max_bytes, []
        for _ in range(response["partitions"]):
            p = numbers[next(order)]
            records = min(left[p], consumer.partitions[p][2], limit)
            left[p], limit = left[p] - records, limit - records
            got.append((p, records))
        assert consumer.max_bytes - limit == response["size"]
        yield node, int(response["requested_at"]) - BEGIN, tuple(got)


def test_what_is_asked_for_when_and_in_which_order_is_what_kafkas_fetcher_asks(jars: Jars, run_java: RunJava) -> None:
    """AbstractFetch, FetchBuffer, FetchCollector and SubscriptionState decide the order, the nodes that are left out,
    and how max.poll.records counts.
    """
    chance = random.Random(SEED)  # noqa: S311  (not for secrets)
    consumers = [some_consumer(chance) for _ in range(CONSUMERS)]
    lines = "\n".join(consumer.line() for consumer in consumers)
    printed = run_java("ConsumeInTurn.java", *jars(f"org.apache.kafka:kafka-clients:{KAFKA}"), stdin=lines).splitlines()
    assert len(printed) == CONSUMERS
    for consumer, line in zip(consumers, printed, strict=True):
        order, requests = asked_by_kafka(line)
        assert asked_in_closed_loop(consumer, order) == requests, consumer
