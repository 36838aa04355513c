"""Does the closed loop at the captured settings agree with the capture? Verdicts with their reasons, CLOSED_FETCHES.

The documentation of the column `metric` of `fidelity` says what each metric is, and its tolerance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from schemas.tables.fetch_reasons import CLOSED_FETCHES
from udfs.columns.arrays import Bools, Ints, stretch_edges
from udfs.columns.searches import place_behind
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes.closed_loop.intent import Intent
from udfs.replay.fetch_max_bytes.closed_loop.state import NO_BACKLOG, CapturedLane
from udfs.replay.shared.captured_pieces import LEAST_TIME_US, PIECES, SPAN_TOLERANCE
from udfs.replay.shared.fidelity_rows import AGREED, NO_REASON

BYTES_TOLERANCE, TIME_TOLERANCE, REQUESTS_TOLERANCE = 0.01, 0.2, 0.1
LEAST_REQUESTS = 3

ORDER, BYTES, CATCH_UP, REQUESTS, RESTARTS = CLOSED_FETCHES.metrics
_R = CLOSED_FETCHES
_CODES = CLOSED_FETCHES.codes
_WORDS = {AGREED: NO_REASON} | {code: word for word, code in _CODES.items()}
AGREEING_ANYWAY = (_CODES[_R.compacted], _CODES[_R.remote_read])
"""Obstacles that may have changed nothing: a result that agrees in spite of one counts."""

Verdicts = Counter[tuple[str, str, str]]
"""Counts by broker, metric, and a word of CLOSED_FETCHES or NO_REASON."""


class NodeVerdicts(NamedTuple):
    """What one metric compared, int64[n] each: the node, and AGREED or the code of how the closed loop departs."""

    node: Ints
    verdict: Ints


def judge_nodes(intent: Intent, replayed: CapturedLane) -> Verdicts:
    """The verdicts on all nodes of a reader."""
    obstacles, verdicts = obstacles_of(intent), Verdicts()
    for metric, compared in comparisons_by_metric(intent, replayed):
        if not len(compared.node):
            continue
        obstacle = obstacles[compared.node]
        agrees_anyway = (compared.verdict == AGREED) & np.isin(obstacle, AGREEING_ANYWAY)
        verdict = np.where((obstacle == AGREED) | agrees_anyway, compared.verdict, obstacle)
        broker = intent.nodes.nodes["broker"][compared.node]
        pairs, counts = np.unique(np.stack([broker, verdict]), axis=1, return_counts=True)
        for (number, code), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
            verdicts[intent.brokers[number], metric, _WORDS[code]] += count
    return verdicts


def obstacles_of(intent: Intent) -> Ints:
    """Why each node cannot be checked: a code, or AGREED if it can, int64[nodes]."""
    nodes, unknown = intent.nodes.nodes, np.zeros(len(intent.nodes.nodes), np.bool_)
    unknown[partition_nodes(intent)[intent.unit.partitions["is_known"] == 0]] = True
    first_that_applies = (
        (nodes["readable_known"] < nodes["reads"], _R.session_unknown),
        (intent.is_delayed, _R.throttled),
        (nodes["refused"] > 0, _R.response_error),
        (intent.is_refused, _R.partition_refused),
        (nodes["sent_to_replica"] > 0, _R.sent_to_replica),
        (intent.lost_fetches, _R.fetches_lost),
        (unknown, _R.log_content_unknown),
        (intent.lost_seeks > 0, _R.position_moved),
        (nodes["is_converted"] > 0, _R.converted_format),
        (nodes["is_compacted"] > 0, _R.compacted),
        (nodes["may_be_remote"] > 0, _R.remote_read),
    )
    conditions, words = zip(*first_that_applies, strict=True)
    return np.select([*conditions], [_CODES[word] for word in words], default=AGREED)


def partition_nodes(intent: Intent) -> Ints:
    """The node of each partition: int64[partitions]."""
    nodes = intent.unit.nodes
    return np.repeat(np.arange(len(nodes)), nodes["end_partition"] - nodes["first_partition"])


def comparisons_by_metric(intent: Intent, replayed: CapturedLane) -> Iterator[tuple[str, NodeVerdicts]]:
    """What each metric compares."""
    yield ORDER, compared_order(intent, replayed)
    yield BYTES, compared_bytes(intent, replayed)
    yield CATCH_UP, compared_catch_up(intent, replayed)
    yield REQUESTS, compared_requests(intent, replayed)
    yield RESTARTS, compared_restarts(intent, replayed)


def departure_codes(is_less: Bools, less: str, is_more: Bools, more: str) -> Ints:
    """The code of `less` or `more`, or AGREED: int64[n]. is_less, is_more: bool[n]."""
    return np.select([is_less, is_more], [_CODES[less], _CODES[more]], AGREED)


def compared_order(intent: Intent, replayed: CapturedLane) -> NodeVerdicts:
    """For each captured serving of a backlog: whether it follows a serving of the same partition in the closed loop,
    too.

    The nth serving of a partition is compared with its nth in the closed loop, so one serving more or less does not
    shift all later ones.
    """
    servings, nodes, partitions = intent.servings, intent.unit.nodes, intent.unit.partitions
    is_backlog = servings.begin < partitions["backlog_end"][servings.partition]
    turn = np.arange(len(replayed.turns)) - np.repeat(nodes["first_turn"], nodes["end_turn"] - nodes["first_turn"])
    is_there = turn < np.repeat(replayed.nodes["turns"], nodes["end_turn"] - nodes["first_turn"])
    agrees = follows_same_partition(servings.partition[is_backlog], replayed.turns[is_there], partition_nodes(intent))
    return NodeVerdicts(servings.node[is_backlog], np.where(agrees, AGREED, _CODES[_R.other_partition]))


def follows_same_partition(captured: Ints, replayed: Ints, node: Ints) -> Bools:
    """Whether the nth serving of a partition follows a serving of the same partition in both orders: bool[n], for each
    captured one.

    captured, replayed: int64[n], int64[m], the partition of each serving; those of a node are next to each other. node:
    int64[partitions], the node of each partition.

    >>> follows_same_partition(np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0, 1]), np.zeros(2, np.int64)).tolist()
    [True, True, True, False]
    """
    by_partition, replayed_by_partition = (np.argsort(order, kind="stable") for order in (captured, replayed))
    first, first_replayed = (stretch_edges(np.bincount(order, minlength=len(node))) for order in (captured, replayed))
    partition = captured[by_partition]
    place = first_replayed[partition] + np.arange(len(captured)) - first[partition]
    is_replayed = place < first_replayed[partition + 1]
    before, replayed_before = partition_before_each(captured, node), partition_before_each(replayed, node)
    is_next = np.zeros(len(captured), np.bool_)
    which = by_partition[is_replayed]
    is_next[which] = before[which] == replayed_before[replayed_by_partition[place[is_replayed]]]
    return is_next


def partition_before_each(order: Ints, node: Ints) -> Ints:
    """The partition before each one in the order of its node, NONE for the first: int64[n].

    order: int64[n], partitions; those of a node are next to each other. node: int64[partitions].
    """
    before = np.concatenate([np.full(min(len(order), 1), NONE), order[:-1]])
    return np.where(node[before] == node[order], before, NONE)


def compared_bytes(intent: Intent, replayed: CapturedLane) -> NodeVerdicts:
    """For the end of each piece of the captured time: whether as many bytes had been read, within the tolerances."""
    servings, nodes = intent.servings, intent.unit.nodes
    node = np.repeat(np.unique(servings.node), PIECES)
    begin, span = nodes["begin"][node], (nodes["horizon"] - nodes["begin"] + 1)[node]
    end = begin + (np.arange(len(node)) % PIECES + 1) * span // PIECES
    tolerance = np.maximum(SPAN_TOLERANCE * span, LEAST_TIME_US)
    read = stretch_edges(servings.size)
    first = np.searchsorted(servings.node, node)
    least, most = (
        read[place_behind(servings.node, servings.response, node, times)] - read[first]
        for times in (end - tolerance, end + tolerance)
    )
    returned = np.cumsum(replayed.pieces, axis=1)[np.unique(servings.node)].reshape(-1)
    some = BYTES_TOLERANCE * np.bincount(servings.node, servings.size, len(nodes))[node]
    return NodeVerdicts(
        node, departure_codes(returned < least - some, _R.fewer_bytes, returned > most + some, _R.more_bytes)
    )  # fmt: skip


def compared_catch_up(intent: Intent, replayed: CapturedLane) -> NodeVerdicts:
    """For each partition whose backlog was read in the capture: whether that took as long."""
    captured = captured_catch_up(intent)
    rows = np.flatnonzero((captured != NEVER) & (captured != NO_BACKLOG))
    took, more = captured[rows], replayed.catch_up_us[rows] - captured[rows]
    is_near = np.abs(more) <= np.maximum(TIME_TOLERANCE * took, LEAST_TIME_US)
    verdict = departure_codes(~is_near & (more <= 0), _R.faster, ~is_near & (more > 0), _R.slower)
    return NodeVerdicts(partition_nodes(intent)[rows], verdict)


def captured_catch_up(intent: Intent) -> Ints:
    """How long each partition's backlog took in the capture: int64[partitions], us; NO_BACKLOG, or NEVER if it was not
    read.
    """
    partitions, servings = intent.unit.partitions, intent.servings
    took = np.where(partitions["backlog_end"] > partitions["start_batch"], NEVER, NO_BACKLOG)
    backlog_end = partitions["backlog_end"][servings.partition]
    read = (servings.end >= backlog_end) & (servings.begin < backlog_end)
    p = servings.partition[read]
    np.minimum.at(took, p, servings.response[read] - intent.requested_at[p])
    return took


def compared_requests(intent: Intent, replayed: CapturedLane) -> NodeVerdicts:
    """For each node: whether as many requests were sent, without those whose response a quota emptied."""
    captured = intent.nodes.nodes["fetches"] - intent.throttled
    more = replayed.nodes["requests"] - captured
    is_near = np.abs(more) <= np.maximum(REQUESTS_TOLERANCE * captured, LEAST_REQUESTS)
    verdict = departure_codes(~is_near & (more <= 0), _R.fewer_requests, ~is_near & (more > 0), _R.more_requests)
    return NodeVerdicts(np.arange(len(captured)), verdict)


def compared_restarts(intent: Intent, replayed: CapturedLane) -> NodeVerdicts:
    """For each time that the reader gave up a partition or sought: whether it had read as far by then."""
    changes, servings, nodes = intent.unit.changes, intent.servings, intent.unit.nodes
    rows = np.flatnonzero(changes["captured_batch"] != NONE)
    node = np.repeat(np.arange(len(nodes)), nodes["end_change"] - nodes["first_change"])[rows]
    before = intent.unit.batches["bytes_before"]
    returned, captured = before[replayed.positions[rows]], before[changes["captured_batch"][rows]]
    largest = np.zeros(len(nodes), np.int64)
    of_fetch, first = np.unique(servings.fetch, return_index=True)
    if len(of_fetch):
        np.maximum.at(largest, servings.node[first], np.add.reduceat(servings.size, first))
    some = np.maximum(BYTES_TOLERANCE * np.bincount(servings.node, servings.size, len(nodes)), largest)[node]
    verdict = departure_codes(returned < captured - some, _R.fewer_bytes, returned > captured + some, _R.more_bytes)
    return NodeVerdicts(node, verdict)
