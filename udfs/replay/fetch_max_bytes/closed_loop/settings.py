"""The rules of each node in each lane: the lane's settings, and otherwise what the capture shows of the client."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
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
        ),  # 1: no batch is returned beyond partition_max_bytes, for Fetch before version 3 has no max_bytes
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
        # of a process
        ("seed", np.int64),
        ("byte_rate", np.int64),  # bytes/s of the broker's quota, or 0; the next three as in FETCH_LIMITS
        ("quota_windows", np.int64),
        ("quota_window_ms", np.int64),
        ("quota_is_known", np.int64),
        ("meter", np.int64),  # number of the broker's meter for the quota: the index of the first node at the broker,
        # unless readers are replayed together
        ("readers", np.int64),  # how many readers share the reader's partitions, or those of a follower's fetchers;
        # AS_CAPTURED: it reads its partitions alone
        ("us_per_record", np.float64),  # or AS_CAPTURED: by the captured curve
        ("speed", np.float64),  # factor by which records are produced faster than captured
    ]
)
"""The rules of a node in a lane."""

OF_QUOTA = ("byte_rate", "quota_windows", "quota_window_ms", "quota_is_known")


class CapturedWork(NamedTuple):
    """What the capture shows of an application's work.

    largest: int64[nodes], the most records of a response. is_at_work: the application is always at work, so its work
    between two calls of poll() is known (polls.py).
    """

    largest: Ints
    is_at_work: bool


def rules_by_node(
    nodes: Nodes, profiles: Ints, work: CapturedWork, lanes: FetchLanes, reader: Reader, brokers: Sequence[str]
) -> Records:
    """The rules of each node in each lane: RULES[nodes, lanes]. profiles: int64[nodes], which rules each node follows
    in the capture. brokers: the names of the brokers, by the numbers in `nodes`.

    If records are produced twice as fast, the capture's clock runs twice as fast for a client: 1 ms of the client's
    time is 2 ms of that clock. max_wait_us is by the capture's clock. All lanes have the same seed, so lanes with the
    same rules have the same results.
    """
    limits, clients, captured = lanes.limits(reader), lanes.client(reader.kind), nodes.nodes
    lane_rules = np.zeros((len(captured), len(limits)), RULES)
    profile = set_or_captured(clients["profile"], profiles)
    of_brokers = np.stack([lanes.limits(reader, broker)["broker_max_bytes"] for broker in brokers])
    lane_rules["limit"] = np.minimum(
        set_or_captured(limits["max_bytes"], captured["max_bytes"]), of_brokers[captured["broker"]]
    )
    # In a lane that sets max_bytes, the client's Fetch version has max_bytes.
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
    """The lane's value, or the captured value of the node if the lane sets none: int64[nodes, lanes].

    values: int64[lanes], AS_CAPTURED if the lane sets nothing. captured: int64[nodes].
    """
    return np.where(values == AS_CAPTURED, captured[:, np.newaxis], values)


def works_beside_fetch(clients: Records, work: CapturedWork) -> Bools:
    """Whether the application works on the last records while the next fetch is under way: bool[nodes, lanes].

    If no captured response took two polls, and the application is not always at work, the pace cannot tell work that
    goes on during a fetch from work that delays the fetch. clients: CLIENT_SETTINGS[lanes].
    """
    polls = clients["max_poll_records"]
    took_two = (work.largest > polls[CAPTURED]) | work.is_at_work
    changes = (clients["us_per_record"] != AS_CAPTURED) | (polls != polls[CAPTURED])
    return took_two[:, np.newaxis] | changes


def profiles_of_nodes(nodes: Nodes, reads: NodeReads) -> Ints:
    """The rules that each node follows, int64[nodes]: those of its software. If that is unknown, they are told from
    whether the node uses sessions and keeps an order.

    Brokers before 1.1 grant no session, and brokers before 2.4 do not learn the client's software.
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
    """Whether most pairs of successive responses with records of the same partitions have them in the same order.

    Responses to Kafka's own client do: all partitions that received records move behind the others in the same order
    (CompletedFetch.drain and PartitionStates.moveToEnd of kafka-clients 4.3). librdkafka begins with the next partition
    each time. Responses with a single partition do not count.

    fetch: int64[n], the fetch of each serving, in time order. partition: int64[n], its partition.
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
