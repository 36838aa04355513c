"""The records of this replay: changes to topics, and the cluster of the lane that is replayed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.records import int_fields
from udfs.replay.partition_limits.placement.brokers import PLACEMENT, Brokers
from udfs.replay.partition_limits.placement.java_random import java_random
from udfs.replay.partition_limits.placement.limited import Arrangement, new_arrangement
from udfs.replay.partition_limits.placement.striped import Stripes, new_stripes
from udfs.replay.partition_limits.settings import LimitLanes

APPEAR, VANISH, CREATE, AUTO_CREATE, GROW, MOVE, DELETE, NOTHING = range(8)
"""Kinds of changes. APPEAR adds partitions that exist without a captured request, and VANISH removes a topic without
one; NOTHING is a Metadata request that makes no topic."""

NO_LIMIT, MAX_BROKER_PARTITIONS, MAX_PARTITIONS, REQUEST_PARTITIONS, REQUEST_RECORDS, MUTATION_QUOTA = range(6)
REFUSED_BEFORE, CAPTURED_ERROR, NOT_TRIED = 6, 7, 8
"""What decided about a change. NO_LIMIT: Kafka's own checks. REFUSED_BEFORE: its topic does not exist because its
creation was refused. CAPTURED_ERROR: the captured error was taken."""

CHANGE = int_fields(
    "time",  # us
    "request",  # changes of the same request have the same number and follow each other
    "kind",
    "topic",
    "partitions",  # requested; for GROW the topic's new total
    "replication_factor",  # requested; for MOVE the number of replicas that it names
    "configs",  # configurations of a topic that is created
    "partition",  # for MOVE the partition, for APPEAR the first one
    "named",  # the brokers that the request names begin at named_brokers[named]; NONE: Kafka places the replicas
    "named_size",  # how many it names
    "shown",  # Metadata shows the topic's partitions, from 0 on, on the brokers from named_brokers[shown] on
    "shown_partitions",  # how many it shows; 0: none, or the change made none
    "shown_factor",  # the replicas of each
    "slot",  # where the slots of the change's replicas begin
    "slots",  # for how many replicas there is room
    "captured_error",  # an error that no replay can derive, 0 for none
    "is_internal",  # 1: an internal topic, which the limits of KIP-578 neither refuse nor count
    "by_broker",  # 1: a broker makes the topic itself; no limit or quota refuses that, but its partitions count
    "validate_only",
    "is_strict",  # 1: a request of this version is refused when the mutation quota is used up (KIP-599)
    "client",  # number of the client.id
    "connection",  # number of the connection
    "seed",  # of the draws with which Kafka places replicas
)
"""A change to a topic, the same in every lane."""

TOPIC = int_fields(
    "partitions",  # 0: there is no such topic
    "replication_factor",
    "newest_chunk",  # the change that made its newest partitions, or NONE
    "was_refused",  # 1: it does not exist because its creation was refused
)
"""A topic of a lane."""

CHUNK = int_fields(
    "first_partition",
    "partitions",
    "replication_factor",
    "older_chunk",  # of the same topic, or NONE
)
"""A chunk: the partitions that one change added to its topic. Their replicas are in the change's slots."""

UNDO = int_fields(
    "partitions",  # of the topic before the change, as the next three
    "replication_factor",
    "newest_chunk",
    "was_refused",
    "moved_slot",  # the former slots of the partition that the change moved, or NONE
    "moved_factor",
)
"""What a change altered, so that it can be undone."""

QUOTA_CLIENT = np.dtype([("tokens", np.float64), ("token_time", np.int64)])
"""The rest of a client's controller mutation quota (KIP-599), in partitions, and the time of that rest (us)."""

MUTED_CONNECTION = np.dtype([("muted_until", np.int64)])
"""Until when the broker does not read a throttled connection (us)."""

CLUSTER_STATE = int_fields(
    "replicas",  # of all brokers, without those of internal topics
    "step",  # of the lane's limits over time
    "max_broker_partitions",  # in force, UNLIMITED for none
    "max_partitions",
    "checked_request",  # the request that was last checked as a whole
    "request_refused_by",  # the current limit that refuses that request, NO_LIMIT if none does
    "request_records",  # the partitions or records for which it is refused; otherwise those that it has made
    "read_request",  # the request that its broker read last
    "read_time",  # us: when it was read
)
"""A lane's cluster, apart from its brokers and topics."""

CHANGE_OUTCOME = int_fields(
    "error",  # Kafka's error code, 0: done
    "decided_by",
    "limit",  # the value of the limit that decided
    "present",  # how many the limit counted before the change
    "requested",  # how many more the change needs
    "broker",  # the broker that would exceed the limit, NONE if it is not a single one
    "is_absent",  # 1: the topic does not exist after the change because its creation was refused
)
"""The outcome of a change in a lane."""


CAPTURED_RESULT = int_fields(
    "row",  # of TOPIC_EVENTS from which the change is made, NONE if no captured request asks for it
    "error_code",  # of the response, NO_RESPONSE if there is none
    "reason",  # code of CHANGES: why the error cannot be derived; AGREED if it can
)
"""What the capture says about a change."""


class History(NamedTuple):
    """All changes to a cluster's topics in time order, the same for every lane.

    changes: CHANGE[changes]. named_brokers: int64[replicas], the brokers that changes name and Metadata shows.
    topics: how many topic names there are. captured: CAPTURED_RESULT[changes]. rows: of TOPIC_EVENTS, the requests.
    in_window: bool[changes], the changes that results count; those before the window are replayed as state.
    """

    changes: Records
    named_brokers: Ints
    brokers: Brokers
    topics: int
    captured: Records
    rows: pa.RecordBatch
    in_window: Bools


class ClusterSim(NamedTuple):
    """A cluster's replay in one lane after the other."""

    # Only read: the history and the settings.
    changes: Records  # CHANGE[changes]
    named_brokers: Ints  # int64[replicas], the brokers that changes name and Metadata shows
    brokers: Brokers
    settings: Records  # LIMIT_SETTINGS[lanes]
    steps: Records  # LIMITS_FROM[steps], the lanes' limits over time
    # The state of the current lane.
    cluster: Records  # CLUSTER_STATE[1]
    broker_replicas: Ints  # int64[brokers], without those of internal topics
    topics: Records  # TOPIC[topics]
    chunks: Records  # CHUNK[changes]
    undo: Records  # UNDO[changes]
    slots: Ints  # int64[slots], the broker of each replica
    clients: Records  # QUOTA_CLIENT[clients]
    connections: Records  # MUTED_CONNECTION[connections]
    # Working memory.
    added: Ints  # int64[brokers]
    placement: Records  # PLACEMENT[1]
    stripes: Stripes
    arrangement: Arrangement
    # The results.
    outcomes: Records  # CHANGE_OUTCOME[lanes, changes]
    replicas: Ints  # int64[lanes], those of all brokers at the end


def new_sim(history: History, lanes: LimitLanes, at_once: int = 1) -> ClusterSim:
    """The replay of a history, with room for the outcomes of `at_once` lanes."""
    changes, random = history.changes, java_random(0)
    n, brokers = len(changes), len(history.brokers.table)
    return ClusterSim(
        changes=changes,
        named_brokers=history.named_brokers,
        brokers=history.brokers,
        settings=lanes.settings,
        steps=lanes.steps,
        cluster=np.zeros(1, CLUSTER_STATE),
        broker_replicas=np.zeros(brokers, np.int64),
        topics=np.zeros(history.topics, TOPIC),
        chunks=np.zeros(n, CHUNK),
        undo=np.zeros(n, UNDO),
        slots=np.zeros(int(changes["slots"].sum()), np.int64),
        clients=np.zeros(int(changes["client"].max(initial=0)) + 1, QUOTA_CLIENT),
        connections=np.zeros(int(changes["connection"].max(initial=0)) + 1, MUTED_CONNECTION),
        added=np.zeros(brokers, np.int64),
        placement=np.zeros(1, PLACEMENT),
        stripes=new_stripes(history.brokers, random),
        arrangement=new_arrangement(history.brokers, random),
        outcomes=np.zeros((at_once, n), CHANGE_OUTCOME),
        replicas=np.zeros(at_once, np.int64),
    )
