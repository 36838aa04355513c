"""The outcomes of KIP-578's (a proposal) lanes, as rows of the gold tables, for some lanes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.gold_limits import (
    PARTITION_LIMIT_CURVE,
    PARTITION_LIMIT_HEADROOM,
    PARTITION_LIMIT_REFUSALS,
    PARTITION_LIMITS,
    PARTITIONS_PER_BROKER,
)
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.table import Table
from udfs.columns.arrays import Floats, Ints, Records, read_only
from udfs.columns.arrow_columns import arrow_array, dictionary_column, repeated_text_column
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import US_PER_DAY
from udfs.facts.arrow_tables import make_rows
from udfs.facts.number_columns import Picked
from udfs.replay.partition_limits.events import NO_RESPONSE
from udfs.replay.partition_limits.schedule import UNLIMITED
from udfs.replay.partition_limits.settings import LimitLanes
from udfs.replay.partition_limits.state import (
    MAX_BROKER_PARTITIONS,
    MAX_PARTITIONS,
    MUTATION_QUOTA,
    REFUSED_BEFORE,
    REQUEST_PARTITIONS,
    REQUEST_RECORDS,
    History,
)
from udfs.replay.partition_limits.sums import GROUPED, LIMIT_SUMS, sum_outcomes
from udfs.replay.shared.columns import int_column

LIMIT_NAMES = {
    MAX_BROKER_PARTITIONS: "max.broker.partitions",
    MAX_PARTITIONS: "max.partitions",
    REQUEST_PARTITIONS: "partitions per request",
    REQUEST_RECORDS: "records per request",
    MUTATION_QUOTA: "controller_mutation_rate",
    REFUSED_BEFORE: "refused_before",
}
MESSAGES = {
    MAX_BROKER_PARTITIONS: "Cannot satisfy request without exceeding the limit max.broker.partitions (KIP-578, a "
    "proposal)",
    MAX_PARTITIONS: "Cannot satisfy request without exceeding the limit max.partitions (KIP-578, a proposal)",
    REQUEST_PARTITIONS: "Excessively large number of partitions per request",
    REQUEST_RECORDS: "Unable to perform excessively large batch operation",
    MUTATION_QUOTA: "The controller mutation quota is used up",
    REFUSED_BEFORE: "The topic does not exist because its creation was refused",
}
MAX_DAYS = 36_525
"""A breach later than this, a hundred years, counts as none."""
_E = TOPIC_EVENTS


class LaneResults(NamedTuple):
    """The outcomes of the changes in some lanes.

    outcomes: CHANGE_OUTCOME[lanes, changes]. replicas: int64[lanes], in the cluster at the end. times: int64[times],
    us.
    samples: int64[lanes, times + 1, brokers], replicas on each broker at those times, and at the end.
    captured_samples: int64[times + 1, brokers], the same in the captured lane, by which growth is measured.
    """

    lanes: LimitLanes
    outcomes: Records
    replicas: Ints
    times: Ints
    samples: Ints
    captured_samples: Ints

    def names(self, lane: Ints) -> pa.Array[Any]:
        """The names of lanes, as a dictionary column. lane: int64[n]."""
        return dictionary_column(pa.array(self.lanes.names, pa.string()), lane)


def topic_prefixes(topics: pa.Array[Any]) -> pa.Array[Any]:
    """The names up to the first of . - _ behind their first letter."""
    return pc.replace_substring_regex(topics, "^(.[^-._]*)[-._].*$", "\\1")


def principals_of_requests(rows: pa.RecordBatch) -> pa.Array[Any]:
    """The principals that requested changes, empty if no log tells."""
    return pc.fill_null(rows[_E.principal], "")


def number_alike_texts(columns: list[pa.Array[Any]]) -> Ints:
    """A number for each row, the same for rows with equal texts in all columns: int64[rows]."""

    def finer(groups: Ints, column: pa.Array[Any]) -> Ints:
        texts = column.dictionary_encode(null_encoding="encode")
        codes = groups * len(texts.dictionary) + texts.indices.to_numpy()
        return np.unique(codes, return_inverse=True)[1].astype(np.int64)

    return reduce(finer, columns, np.zeros(len(columns[0]), np.int64))


class RequestGroups(NamedTuple):
    """Groups of requests with equal kind, topic prefix, client and principal.

    keys: these four by their columns of PARTITION_LIMITS, each with a value for each group. changes: GROUPED[changes].
    """

    keys: Mapping[str, pa.Array[Any]]
    changes: Records

    def __len__(self) -> int:
        return len(self.keys[PARTITION_LIMITS.kind])


def request_groups(history: History) -> RequestGroups:
    """The groups of a history's requests, and the group of each change."""
    t, rows = PARTITION_LIMITS, history.rows
    keys = {
        t.kind: rows[_E.kind],
        t.topic_prefix: topic_prefixes(rows[_E.topic]),
        t.client_id: rows[_E.client_id],
        t.principal: principals_of_requests(rows),
    }
    group = number_alike_texts([*keys.values()])
    first_row = arrow_array(np.unique(group, return_index=True)[1])
    # A change without a captured request has row NONE, -1: it takes what is appended behind the rows.
    row, changes = history.captured["row"], np.zeros(len(history.changes), GROUPED)
    changes["group"], changes["in_window"] = np.append(group, NONE)[row], history.in_window
    for name in ("produce_requests", "fetch_requests", "metadata_requests"):
        changes[name] = np.append(int_column(rows, name, 0), 0)[row]
    return RequestGroups({name: column.take(first_row) for name, column in keys.items()}, read_only(changes))


def lane_rows(
    history: History, groups: RequestGroups, results: LaneResults, run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Rows of the tables that have lanes."""
    yield PARTITION_LIMITS, summed_rows(groups, results, run_id)
    yield PARTITION_LIMIT_REFUSALS, refusal_rows(history, results, run_id)
    yield PARTITIONS_PER_BROKER, per_broker_rows(history, results, run_id)
    yield PARTITION_LIMIT_HEADROOM, headroom_rows(history, results, run_id)


def summed_rows(groups: RequestGroups, results: LaneResults, run_id: str) -> pa.RecordBatch:
    """Rows of `partition_limits`."""
    t, sums = PARTITION_LIMITS, np.zeros((len(results.lanes.names), len(groups)), LIMIT_SUMS)
    sum_outcomes(results.outcomes, groups.changes, sums)
    failed = sums["produces_failed"] + sums["fetches_failed"] + sums["metadata_failed"]
    lane, group = np.nonzero(sums["changes"] + failed)
    sums = sums[lane, group]
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, len(lane)),
            t.scenario: results.names(lane),
            **{name: column.take(arrow_array(group)) for name, column in groups.keys.items()},
            **{name: sums[name] for name in (LIMIT_SUMS.names or ())[1:]},
        },
    )


def refusal_rows(history: History, results: LaneResults, run_id: str) -> pa.RecordBatch:
    """Rows of `partition_limit_refusals`."""
    t, decided_by = PARTITION_LIMIT_REFUSALS, results.outcomes["decided_by"]
    is_listed = history.in_window & (history.captured["row"] != NONE)
    lane, change = np.nonzero(np.isin(decided_by, list(LIMIT_NAMES)) & is_listed)
    outcomes, captured, n = results.outcomes[lane, change], history.captured[change], len(lane)
    rows, broker, error = history.rows.take(arrow_array(captured["row"])), outcomes["broker"], captured["error_code"]
    nodes = history.brokers.table["node_id"]
    node = nodes[broker] if len(nodes) else broker
    same_names = (t.connection_id, t.exchange_no, t.position, t.kind, t.topic, t.client_id)
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, n),
            t.scenario: results.names(lane),
            t.request_time: rows[_E.time],
            **{name: rows[name] for name in same_names},
            t.principal: principals_of_requests(rows),
            t.produces_failed: int_column(rows, _E.produce_requests, 0) * outcomes["is_absent"],
            t.fetches_failed: int_column(rows, _E.fetch_requests, 0) * outcomes["is_absent"],
            t.metadata_failed: int_column(rows, _E.metadata_requests, 0) * outcomes["is_absent"],
            t.error_code: outcomes["error"],
            t.refused_by: names_by_code(LIMIT_NAMES, outcomes["decided_by"]),
            t.limit_value: outcomes["limit"],
            t.present: outcomes["present"],
            t.asked: outcomes["requested"],
            t.broker: arrow_array(node, broker != NONE),
            t.message: messages_of_refusals(outcomes, node),
            t.captured_error_code: arrow_array(error, error != NO_RESPONSE),
        },
    )


def names_by_code(names: Mapping[int, str], codes: Ints) -> pa.Array[Any]:
    """The name of each code. codes: int64[n]. names: of every code from the least to the largest, none left out."""
    least = min(names)
    return pa.array([names[code] for code in range(least, max(names) + 1)]).take(arrow_array(codes - least))


def messages_of_refusals(outcomes: Records, node: Ints) -> pa.Array[Any]:
    """The message of each refusal: the limit, what is present and what was requested, as in KIP-578.

    outcomes: CHANGE_OUTCOME[refusals]. node: int64[refusals], the id of a single broker that would exceed the limit.
    """

    def texts(numbers: Ints) -> pa.Array[Any]:
        return arrow_array(numbers).cast(pa.string())

    decided_by, broker = outcomes["decided_by"], outcomes["broker"]
    all_brokers = pc.if_else(pa.array(decided_by == MAX_BROKER_PARTITIONS), " on all brokers", "")
    where = pc.if_else(pa.array(broker != NONE), joined_texts(" on broker ", texts(node)), all_brokers)
    limit, present, requested = (texts(outcomes[name]) for name in ("limit", "present", "requested"))
    numbers = joined_texts(": limit ", limit, ", present ", present, ", asked ", requested, where)
    is_limit = pa.array(decided_by != REFUSED_BEFORE)
    return joined_texts(names_by_code(MESSAGES, decided_by), pc.if_else(is_limit, numbers, ""))


def joined_texts(*parts: Any) -> pa.Array[Any]:
    """Texts joined row by row."""
    return pc.binary_join_element_wise(*parts, "")


def per_broker_rows(history: History, results: LaneResults, run_id: str) -> pa.RecordBatch:
    """Rows of `partitions_per_broker`."""
    t, times, nodes = PARTITIONS_PER_BROKER, results.times, history.brokers.table["node_id"]
    lanes = len(results.lanes.names)
    counts = results.samples[:, :-1].reshape(-1)
    by_lane = [results.lanes.limits_at(lane, times)["max_broker_partitions"] for lane in range(lanes)]
    limit = np.repeat(np.concatenate(by_lane), len(nodes))
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, len(counts)),
            t.scenario: results.names(np.repeat(np.arange(lanes), len(times) * len(nodes))),
            t.broker: np.tile(nodes, lanes * len(times)),
            t.at: np.tile(np.repeat(times, len(nodes)), lanes),
            t.partitions: counts,
            t.limit_value: arrow_array(limit, limit != UNLIMITED),
            t.headroom: arrow_array(limit - counts, limit != UNLIMITED),
        },
    )


def headroom_rows(history: History, results: LaneResults, run_id: str) -> pa.RecordBatch:
    """Rows of `partition_limit_headroom`, for each broker and for the cluster, if they have a limit."""
    t, limits, nodes = PARTITION_LIMIT_HEADROOM, results.lanes.limits_at_end(), history.brokers.table["node_id"]
    cluster = len(nodes)  # its index behind the brokers
    by_place = np.full((len(limits), cluster + 1), UNLIMITED)
    by_place[:, :cluster], by_place[:, cluster] = limits["max_broker_partitions"][:, None], limits["max_partitions"]
    lane, place = np.nonzero(by_place != UNLIMITED)
    limit, is_broker = by_place[lane, place], place != cluster
    counts = np.column_stack([results.samples[:, -1], results.replicas])[lane, place]
    on_brokers = results.captured_samples[:-1]
    captured_counts = np.column_stack([on_brokers, on_brokers.sum(axis=1)])[:, place]
    growth = growth_per_day(captured_counts, results.times)
    breach = breach_times(captured_counts, results.times, limit, growth)
    kind = np.where(is_broker, MAX_BROKER_PARTITIONS, MAX_PARTITIONS)
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, len(lane)),
            t.scenario: results.names(lane),
            t.refused_by: names_by_code(LIMIT_NAMES, kind),
            t.broker: arrow_array(np.append(nodes, 0)[place], is_broker),
            t.limit_value: limit,
            t.partitions: counts,
            t.headroom: limit - counts,
            t.growth_per_day: growth,
            t.breach_at: Picked(breach, known=breach != 0),
        },
    )


def growth_per_day(counts: Ints, times: Ints) -> Floats:
    """Growth in replicas a day from the first time to the last, float64[limits]; 0 if no time passes.

    counts: int64[times, limits], the replicas that each limit counts.
    """
    if len(times) < 2:
        return np.zeros(counts.shape[1])
    return (counts[-1] - counts[0]) * (US_PER_DAY / (times[-1] - times[0]))


def breach_times(counts: Ints, times: Ints, limit: Ints, growth: Floats) -> Ints:
    """When each limit is reached (us, 0 for never): within the run, or afterwards if replicas go on growing as before.

    counts: int64[times, limits], the replicas that each limit counts. limit: int64[limits]. growth: float64[limits],
    replicas a day.
    """
    if len(times) == 0:
        return np.zeros(len(limit), np.int64)
    reached = counts >= limit
    within = times[np.argmax(reached, axis=0)]
    days = np.divide(limit - counts[-1], growth, out=np.full(len(limit), np.inf), where=growth > 0)
    after = times[-1] + np.minimum(days, MAX_DAYS) * US_PER_DAY
    later = np.where((days >= 0) & (days < MAX_DAYS), after, 0).astype(np.int64)
    return np.where(reached.any(axis=0), within, later)


def limit_curve_rows(history: History, limit: int, curve: Records, run_id: str) -> tuple[Table, pa.RecordBatch]:
    """Rows of `partition_limit_curve`: for each range of values of one limit, the change that it refuses first.

    limit: a code of LIMIT_NAMES. curve: FIRST_REFUSAL[steps], from the lowest value on; each step goes up to where the
    next one begins. Steps that refuse a change before the window are left out.
    """
    last = np.append(curve["limit_from"][1:] - 1, UNLIMITED)
    is_listed = np.append(history.in_window, True)[curve["change"]]
    curve, last, n = curve[is_listed], last[is_listed], int(is_listed.sum())
    t, has_refusal = PARTITION_LIMIT_CURVE, curve["change"] != NONE
    row = np.append(history.captured["row"], NONE)[curve["change"]]
    rows = history.rows.take(arrow_array(row, row != NONE))
    same_names = (t.connection_id, t.exchange_no, t.position, t.kind, t.topic)
    return t, make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, n),
            t.refused_by: repeated_text_column(LIMIT_NAMES[limit], n),
            t.limit_from: curve["limit_from"],
            t.limit_to: arrow_array(last, last != UNLIMITED),
            t.request_time: rows[_E.time],
            **{name: rows[name] for name in same_names},
            t.present: arrow_array(curve["present"], has_refusal),
            t.asked: arrow_array(curve["requested"], has_refusal),
        },
    )
