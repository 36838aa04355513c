"""The pass over readers gives one set of rows for each reader, however its input is split into batches."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.packed import unpack
from tests.unit.replay.fetch_max_bytes.captured_reader import limits_of, read_batch
from udfs.replay.fetch_max_bytes.replay import replay_fetches
from udfs.replay.fetch_max_bytes.settings import FetchLanes, as_captured_clients
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.replay.shared.rows_by_key import whole_fetches

Rows = list[dict[str, Any]]


CLIENTS = as_captured_clients(2)
LANES = FetchLanes(
    ("captured", "small"),
    limits_of(AS_CAPTURED, 150),
    limits_of(AS_CAPTURED, AS_CAPTURED),
    CLIENTS,
    CLIENTS,
    np.ones(2),
)


def read(exchange: int, partition: int, returned: int | None, sizes: list[int], **differs: Any) -> dict[str, Any]:
    """One row of READS with everything known."""
    return {
        "topic": "t",
        "partition": partition,
        "broker": "1",
        "client_address": "10.0.0.1",
        "client_id": "app",
        "reader": "consumer",
        "connection_id": 5,
        "exchange_no": exchange,
        "request_time": 1_000_000 + exchange * 1000,
        "response_time": 1_000_500 + exchange * 1000,
        "max_wait_ms": 500,
        "max_bytes": 1000,
        "readable_known": True,
        "redirected": False,
        "refused": False,
        "throttled": False,
        "read_position": partition,
        "partition_max_bytes": 400,
        "returned_bytes": returned,
        "bound_known": True,
        "log_known": True,
        "batch_sizes": sizes,
        "available_low": sum(sizes),
        "available_high": sum(sizes),
        "first_append": None,
        "available_first": sum(sizes),
    } | differs


def table(rows: Rows) -> pa.Table:
    return pa.Table.from_batches([read_batch(rows)])


def gold(rows: Rows, most: int = 10_000, lanes: FetchLanes = LANES) -> dict[str, Rows]:
    found: dict[str, Rows] = defaultdict(list)
    for packed in replay_fetches(table(rows).to_batches(max_chunksize=most), lanes, "run"):
        for batch in unpack([packed]):
            found[packed["table"][0].as_py()] += batch.to_pylist()
    return found


def open_loop(found: dict[str, Rows]) -> dict[str, Rows]:
    """The rows of the open loop. test_closed_loop has tests of the others."""
    closed = {"mode": "closed", "metric": "closed_loop"}
    return {
        name: [row for row in rows if not any(str(row.get(key)).startswith(text) for key, text in closed.items())]
        for name, rows in found.items()
    }


def many_reads() -> Rows:
    """Several readers, their fetches of any number of partitions, sorted as the job sorts them."""
    rows: Rows = []
    chance = random.Random(7)  # noqa: S311  (not for secrets)
    readers = [("app", "10.0.0.1", "consumer"), ("app", "10.0.0.2", "consumer"), ("b", "10.0.0.2", "follower")]
    for client_id, address, kind in readers:
        for exchange in range(chance.randint(3, 9)):
            is_answered = chance.random() > 0.2
            for position in range(chance.randint(1, 6)):
                sizes = [chance.randint(1, 300) for _ in range(chance.randint(0, 4))]
                rows.append(
                    read(
                        exchange,
                        chance.randint(0, 9),
                        chance.choice([0, 50, sum(sizes)]) if is_answered else None,
                        sizes,
                        client_id=client_id,
                        client_address=address,
                        reader=kind,
                        read_position=position,
                        connection_id=chance.choice([-(2**62), 7]) if position == 0 else rows[-1]["connection_id"],
                        broker=chance.choice("12"),
                        log_known=chance.random() > 0.1,
                        throttled=chance.random() > 0.95,
                    )
                )
    return rows


@pytest.mark.parametrize("most", [1, 7])
def test_batches_of_any_length_give_the_same_rows(most: int) -> None:
    rows = many_reads()
    assert gold(rows, most) == gold(rows)
    assert {name: len(found) for name, found in gold(rows).items()}.keys() == {
        "fidelity",
        "fetch_fairness",
        "fetch_consumers",
        "fetch_memory",
        "fetch_ranges",
    }


@pytest.mark.parametrize("most", [1, 2, 7, 10_000])
def test_no_fetch_is_in_two_batches(most: int) -> None:
    rows = many_reads()
    batches = list(whole_fetches(table(rows).to_batches(max_chunksize=most)))
    assert pa.Table.from_batches(batches).to_pylist() == table(rows).to_pylist()
    keys = [[(row["connection_id"], row["exchange_no"]) for row in batch.to_pylist()] for batch in batches]
    assert all(before[-1] != after[0] for before, after in itertools.pairwise(keys))


def test_no_reads_give_no_rows() -> None:
    assert gold([]) == {}


def test_a_lane_shows_what_its_limit_would_have_done() -> None:
    rows = [read(0, 0, 100, [100]), read(0, 1, 300, [300]), read(1, 0, 100, [100]), read(1, 1, 300, [300])]
    consumers = {row["scenario"]: row for row in open_loop(gold(rows))["fetch_consumers"]}
    assert (consumers["captured"]["bytes"], consumers["small"]["bytes"]) == (800, 200)
    assert (consumers["captured"]["jain_index"], consumers["small"]["jain_index"]) == (1.0, 0.5)
    assert (consumers["captured"]["empty_though_available"], consumers["small"]["empty_though_available"]) == (0, 2)
    assert (consumers["captured"]["response_bytes_max"], consumers["small"]["response_bytes_max"]) == (400, 100)
    assert consumers["captured"]["response_bytes_p50"] == pytest.approx(400, rel=0.004)
    fairness = {(row["scenario"], row["partition"]): row for row in open_loop(gold(rows))["fetch_fairness"]}
    assert [fairness["small", p]["longest_wait_requests"] for p in (0, 1)] == [0, 2]
    assert [fairness["small", p]["longest_wait_ms"] for p in (0, 1)] == [0.0, 1.0]
    assert [fairness["captured", p]["share_of_bytes"] for p in (0, 1)] == [0.25, 0.75]


def test_a_batch_that_came_too_late_for_the_captured_read_comes_too_late_in_every_lane() -> None:
    """Without limits in the way the read returned the first of two batches, so the second one was not there yet."""
    late = read(0, 0, 100, [100, 100], available_low=100, first_append=1_000_000)
    found = {row["scenario"]: row["bytes"] for row in open_loop(gold([late]))["fetch_consumers"]}
    assert found == {"captured": 100, "small": 100}


def test_the_memory_bound_is_that_of_kip_74() -> None:
    """min(brokers x fetch.max.bytes, partitions x max.partition.fetch.bytes)."""
    rows = [read(0, p, 10, [10], broker=b) for b, p in (("1", 0), ("1", 1), ("2", 2), ("2", 3), ("2", 4), ("2", 5))]
    consumers = {row["scenario"]: row["memory_bound_bytes"] for row in open_loop(gold(rows))["fetch_consumers"]}
    assert consumers == {"captured": 2 * 1000, "small": 2 * 150}
    assert open_loop(gold(rows[:2]))["fetch_consumers"][0]["memory_bound_bytes"] == 2 * 400


def test_consumers_and_followers_each_have_their_own_limits() -> None:
    rows = [read(0, p, 200, [200]) for p in (0, 1)] + [read(0, p, 200, [200], reader="follower") for p in (0, 1)]
    found = {(row["reader"], row["scenario"]): row["bytes"] for row in open_loop(gold(rows))["fetch_consumers"]}
    assert found == {
        ("consumer", "captured"): 400,
        ("consumer", "small"): 200,
        ("follower", "captured"): 400,
        ("follower", "small"): 400,
    }


def test_fidelity_counts_fetches_with_and_without_records_by_broker() -> None:
    rows = [
        read(0, 0, 100, [100]),
        read(1, 0, 90, [100]),
        read(2, 0, 0, []),
        read(3, 0, None, [100]),
        read(4, 0, 100, [100], broker="2"),
        read(5, 0, 100, [100], throttled=True),
    ]
    found = {(row["broker"], row["metric"]): row for row in open_loop(gold(rows))["fidelity"]}
    summary = {
        key: (row["checked"], row["agreed"], row["unknown"], sorted(row["reasons"])) for key, row in found.items()
    }
    assert summary == {
        ("1", "fetches_with_records"): (2, 1, 1, [("fewer_bytes", 1), ("throttled", 1)]),
        ("1", "empty_fetches"): (1, 1, 1, [("no_response", 1)]),
        ("2", "fetches_with_records"): (1, 1, 0, []),
    }


def test_unanswered_fetches_are_left_out_of_the_sums() -> None:
    found = gold([read(0, 0, 100, [100]), read(1, 0, None, [100])])
    assert (found["fetch_consumers"][0]["requests"], found["fetch_consumers"][0]["bytes"]) == (1, 100)


def test_a_topic_may_be_called_anything() -> None:
    """A request may ask for a topic with NUL in its name, which no broker has."""
    name = "a\0b\0"
    found = gold([read(n, 0, 150, [100, 50], topic=name) for n in range(3)])
    tables = ("fetch_fairness", "fetch_timeline")
    assert {(row["broker"], row["topic"], row["partition"]) for of in tables for row in found[of]} == {("1", name, 0)}


def test_a_partition_that_only_unanswered_fetches_wanted_has_no_row() -> None:
    unanswered = read(1, 1, None, [10], response_time=None)
    rows = open_loop(gold([read(0, 0, 10, [10]), unanswered]))
    fairness = [(row["partition"], row["bytes"]) for row in rows["fetch_fairness"] if row["scenario"] == "captured"]
    assert fairness == [(0, 10)]
    assert [(row["requests"], row["partitions"]) for row in rows["fetch_consumers"]] == [(1, 1), (1, 1)]
