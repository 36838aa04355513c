"""Sums of the outcomes of equal requests, by lane."""

from __future__ import annotations

from udfs.columns.arrays import Record, Records
from udfs.columns.records import int_fields
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.partition_limits.state import (
    MAX_BROKER_PARTITIONS,
    MAX_PARTITIONS,
    MUTATION_QUOTA,
    NOT_TRIED,
    REFUSED_BEFORE,
    REQUEST_PARTITIONS,
    REQUEST_RECORDS,
)

GROUPED = int_fields(
    "group",  # of equal requests, NONE if no captured request asks for the change
    "in_window",  # 1: results count it
    "produce_requests",  # in the window that use its topic, from this change to the next one of that topic
    "fetch_requests",
    "metadata_requests",
)
"""What the sums of a change's group need to know about the change."""

LIMIT_SUMS = int_fields(
    "changes",  # that are summed; from here on columns of PARTITION_LIMITS
    "tried",
    "done",
    "refused_by_broker_limit",
    "refused_by_cluster_limit",
    "refused_by_kafka",
    "refused_before",
    "otherwise_failed",
    "replicas_asked",
    "replicas_refused",
    "produces_failed",
    "fetches_failed",
    "metadata_failed",
)
"""The sums of a group in a lane."""


@kernel
def add_refusal(sums: Record, outcome: Record) -> None:
    """Count a change that was not done, by what decided about it."""
    decided_by, is_limit = outcome.decided_by, True
    if decided_by == MAX_BROKER_PARTITIONS:
        sums.refused_by_broker_limit += 1
    elif decided_by == MAX_PARTITIONS:
        sums.refused_by_cluster_limit += 1
    elif decided_by in (REQUEST_PARTITIONS, REQUEST_RECORDS, MUTATION_QUOTA):
        sums.refused_by_kafka += 1
    elif decided_by == REFUSED_BEFORE:
        sums.refused_before += 1
    else:
        sums.otherwise_failed += 1
        is_limit = False
    sums.replicas_refused += outcome.requested if is_limit else 0


@kernel
def add_outcome(sums: Record, outcome: Record, change: Record) -> None:
    """Count the outcome of one change, and the requests that use its topic."""
    is_tried = outcome.decided_by != NOT_TRIED
    if change.in_window == 1:
        sums.changes += 1
        sums.tried += 1 if is_tried else 0
        sums.done += 1 if is_tried and outcome.error == 0 else 0
        sums.replicas_asked += outcome.requested
        if outcome.error != 0:
            add_refusal(sums, outcome)
    if outcome.is_absent:
        sums.produces_failed += change.produce_requests
        sums.fetches_failed += change.fetch_requests
        sums.metadata_failed += change.metadata_requests


@kernel
def sum_outcomes(outcomes: Records, changes: Records, sums: Records) -> None:
    """Sum up the changes that are tried, or whose topic does not exist because it was refused.

    outcomes: CHANGE_OUTCOME[lanes, changes]. changes: GROUPED[changes]. sums: LIMIT_SUMS[lanes, groups], zero at first.
    """
    for lane in range(len(outcomes)):
        for number in range(len(changes)):
            outcome, group = outcomes[lane, number], changes[number].group
            if group != NONE and (outcome.decided_by != NOT_TRIED or outcome.is_absent):
                add_outcome(sums[lane, group], outcome, changes[number])
