"""The replay of KIP-578 (a proposal) over a cluster: every lane over all changes, as rows of the gold tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.table import Table
from udfs.columns.arrays import Floats, Ints, read_only
from udfs.facts.arrow_tables import arrow_schema, pack
from udfs.replay.partition_limits.controller import replay_lane
from udfs.replay.partition_limits.curve import limit_curves
from udfs.replay.partition_limits.fidelity import limit_fidelity_rows
from udfs.replay.partition_limits.headroom import headroom_rows, per_broker_rows
from udfs.replay.partition_limits.history.changes import History, history_of
from udfs.replay.partition_limits.history.requested_changes import Defaults
from udfs.replay.partition_limits.rows import curve_rows, refusal_rows, summed_rows
from udfs.replay.partition_limits.schedule import NO_SCHEDULE, Schedule
from udfs.replay.partition_limits.state import Lane, Limits, Outcomes, no_outcomes, workspace
from udfs.replay.partition_limits.topics import APPEAR, VANISH, Changes, Topics, no_topics

SAMPLES = 100
"""Times at which replicas by broker are kept."""

GROWTH_CHECKED_SINCE = (4, 4)
"""The first release that checks a CreatePartitions request as a whole."""

QUOTA_WINDOWS_SECONDS = 11
"""controller.quota.window.num times controller.quota.window.size.seconds, both by default."""


class LimitLane(NamedTuple):
    """A lane's settings.

    release: whose limits on a request it has, by its numbers; None for the proposal's limits alone. mutation_rate:
    partitions/s, 0 for no controller mutation quota.
    """

    name: str
    broker: Schedule = NO_SCHEDULE
    total: Schedule = NO_SCHEDULE
    release: tuple[int, ...] | None = (4, 3)
    mutation_rate: float = 0.0

    def limits(self, changes: Changes) -> Limits:
        """What the lane allows at each change."""
        is_of_kafka = self.release is not None

        def flag(value: bool) -> Ints:
            return np.array([value]).astype(np.int64)

        def rate(value: float) -> Floats:
            return np.array([value])

        return Limits(
            self.broker.at(changes.time), self.total.at(changes.time), flag(is_of_kafka), flag(self.checks_growth),
            flag(is_of_kafka), rate(self.mutation_rate), rate(self.burst),
        )  # fmt: skip

    @property
    def checks_growth(self) -> bool:
        """Whether a CreatePartitions request is checked as a whole."""
        return self.release is not None and self.release >= GROWTH_CHECKED_SINCE

    @property
    def burst(self) -> float:
        """Partitions that a full bucket of the controller mutation quota has (KIP-599)."""
        return self.mutation_rate * QUOTA_WINDOWS_SECONDS


class Replayed(NamedTuple):
    """A lane done: its settings, what became of the changes, the topics at the end, and replicas by broker in time."""

    lane: LimitLane
    outcomes: Outcomes
    topics: Topics
    samples: Ints


def replay_topics(
    batches: Iterable[pa.RecordBatch], lanes: tuple[LimitLane, ...], defaults: Defaults, seed: int, run_id: str
) -> Iterator[pa.RecordBatch]:
    """Packed rows of the gold tables from rows of TOPIC_EVENTS of one cluster, in any order."""
    schema, held = arrow_schema(TOPIC_EVENTS), list(batches)
    # Spark names the items of a list otherwise, and says of no column that it has no nulls.
    events = pa.Table.from_batches(held).cast(schema) if held else schema.empty_table()
    history = history_of(events, defaults, seed, quota_is_known=lanes[0].mutation_rate > 0)
    for table, rows in replay_history(history, lanes, run_id):
        yield from pack(table, rows)


def replay_history(
    history: History, lanes: tuple[LimitLane, ...], run_id: str
) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Rows of the gold tables and of `fidelity`, lane 0 being the captured one."""
    times = sample_times(history.changes)
    first = replayed(history, lanes[0], times)
    yield from limit_fidelity_rows(history, first.outcomes, first.topics, run_id)
    for lane in lanes:
        done = first if lane is lanes[0] else replayed(history, lane, times)
        yield summed_rows(history, done.outcomes, lane.name, run_id)
        yield refusal_rows(history, done.outcomes, lane.name, run_id)
        yield per_broker_rows(history.brokers, done.samples, times, lane.broker.at(times), lane.name, run_id)
        yield headroom_rows(history.brokers, done, first.samples, times, run_id)
    curves = limit_curves(history.changes, history.brokers, len(history.topics))
    yield from (curve_rows(history, reason, steps, run_id) for reason, steps in curves.items())


def sample_times(changes: Changes) -> Ints:
    """Evenly from just before the first change that was asked for to the last one, us."""
    asked = changes.time[(changes.kind != APPEAR) & (changes.kind != VANISH)]
    if len(asked) == 0:
        return np.zeros(0, np.int64)
    steps = np.arange(SAMPLES) * ((asked[-1] - asked[0] + 1) / (SAMPLES - 1))
    return np.unique(np.append(asked[0] - 1 + steps.astype(np.int64)[:-1], asked[-1]))


def replayed(history: History, lane: LimitLane, times: Ints) -> Replayed:
    """All changes in one lane."""
    changes, brokers = history.changes, history.brokers
    state = Lane(
        changes, brokers, lane.limits(changes), no_topics(changes, len(brokers.rack), len(history.topics)),
        workspace(brokers, changes, lane.burst), no_outcomes(changes),
    )  # fmt: skip
    samples = np.zeros((len(times), len(brokers.rack)), np.int64)
    replay_lane(state, read_only(times), samples)
    return Replayed(lane, state.outcomes, state.topics, samples)
