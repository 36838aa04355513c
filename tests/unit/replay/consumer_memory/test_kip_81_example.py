"""The example in the pull request of KIP-81, a proposal (apache/kafka#4934); VALIDATION.md reports these results.

There are six brokers and two topics of six partitions, full of messages of 100 kB. Each broker leads one partition of
each topic. One consumer with fetch.max.bytes=10000000 and max.partition.fetch.bytes=5000000 polls up to 500 records,
then sleeps a second.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.unit.replay.consumer_memory import traces
from tests.unit.replay.consumer_memory.traces import pools_of
from tests.unit.replay.fetch_max_bytes.closed_units import Client, Part, Times, replayed, responses_of
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.replay.consumer_memory.events import EXCHANGE
from udfs.replay.consumer_memory.responses import CLOSED_RESPONSE, LOOPED, in_closed_loop
from udfs.replay.consumer_memory.settings import (
    COMPLETED_AS_MAX,
    IN_FLIGHT_ESTIMATE,
    MEMORY_POOL,
    REQUESTS_IN_FLIGHT,
    UNBOUNDED,
)
from udfs.replay.consumer_memory.state import Traces
from udfs.replay.consumer_memory.traces import traces_of_responses
from udfs.replay.fetch_max_bytes.settings import JAVA_3, JAVA_4
from udfs.replay.shared.lanes import AS_CAPTURED

BROKERS, MESSAGES, MESSAGE = 6, 200, 100_000
FETCH_MAX_BYTES, OF_PARTITION, POOL = 10_000_000, 5_000_000, 30_000_000
BOUND = min(BROKERS * FETCH_MAX_BYTES, 2 * BROKERS * OF_PARTITION)
"""The memory bound of KIP-74."""
SLEEP_US, POLL_RECORDS = 1_000_000, 500
RECORD_US = SLEEP_US // POLL_RECORDS
PACE = Times(byte=0.001)
NOTHING_CAPTURED, NO_CONNECTION = np.zeros(0, EXCHANGE), np.zeros(0, LOOPED)


@cache
def example(profile: int) -> Traces:
    """The closed loop's responses of all brokers. profile: the client's rules; the example's was older than 4.0."""
    client = Client(
        FETCH_MAX_BYTES, partition_max_bytes=OF_PARTITION, max_poll_records=POLL_RECORDS, profile=profile,
        in_session=False, record_us=float(RECORD_US), overlaps=True,
    )  # fmt: skip
    parts = [Part([MESSAGE] * MESSAGES, node=broker) for broker in range(BROKERS) for _ in range(2)]
    kept = responses_of(replayed(parts, [client], pace=PACE))
    responses = new_records(
        CLOSED_RESPONSE,
        len(kept),
        number=np.arange(len(kept)),
        connection=kept["node"],
        requested_at=kept["requested_at"],
        complete_at=kept["arrived_at"],
        held_us=kept["drained_at"] - kept["arrived_at"],
        record_bytes=kept["size"],
        records=kept["records"],
        partitions=kept["partitions"],
    )
    max_bytes = np.array([FETCH_MAX_BYTES])
    return traces_of_responses(in_closed_loop(NOTHING_CAPTURED, responses, NO_CONNECTION, max_bytes), 1)


def held(profile: int, *sizes: int, variant: int = MEMORY_POOL, us_per_record: int = AS_CAPTURED) -> Records:
    """The outcomes of the example, one lane for each pool size. By default each connection keeps its own pace."""
    settings = pools_of(*sizes, variant=variant, us_per_record=us_per_record, max_poll_records=POLL_RECORDS)
    return traces.replayed(example(profile), settings).sim.outcomes


def test_a_client_before_4_0_holds_one_partition_more_than_kip_74_or_the_pool_allows() -> None:
    """It fetches a partition again while the other partition of the response before still pins that whole response."""
    found = held(JAVA_3, UNBOUNDED, POOL)
    assert found["used_max"].tolist() == [BOUND + OF_PARTITION, POOL + OF_PARTITION]
    assert found["stuck"].tolist() == found["too_large"].tolist() == [0, 0]
    assert found["records"].tolist() == [2 * BROKERS * MESSAGES] * 2


def test_a_client_since_4_0_holds_as_much_as_kip_74_allows_and_no_more_than_the_pool() -> None:
    assert held(JAVA_4, UNBOUNDED, POOL)["used_max"].tolist() == [BOUND, POOL]


def test_a_pool_costs_no_time_where_the_application_is_slower_than_the_brokers() -> None:
    found = held(JAVA_4, UNBOUNDED, POOL, us_per_record=RECORD_US)
    assert int(found["waits"][1]) > 0
    assert found["ended_at"].tolist() == [int(found["ended_at"][0])] * 2


def test_the_heap_was_larger_and_more_of_it_was_saved_than_in_the_replay() -> None:
    """The consumer needed a heap of 200 MB, and 120 MB with the pool. Both include 500 records in the application."""
    without, pooled = held(JAVA_3, UNBOUNDED, POOL)["used_max"].tolist()
    application = POLL_RECORDS * MESSAGE
    assert (without + application, pooled + application) == (115_000_000, 85_000_000)
    assert without - pooled == 30_000_000 < 200_000_000 - 120_000_000


@pytest.mark.parametrize("variant", [IN_FLIGHT_ESTIMATE, REQUESTS_IN_FLIGHT, COMPLETED_AS_MAX])
def test_with_full_responses_only_the_variant_that_forgets_completed_fetches_holds_more(variant: int) -> None:
    found = held(JAVA_4, POOL, variant=variant)
    assert int(found["used_max"][0]) == (BOUND if variant == REQUESTS_IN_FLIGHT else POOL)
