"""Changes that captured requests ask for. Their counts are resolved; what cannot be derived is taken as captured."""

from __future__ import annotations

import numpy as np

from schemas.tables.limit_reasons import CHANGES
from schemas.wire import errors
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS
from udfs.replay.partition_limits.events import NO_RESPONSE
from udfs.replay.partition_limits.history.topic_ids import are_creations, have_no_id
from udfs.replay.partition_limits.history.topic_times import times_done
from udfs.replay.partition_limits.request_limits import MAX_PER_REQUEST
from udfs.replay.partition_limits.settings import LimitLanes
from udfs.replay.partition_limits.state import AUTO_CREATE, CAPTURED_RESULT, CHANGE, CREATE, DELETE, GROW, MOVE, NOTHING
from udfs.replay.shared.fidelity_rows import AGREED

MAX_REPLICAS = 1_000_000
"""The most replicas of one change that there is room for; no Kafka release makes a hundredth of that in a request."""
MAX_FACTOR = 1 << 15
"""A replication factor is a number of 16 bits."""
SLOTS_FACTOR = 3
"""There is room for at least this many replicas of a partition if no request states its topic's replication factor."""
REASONS = {
    NO_RESPONSE: CHANGES.no_response,
    errors.TOPIC_AUTHORIZATION_FAILED: CHANGES.authorization,
    errors.CLUSTER_AUTHORIZATION_FAILED: CHANGES.authorization,
    errors.INVALID_TOPIC_EXCEPTION: CHANGES.request_invalid,
    errors.INVALID_REPLICA_ASSIGNMENT: CHANGES.request_invalid,
    errors.INVALID_REQUEST: CHANGES.request_invalid,
    errors.UNSUPPORTED_VERSION: CHANGES.request_invalid,
    errors.INVALID_CONFIG: CHANGES.configuration,
    errors.NOT_CONTROLLER: CHANGES.controller_unavailable,
    errors.REQUEST_TIMED_OUT: CHANGES.controller_unavailable,
    errors.COORDINATOR_LOAD_IN_PROGRESS: CHANGES.controller_unavailable,
    errors.NO_REASSIGNMENT_IN_PROGRESS: CHANGES.no_reassignment_in_progress,
}
"""Errors that no replay can derive from traffic and that are taken as captured, with why the change is unchecked."""


def requested_changes(
    requests: Records, ids: Records, subjects: Ints, topics: Records, lanes: LimitLanes
) -> tuple[Records, Records]:
    """The changes that requests ask for, CHANGE[requests], and their CAPTURED_RESULT[requests].

    requests: TOPIC_REQUEST. ids: TOPIC_ID. subjects: for each request the id it is about. topics: SHOWN_TOPIC.
    """
    changes, captured = np.zeros(len(requests), CHANGE), np.zeros(len(requests), CAPTURED_RESULT)
    makes_nothing = (requests["kind"] == AUTO_CREATE) & ~are_creations(requests, ids, subjects)
    kind = np.where(makes_nothing, NOTHING, requests["kind"])
    for name in ("time", "request", "topic", "configs", "partition", "is_internal", "validate_only", "is_strict",
                 "client", "connection"):  # fmt: skip
        changes[name] = requests[name]
    # CreatePartitions assigns only the new partitions; it states how many there are to be with the existing ones.
    named = np.where(kind == GROW, 0, requests["named_partitions"])
    changes["partitions"] = first_known(
        named, requests["num_partitions"], requests["answered_num_partitions"],
        topics["partitions"], lanes.num_partitions,
    )  # fmt: skip
    changes["replication_factor"] = first_known(
        requests["named_factor"], requests["replication_factor"], requests["answered_replication_factor"],
        topics["replication_factor"], lanes.replication_factor,
    )  # fmt: skip
    changes["named"] = np.where(requests["named_partitions"] > 0, requests["first_named"], NONE)
    changes["named_size"] = np.maximum(requests["named_partitions"] * requests["named_factor"], 0)
    changes["shown"], changes["shown_partitions"] = topics["first_replica"], topics["placed_partitions"]
    changes["shown_factor"] = topics["placed_factor"]
    reason = unchecked_reasons(requests, kind, changes["partitions"], lanes.quota_is_known)
    is_derivable = (reason == AGREED) | (requests["error_code"] == NO_RESPONSE)
    changes["captured_error"] = np.where(is_derivable, 0, requests["error_code"])
    shows_first = are_first_to_show(requests, kind, ids, subjects)
    changes["kind"] = np.where(shows_first, NOTHING, kind)
    changes["by_broker"] = (kind == AUTO_CREATE) & lanes.brokers_create_topics
    changes["slots"] = slots_needed(requests, changes)
    captured["row"], captured["error_code"] = np.arange(len(requests)), requests["error_code"]
    captured["reason"] = np.where(shows_first, CHANGES.codes[CHANGES.topic_not_seen], reason)
    return changes, captured


def first_known(named: Ints, requested: Ints, answered: Ints, shown: Ints, default: int) -> Ints:
    """The count of each change, int64[changes]: the first that is known of the named one, the requested one, and, if
    -1 (the broker's default) was requested, the one in the response, the one that Metadata shows, the default.

    named, answered, shown: int64[changes], 0 or less if not known. requested: int64[changes].
    """
    by_default = np.where(answered > 0, answered, np.where(shown > 0, shown, default))
    return np.where(named > 0, named, np.where(requested == -1, by_default, requested))


def are_first_to_show(requests: Records, kind: Ints, ids: Records, subjects: Ints) -> Bools:
    """Which changes have a response that is the first to show their topic, bool[changes]. What the topic had before is
    not known.

    requests: TOPIC_REQUEST[changes]. kind: int64[changes], as replayed. ids: TOPIC_ID[ids]. subjects: int64[changes],
    the row of the id that each is about, or NONE.
    """
    topic, before, time = requests["topic"], requests["time"] - 1, np.append(requests["time"], ALWAYS)
    captured = requests["error_code"]
    created, deleted = (time[times_done(requests, of).last(topic, before)] for of in (CREATE, DELETE))
    is_created = (created != ALWAYS) & (created > deleted)
    is_known = (subjects != NONE) | is_created | have_no_id(requests, ids)
    first_shown = np.append(ids["first_shown"], ALWAYS)[subjects]
    is_old = np.append(ids["maker"] == NONE, False)[subjects] & (first_shown >= requests["time"])
    needs_topic = np.isin(kind, (GROW, MOVE, DELETE)) & (captured == 0)
    exists = (kind == CREATE) & (captured == errors.TOPIC_ALREADY_EXISTS)
    return ((needs_topic | exists) & ~is_known) | ((kind == GROW) & is_old & (captured == 0))


def slots_needed(requests: Records, changes: Records) -> Ints:
    """The number of replicas that each change needs room for: int64[changes].

    A topic that grows has the replication factor of the change that created it. requests: TOPIC_REQUEST[changes].
    changes: CHANGE[changes].
    """
    topic, kind = changes["topic"], changes["kind"]
    creates, factor = np.isin(kind, (CREATE, AUTO_CREATE)), np.clip(changes["replication_factor"], 0, MAX_FACTOR)
    widest = np.full(int(topic.max(initial=-1)) + 1, SLOTS_FACTOR)
    np.maximum.at(widest, topic[creates], factor[creates])
    factor = np.where(kind == GROW, widest[topic], factor)
    partitions = np.where(kind == MOVE, 1, np.clip(changes["partitions"], 0, MAX_REPLICAS))
    needs = creates | np.isin(kind, (GROW, MOVE))
    slots = np.where(needs, np.clip(partitions * factor, 0, MAX_REPLICAS), 0)
    named = requests["named_partitions"] * requests["named_factor"]
    return np.maximum(slots, np.where(needs, named, 0))


def request_records(requests: Records, partitions: Ints) -> Ints:
    """The number of metadata records that the whole request of each change would make: int64[requests].

    requests: TOPIC_REQUEST[requests]. partitions: int64[requests], the number that each change requests.
    """
    records = np.maximum(partitions, 0) + requests["configs"] + 1
    return np.bincount(requests["request"], records)[requests["request"]].astype(np.int64)


def unchecked_reasons(requests: Records, kind: Ints, partitions: Ints, quota_is_known: bool) -> Ints:
    """The code of the reason why a change's error cannot be derived, AGREED if it can: int64[requests].

    requests: TOPIC_REQUEST[requests]. kind, partitions: int64[requests], of the changes as they are replayed.
    """
    captured, reason = requests["error_code"], np.full(len(requests), AGREED)
    for error, word in REASONS.items():
        reason[captured == error] = CHANGES.codes[word]
    within_cap = (kind == CREATE) & (request_records(requests, partitions) <= MAX_PER_REQUEST)
    reason[(captured == errors.POLICY_VIOLATION) & within_cap] = CHANGES.codes[CHANGES.create_topic_policy]
    if not quota_is_known:
        reason[captured == errors.THROTTLING_QUOTA_EXCEEDED] = CHANGES.codes[CHANGES.quota_not_known]
    return reason
