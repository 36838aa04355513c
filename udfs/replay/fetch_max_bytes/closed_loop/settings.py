"""By which rules each node reads in each lane: the lane's settings, else what the capture shows of the client."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np

from schemas.tables.values import FOLLOWER
from udfs.columns.arrays import Bools, Ints, Records, numbers_in_stretches
from udfs.columns.records import Kind
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_MS
from udfs.replay.fetch_max_bytes.closed_loop.by_node import NodeReads
from udfs.replay.fetch_max_bytes.closed_loop.nodes import Nodes
from udfs.replay.fetch_max_bytes.read_from_log import FIRST_WITH_MAX_BYTES
from udfs.replay.fetch_max_bytes.settings import (
    CLIENT_ORDER,
    JAVA_3,
    JAVA_4,
    LIBRDKAFKA,
    REPLICA_FETCHER,
    FetchLanes,
    Reader,
)
from udfs.replay.shared.lanes import AS_CAPTURED, CAPTURED

RULES: Kind = np.dtype(
    [
        ("limit", np.int64),  # record bytes of a response
        (
            "is_hard",
            np.int64,
        ),  # 1: no batch is returned beyond partition_max_bytes, for Fetch before 3 has no max_bytes
        ("partition_max_bytes", np.int64),  # or AS_CAPTURED: the partition's own
        ("only_first", np.int64),  # 1: only the partition named first may exceed the limits
        ("min_bytes", np.int64),
        ("max_wait_us", np.int64),
        ("max_poll_records", np.int64),
        ("overlaps", np.int64),  # 1: the records of the last poll() are worked on while the next fetch is under way
        ("profile", np.int64),
        ("order", np.int64),
        ("in_session", np.int64),
        ("application", np.int64),  # that takes the node's records: its own, or the first one for all nodes
        ("seed", np.int64),
        ("byte_rate", np.int64),  # bytes/s of the broker's quota, or 0; the next three as in FETCH_LIMITS
        ("quota_windows", np.int64),
        ("quota_window_ms", np.int64),
        ("quota_is_known", np.int64),
        ("meter", np.int64),  # that the broker has of the quota: the number of the first node at the same broker,
        # unless readers are replayed together
        ("readers", np.int64),  # so many share what the reader reads, or what all fetchers of a follower read together;
        # AS_CAPTURED: it reads that alone
        ("us_per_record", np.float64),  # or AS_CAPTURED: along the captured curve
        ("speed", np.float64),  # records are produced so many times as fast as captured
    ]
)
"""By which rules a node reads in a lane."""

OF_QUOTA = ("byte_rate", "quota_windows", "quota_window_ms", "quota_is_known")


class CapturedWork(NamedTuple):
    """What the capture shows of an application's work.

    largest: int64[nodes], the most records of a response. is_at_work: it always is, so that its work between two calls
    of poll() is known (polls.py).
    """

    largest: Ints
    is_at_work: bool


def rules_by_node(nodes: Nodes, profiles: Ints, work: CapturedWork, lanes: FetchLanes, reader: Reader) -> Records:
    """RULES[nodes, lanes].

    Where records are produced twice as fast, the capture's clock ticks twice as fast for a client: what takes it 1 ms
    takes 2 ms of that clock. max_wait_us is by that clock.

    profiles: int64[nodes], by which rules each reads in the capture. What a client does at random is the same in all
    lanes, so that lanes with the same rules are the same.
    """
    limits, clients, captured = lanes.limits(reader), lanes.client(reader.kind), nodes.nodes
    lane_rules = np.zeros((len(captured), len(limits)), RULES)
    profile = set_or_captured(clients["profile"], profiles)
    lane_rules["limit"] = np.minimum(
        set_or_captured(limits["max_bytes"], captured["max_bytes"]), limits["broker_max_bytes"]
    )
    # A lane with max_bytes is a client that knows it.
    is_old = (captured["api_version"] > NONE) & (captured["api_version"] < FIRST_WITH_MAX_BYTES)
    lane_rules["is_hard"] = is_old[:, np.newaxis] & (limits["max_bytes"] == AS_CAPTURED)
    for name in ("partition_max_bytes", "only_first", *OF_QUOTA):
        lane_rules[name] = limits[name]
    lane_rules["min_bytes"] = set_or_captured(clients["min_bytes"], np.maximum(captured["min_bytes"], 0))
    lane_rules["max_wait_us"] = (
        set_or_captured(clients["max_wait_ms"], captured["max_wait_ms"]) * US_PER_MS * lanes.traffic_speed
    )
    for name in ("max_poll_records", "us_per_record", "readers"):
        lane_rules[name] = clients[name]
    lane_rules["overlaps"] = works_beside_fetch(clients, work) & (profile < LIBRDKAFKA)
    lane_rules["profile"] = profile
    lane_rules["order"] = set_or_captured(clients["order"], np.full(len(captured), CLIENT_ORDER))
    follows_capture = clients["profile"] == AS_CAPTURED
    lane_rules["in_session"] = np.where(
        follows_capture, captured["in_session"][:, np.newaxis] == 1, profile != LIBRDKAFKA
    )  # fmt: skip
    shares = nodes.is_one_process & (profile < LIBRDKAFKA)
    lane_rules["application"] = np.where(shares, 0, np.arange(len(captured))[:, np.newaxis])
    _, first, broker = np.unique(captured["broker"], return_index=True, return_inverse=True)
    lane_rules["meter"] = first[broker][:, np.newaxis]
    lane_rules["speed"] = lanes.traffic_speed
    lane_rules["seed"] = zlib.crc32("/".join([lanes.names[CAPTURED], *reader]).encode())
    return lane_rules


def set_or_captured(values: Ints, captured: Ints) -> Ints:
    """What the lane sets, else what the capture shows of the node: int64[nodes, lanes].

    values: int64[lanes], AS_CAPTURED where the lane sets nothing. captured: int64[nodes].
    """
    return np.where(values == AS_CAPTURED, captured[:, np.newaxis], values)


def works_beside_fetch(clients: Records, work: CapturedWork) -> Bools:
    """Where work on the last records goes on beside the next fetch: bool[nodes, lanes].

    Where no captured response took two polls, and the application is not always at work, the pace cannot distinguish
    work beside a fetch from what delays it. clients: CLIENT_SETTINGS[lanes].
    """
    polls = clients["max_poll_records"]
    took_two = (work.largest > polls[CAPTURED]) | work.is_at_work
    changes = (clients["us_per_record"] != AS_CAPTURED) | (polls != polls[CAPTURED])
    return took_two[:, np.newaxis] | changes


def profiles_of_nodes(nodes: Nodes, reads: NodeReads) -> Ints:
    """The rules that each node follows, int64[nodes]: those of its software, else by whether it uses sessions, and
    keeps an order.

    Brokers before 1.1 grant no session, and those before 2.4 do not learn the software.
    """
    if nodes.reader == FOLLOWER:
        return np.full(len(nodes.nodes), REPLICA_FETCHER)
    software, in_session = nodes.nodes["profile"], nodes.nodes["in_session"] == 1
    profiles = np.where(software != NONE, software, JAVA_4)
    for node in np.flatnonzero((software == NONE) & ~in_session).tolist():
        served = reads.servings[reads.node[reads.servings["partition"]] == node]
        profiles[node] = JAVA_3 if keeps_order(served["fetch"], served["partition"]) else LIBRDKAFKA
    return profiles


def keeps_order(fetch: Ints, partition: Ints) -> bool:
    """Whether, of responses one after the other with records of the same partitions, most have them in one order.

    Those of Kafka's own client have, for all that received records move behind the others in the same order
    (CompletedFetch.drain and PartitionStates.moveToEnd of kafka-clients 4.3). librdkafka begins with the next partition
    each time. One partition tells nothing.

    fetch: int64[n], the fetch that each part of a response answers, in the order of times. partition: int64[n].
    """
    starts = np.flatnonzero(np.diff(fetch, prepend=NONE))
    sizes = np.diff(np.append(starts, len(fetch)))
    response = np.repeat(np.arange(len(sizes)), sizes)
    by_partition = partition[np.lexsort((partition, response))]
    pairs = np.flatnonzero((sizes[1:] == sizes[:-1]) & (sizes[1:] > 1))
    lengths = sizes[pairs]
    pair, rows = np.repeat(np.arange(len(pairs)), lengths), numbers_in_stretches(starts[pairs], lengths)

    def alike(parts: Ints) -> Bools:
        differs = parts[rows] != parts[rows + lengths[pair]]
        return np.bincount(pair[differs], minlength=len(pairs)) == 0

    are_same, are_in_order = alike(by_partition), alike(partition)
    return bool(2 * (are_same & are_in_order).sum() > are_same.sum())
