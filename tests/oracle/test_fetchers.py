"""A partition has the fetcher that Kafka's own AbstractFetcherManager gives it."""

from __future__ import annotations

import random
import string

from tests.oracle.conftest import Jars, RunJava
from tests.oracle.test_share_sessions import JARS
from udfs.replay.fetch_max_bytes.closed_loop.fetchers import fetcher_hash

SEED, PARTITIONS = 5, 3000
LOG4J = "org.apache.logging.log4j:log4j-api:2.25.4"


def test_a_partition_has_the_fetcher_that_abstract_fetcher_manager_gives_it(jars: Jars, run_java: RunJava) -> None:
    """Topic names have any length. The hash of one is the smallest int, which has no absolute value."""
    chance = random.Random(SEED)  # noqa: S311  (not for secrets)
    letters = f"{string.ascii_letters}{string.digits}._-"
    asked = [
        (chance.randint(1, 128), chance.randint(0, 10_000), "".join(chance.choices(letters, k=chance.randint(1, 249))))
        for _ in range(PARTITIONS)
    ]
    asked += [(fetchers, partition, "polygenelubricants") for fetchers in (1, 3, 7) for partition in range(3)]
    lines = "\n".join(f"{fetchers} {partition} {topic}" for fetchers, partition, topic in asked)
    named = [int(line) for line in run_java("FetcherIds.java", *jars(*JARS, LOG4J), stdin=lines).splitlines()]
    assert named == [fetcher_hash(topic, partition) % fetchers for fetchers, partition, topic in asked]
