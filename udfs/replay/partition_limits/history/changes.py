"""Turns what a capture shows of topics into the changes that are replayed in every lane.

A topic that Metadata shows and that no captured request creates existed before: it appears first, and no limit refuses
it. The same holds for topics created without a captured request, such as by the ZooKeeper-based tools that KIP-578
exempts. If such a topic has another id than the one that had its name before, it appears when it was first shown.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only, stretch_edges
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS
from udfs.replay.partition_limits.events import NO_RESPONSE, TopicEvents
from udfs.replay.partition_limits.history.requested_changes import requested_changes
from udfs.replay.partition_limits.history.shown_partitions import (
    ShownPartitions,
    first_shown,
    growth_times,
    shown_topics,
)
from udfs.replay.partition_limits.history.topic_ids import gone_before, subjects_of, topic_ids_in_order
from udfs.replay.partition_limits.settings import LimitLanes
from udfs.replay.partition_limits.state import APPEAR, CAPTURED_RESULT, CHANGE, CREATE, VANISH, History

NO_REQUEST = -2
"""Stands for the number of the request in a change that no captured request asks for."""


def history_of(events: TopicEvents, lanes: LimitLanes, seed: int) -> History:
    """The changes to a cluster's topics, up to the window's end. seed: for the draws by which Kafka places replicas."""
    requests = events.requests
    ids, id_of_sighting = topic_ids_in_order(events.sightings, requests)
    subjects, shown = subjects_of(requests, ids), first_shown(events, id_of_sighting)
    growth = growth_times(requests, ids, subjects)
    topics = shown_topics(events, ids, subjects, shown, growth)
    requested, captured = requested_changes(requests, ids, subjects, topics, lanes)
    appearing, appearing_brokers = appearing_changes(ids, shown, growth)
    uncaptured = np.concatenate([vanishing_changes(requests, ids), appearing])
    date_earlier_partitions(uncaptured, requests["time"], lanes.window.end)
    # named_brokers: first those of partitions that appear, then those that requests name, then those Metadata shows.
    requested["named"] += np.where(requested["named"] == NONE, 0, len(appearing_brokers))
    requested["shown"] += len(appearing_brokers) + len(events.named_brokers)
    changes = np.concatenate([uncaptured, requested])
    order = np.argsort(changes["time"], kind="stable")
    order = order[changes["time"][order] < lanes.window.end]
    changes = changes[order]
    changes["slot"], changes["seed"] = stretch_edges(changes["slots"])[:-1], seed + np.arange(len(changes))
    return History(
        changes=read_only(changes),
        named_brokers=read_only(np.concatenate([appearing_brokers, events.named_brokers, shown.brokers])),
        brokers=events.brokers,
        topics=events.topics,
        captured=np.concatenate([not_captured(len(uncaptured)), captured])[order],
        rows=events.rows,
        in_window=lanes.window.has(changes["time"]),
    )


def not_captured(changes: int) -> Records:
    """What the capture says about changes that no captured request asks for: CAPTURED_RESULT[changes]."""
    captured = np.zeros(changes, CAPTURED_RESULT)
    captured["row"], captured["error_code"] = NONE, NO_RESPONSE
    return captured


def vanishing_changes(requests: Records, ids: Records) -> Records:
    """Topics that vanish, CHANGE[topics]: their name is created again or has another id, but no captured request
    deleted them.

    requests: TOPIC_REQUEST[requests]. ids: TOPIC_ID[ids].
    """
    creations = np.flatnonzero((requests["kind"] == CREATE) & (requests["is_done"] == 1))
    rows = np.union1d(creations, ids["maker"][ids["maker"] != NONE])
    is_uncaptured = (ids["maker"] == NONE) & (ids["since"] != ALWAYS)
    topic = np.concatenate([requests["topic"][rows], ids["topic"][is_uncaptured]])
    time = np.concatenate([requests["time"][rows], ids["since"][is_uncaptured]])
    is_gone = gone_before(requests, ids, topic, time)
    changes = np.zeros(int(is_gone.sum()), CHANGE)
    changes["kind"], changes["request"] = VANISH, NO_REQUEST
    changes["topic"], changes["time"] = topic[is_gone], time[is_gone]
    return changes


def appearing_changes(ids: Records, shown: ShownPartitions, growth: Ints) -> tuple[Records, Ints]:
    """Partitions that no captured request creates, CHANGE[runs], with one change for each run of similar partitions;
    and their brokers, int64[replicas].

    ids: TOPIC_ID[ids]. growth: int64[ids], when partitions were first added to the topic (us).
    """
    id_of = shown.partitions["topic_id"]
    is_at_first = (shown.partitions["time"] < growth[id_of]) | (ids["first_shown"] >= growth)[id_of]
    is_kept = (ids["maker"] == NONE)[id_of] & is_at_first
    partitions = shown.partitions[is_kept]
    brokers = shown.brokers[np.repeat(is_kept, shown.partitions["replicas"])]
    differs = (np.diff(partitions["topic_id"]) != 0) | (np.diff(partitions["replicas"]) != 0)
    starts = np.flatnonzero(np.append(True, differs | (np.diff(partitions["partition"]) != 1))[: len(partitions)])
    changes, first = np.zeros(len(starts), CHANGE), partitions[starts]
    changes["kind"], changes["request"] = APPEAR, NO_REQUEST
    changes["time"], changes["topic"] = ids["since"][first["topic_id"]], ids["topic"][first["topic_id"]]
    changes["partition"], changes["is_internal"] = first["partition"], first["is_internal"]
    changes["partitions"] = np.diff(np.append(starts, len(partitions)))
    changes["replication_factor"] = first["replicas"]
    changes["slots"] = changes["partitions"] * changes["replication_factor"]
    changes["named"], changes["named_size"] = stretch_edges(changes["slots"])[:-1], changes["slots"]
    return changes, brokers


def date_earlier_partitions(uncaptured: Records, requested: Ints, end: int) -> None:
    """Let what existed before appear just before everything else that has a time, and before the end.

    uncaptured: CHANGE[changes], with the time ALWAYS for what existed before; the time is written in place. requested:
    int64[requests], times in us. end: us.
    """
    time = uncaptured["time"]
    known = np.append(requested, time[time != ALWAYS])
    uncaptured["time"] = np.where(time == ALWAYS, known.min(initial=end) - 1 if len(requested) else 0, time)
