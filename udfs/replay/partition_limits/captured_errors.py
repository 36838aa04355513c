"""Errors of topic changes that no replay can derive from traffic: they are taken as captured, each with its reason."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

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
from udfs.columns.arrays import Ints
from udfs.replay.partition_limits.state import MOST_PER_REQUEST
from udfs.replay.partition_limits.topics import CREATE


class Reason(StrEnum):
    """Why a change cannot be checked: schemas.tables.fidelity_reasons."""

    NO_RESPONSE = "no_response"
    TOPIC_NOT_SEEN = "topic_not_seen"
    AUTHORIZATION = "authorization"
    REQUEST_INVALID = "request_invalid"
    CONFIGURATION = "configuration"
    CONTROLLER = "controller_unavailable"
    CREATE_TOPIC_POLICY = "create_topic_policy"
    QUOTA_NOT_KNOWN = "quota_not_known"
    NO_REASSIGNMENT = "no_reassignment_in_progress"


BY_ERROR = {
    TOPIC_AUTHORIZATION_FAILED: Reason.AUTHORIZATION,
    CLUSTER_AUTHORIZATION_FAILED: Reason.AUTHORIZATION,
    INVALID_TOPIC_EXCEPTION: Reason.REQUEST_INVALID,
    INVALID_REPLICA_ASSIGNMENT: Reason.REQUEST_INVALID,
    INVALID_REQUEST: Reason.REQUEST_INVALID,
    UNSUPPORTED_VERSION: Reason.REQUEST_INVALID,
    INVALID_CONFIG: Reason.CONFIGURATION,
    NOT_CONTROLLER: Reason.CONTROLLER,
    REQUEST_TIMED_OUT: Reason.CONTROLLER,
    COORDINATOR_LOAD_IN_PROGRESS: Reason.CONTROLLER,
    NO_REASSIGNMENT_IN_PROGRESS: Reason.NO_REASSIGNMENT,
}


def request_records(request: Ints, partitions: Ints, configs: Ints) -> Ints:
    """For each change the metadata records that its whole request would make."""
    sums = np.bincount(request, np.maximum(partitions, 0) + configs + 1)
    return sums[request].astype(np.int64)


def taken_as_captured(
    kind: Ints, captured: Ints, records: Ints, no_answer: int, quota_is_known: bool
) -> tuple[Ints, npt.NDArray[np.object_]]:
    """By change the captured error where the replay has to take it, else 0; and the reason, "" for none.

    records: of `request_records`.
    """
    error, reason = np.zeros_like(captured), np.full(len(captured), "", object)
    reason[captured == no_answer] = Reason.NO_RESPONSE
    for code, why in BY_ERROR.items():
        reason[captured == code] = why
    within_cap = (kind == CREATE) & (records <= MOST_PER_REQUEST)
    reason[(captured == POLICY_VIOLATION) & within_cap] = Reason.CREATE_TOPIC_POLICY
    if not quota_is_known:
        reason[captured == THROTTLING_QUOTA_EXCEEDED] = Reason.QUOTA_NOT_KNOWN
    taken = (reason != "") & (captured != no_answer)
    error[taken] = captured[taken]
    return error, reason
