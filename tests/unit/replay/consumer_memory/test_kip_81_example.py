"""The example of KIP-81's pull request (apache/kafka#4934), a proposal: what VALIDATION.md says of it.

Six brokers, two topics of six partitions, each broker leading one of each, full of messages of 100 kB. One consumer
with fetch.max.bytes=10000000 and max.partition.fetch.bytes=5000000 polls, 500 records at most, then sleeps a second.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.unit.replay.closed_units import Client, Part, Times, replayed
from tests.unit.replay.consumer_memory.traces import bounds_of
from udfs.replay.consumer_memory.channels import replay_unit
from udfs.replay.consumer_memory.draining import Exchanges
from udfs.replay.consumer_memory.pool import UNBOUNDED
from udfs.replay.consumer_memory.responses import Responses, as_exchanges
from udfs.replay.consumer_memory.state import (
    COMPLETED_AS_MAX,
    IN_FLIGHT_ESTIMATE,
    MEMORY_POOL,
    REQUESTS_IN_FLIGHT,
    Sim,
    Trace,
)
from udfs.replay.consumer_memory.traces import trace_of_responses
from udfs.replay.fetch_max_bytes.client_order import JAVA_3, JAVA_4
from udfs.replay.shared.lanes import AS_CAPTURED

BROKERS, MESSAGES, MESSAGE = 6, 200, 100_000
FETCH_MAX_BYTES, OF_PARTITION, POOL = 10_000_000, 5_000_000, 30_000_000
BOUND = min(BROKERS * FETCH_MAX_BYTES, 2 * BROKERS * OF_PARTITION)
"""KIP-74's."""
SLEEP_US, POLL_RECORDS = 1_000_000, 500
RECORD_US = SLEEP_US // POLL_RECORDS
PACE = Times(byte=0.001)
NOTHING_CAPTURED = Exchanges(*(np.zeros(0, np.int64) for _ in Exchanges._fields))


@cache
def example(profile: int) -> Trace:
    """The closed loop's responses of all brokers, by the rules of a client before 4.0, as it was, or since."""
    client = Client(
        FETCH_MAX_BYTES, partition_max_bytes=OF_PARTITION, max_poll_records=POLL_RECORDS, profile=profile,
        in_session=False, record_us=float(RECORD_US), overlaps=True,
    )  # fmt: skip
    parts = [Part([MESSAGE] * MESSAGES, node=broker) for broker in range(BROKERS) for _ in range(2)]
    kept = replayed(parts, [client], pace=PACE).kept
    connection, asked, came, drained, size, records, partitions = (column[0, : kept.total[0]] for column in kept[:7])
    responses = Responses(np.arange(len(asked)), connection, asked, came, drained - came, size, records, partitions)
    rows = as_exchanges(responses, NOTHING_CAPTURED, FETCH_MAX_BYTES)
    order = np.argsort(rows.asked, kind="stable")
    return trace_of_responses(Exchanges(*(column[order] for column in rows)))


def held(profile: int, *sizes: int, variant: int = MEMORY_POOL, record_us: int = AS_CAPTURED) -> Sim:
    """The example, a lane a size of the pool; by default each connection keeps its own pace."""
    bounds = bounds_of(*sizes, variant=variant, record_us=record_us, most_records=POLL_RECORDS)
    return replay_unit(example(profile), bounds)


def test_a_client_of_then_holds_a_partition_more_than_kip_74_or_the_pool_allows() -> None:
    """It fetches a partition again while the other one of the response before still pins all of that."""
    sim = held(JAVA_3, UNBOUNDED, POOL)
    assert sim.usages["most"].tolist() == [BOUND + OF_PARTITION, POOL + OF_PARTITION]
    assert sim.runs["stuck"].tolist() == sim.runs["larger"].tolist() == [0, 0]
    assert sim.runs["records"].tolist() == [2 * BROKERS * MESSAGES] * 2


def test_a_client_since_4_0_holds_as_much_as_kip_74_allows_and_no_more_than_the_pool() -> None:
    assert held(JAVA_4, UNBOUNDED, POOL).usages["most"].tolist() == [BOUND, POOL]


def test_a_pool_costs_nothing_where_the_application_is_what_takes_time() -> None:
    sim = held(JAVA_4, UNBOUNDED, POOL, record_us=RECORD_US)
    assert int(sim.runs["waits"][1]) > 0
    assert sim.runs["end"].tolist() == [int(sim.runs["end"][0])] * 2


def test_the_heap_was_larger_and_more_of_it_was_saved_than_the_model_tells() -> None:
    """A heap of 200 MB was needed, and 120 MB with the pool. 500 records that the application holds are in both."""
    without, pooled = held(JAVA_3, UNBOUNDED, POOL).usages["most"].tolist()
    application = POLL_RECORDS * MESSAGE
    assert (without + application, pooled + application) == (115_000_000, 85_000_000)
    assert without - pooled == 30_000_000 < 200_000_000 - 120_000_000


@pytest.mark.parametrize("variant", [IN_FLIGHT_ESTIMATE, REQUESTS_IN_FLIGHT, COMPLETED_AS_MAX])
def test_with_full_responses_only_the_variant_that_forgets_what_is_completed_holds_more(variant: int) -> None:
    sim = held(JAVA_4, POOL, variant=variant)
    assert int(sim.usages[0]["most"]) == (BOUND if variant == REQUESTS_IN_FLIGHT else POOL)
