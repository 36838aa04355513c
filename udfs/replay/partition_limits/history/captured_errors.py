"""Errors of topic changes that no replay can derive from traffic: they are taken as captured, each with its reason."""

from __future__ import annotations

import numpy as np

from schemas.tables.fidelity_reasons import CHANGES
from schemas.wire.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_CONFIG,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    NO_REASSIGNMENT_IN_PROGRESS,
    NOT_CONTROLLER,
    POLICY_VIOLATION,
    REQUEST_TIMED_OUT,
    THROTTLING_QUOTA_EXCEEDED,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
)
from udfs.columns.arrays import Ints, Records
from udfs.replay.partition_limits.events import NO_RESPONSE
from udfs.replay.partition_limits.request_limits import MAX_PER_REQUEST
from udfs.replay.partition_limits.state import CREATE
from udfs.replay.shared.fidelity_rows import AGREED

REASONS = {
    NO_RESPONSE: CHANGES.no_response,
    TOPIC_AUTHORIZATION_FAILED: CHANGES.authorization,
    CLUSTER_AUTHORIZATION_FAILED: CHANGES.authorization,
    INVALID_TOPIC_EXCEPTION: CHANGES.request_invalid,
    INVALID_REPLICA_ASSIGNMENT: CHANGES.request_invalid,
    INVALID_REQUEST: CHANGES.request_invalid,
    UNSUPPORTED_VERSION: CHANGES.request_invalid,
    INVALID_CONFIG: CHANGES.configuration,
    NOT_CONTROLLER: CHANGES.controller_unavailable,
    REQUEST_TIMED_OUT: CHANGES.controller_unavailable,
    COORDINATOR_LOAD_IN_PROGRESS: CHANGES.controller_unavailable,
    NO_REASSIGNMENT_IN_PROGRESS: CHANGES.no_reassignment_in_progress,
}
"""By error code why the change cannot be checked."""


def request_records(requests: Records, partitions: Ints) -> Ints:
    """For each change the metadata records that its whole request would make. requests: REQUEST[requests]."""
    records = np.maximum(partitions, 0) + requests["configs"] + 1
    return np.bincount(requests["request"], records)[requests["request"]].astype(np.int64)


def unchecked_reasons(requests: Records, kind: Ints, partitions: Ints, quota_is_known: bool) -> Ints:
    """By change the code of the reason why its error cannot be derived, AGREED where it can.

    kind, partitions: of the changes as they are replayed.
    """
    captured, reason = requests["error_code"], np.full(len(requests), AGREED)
    for error, word in REASONS.items():
        reason[captured == error] = CHANGES.codes[word]
    within_cap = (kind == CREATE) & (request_records(requests, partitions) <= MAX_PER_REQUEST)
    reason[(captured == POLICY_VIOLATION) & within_cap] = CHANGES.codes[CHANGES.create_topic_policy]
    if not quota_is_known:
        reason[captured == THROTTLING_QUOTA_EXCEEDED] = CHANGES.codes[CHANGES.quota_not_known]
    return reason
