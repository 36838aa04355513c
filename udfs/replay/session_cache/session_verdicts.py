"""What of fetch sessions is compared with the capture, and the reasons of verdicts, by their codes in kernels."""

from __future__ import annotations

from enum import StrEnum


class Metric(StrEnum):
    """What is compared."""

    GRANTS = "session_grants"  # a full fetch gets a session or is refused
    SHARDS = "session_shards"  # ... in the shard whose turn it is
    ERRORS = "session_errors"  # a fetch in a session: none, 70, 71, 106
    PARTITIONS = "session_partitions"  # the partitions of the session
    RESPONSES = "incremental_responses"  # the partitions of an incremental response
    REQUESTS = "session_requests"  # session, epoch and partitions of a request, by the client's rules


class Reason(StrEnum):
    """Why something could not be checked, or how it disagreed: schemas.tables.session_reasons."""

    FROM_BEFORE = "session_from_before_capture"
    UNSEEN = "session_not_seen"
    PHASE_UNKNOWN = "shard_unknown"
    CLOCK = "eviction_time"
    CLOSE_ORDER = "close_grant_order"
    AFTER_LOSS = "response_not_captured"
    ORDER_INFERRED = "order_inferred"
    GRANTED = "granted"
    REFUSED = "refused"
    OTHER_SHARD = "other_shard"
    OTHER_ERROR = "other_error"
    OTHER_PARTITIONS = "other_partitions"
    OTHER_REQUEST = "other_request"


METRICS = {metric: code for code, metric in enumerate(Metric)}
CODES = {reason: code for code, reason in enumerate(Reason, 1)}
AGREED = 0
CODE_COUNT = len(CODES) + 1
UNKNOWN = (Reason.FROM_BEFORE, Reason.UNSEEN, Reason.PHASE_UNKNOWN, Reason.CLOCK, Reason.CLOSE_ORDER,
           Reason.AFTER_LOSS)  # fmt: skip
AGREEING = (Reason.ORDER_INFERRED,)
"""Reasons that are told of what agrees."""
