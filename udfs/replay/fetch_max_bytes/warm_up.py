"""Compiles every kernel of this replay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import LogEvent
from schemas.tables.steps import LOG_EVENTS, PRODUCE_EVENTS
from udfs.columns.arrays import read_only
from udfs.columns.records import new_records
from udfs.kernels.blank_rows import blank_rows
from udfs.replay.fetch_max_bytes.closed_loop.drawn_times import note_backlogs
from udfs.replay.fetch_max_bytes.closed_loop.pace_fits import Sample, Timings, fit_polls, fit_waiting
from udfs.replay.fetch_max_bytes.closed_loop.state import READ_PARTITION
from udfs.replay.fetch_max_bytes.partition_log.replay import read_rows
from udfs.replay.fetch_max_bytes.producer_quota.replay import replay_producers
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.fetch_max_bytes.quotas import EACH, QuotaOf
from udfs.replay.fetch_max_bytes.replay import replay_fetches
from udfs.replay.fetch_max_bytes.settings import FETCH_LIMITS, FetchLanes, as_captured_clients
from udfs.replay.shared.histogram import BUCKETS, quantile
from udfs.replay.shared.lanes import AS_CAPTURED


def warm_up() -> None:
    """Run an aborted transaction, a batch, a witness, a read and two produce requests through two lanes."""
    for _ in replay_fetches(read_rows([sample_log_and_read()], 1 << 20), two_fetch_lanes(), ""):
        pass
    for _ in replay_producers([blank_rows(PRODUCE_EVENTS, 2)], two_producer_lanes(), ""):
        pass
    quantile(np.ones(BUCKETS, np.int64), 0.5)  # of waits; these fetches have none
    time = read_only(np.zeros(1, np.int64))
    note_backlogs(new_records(READ_PARTITION, 1), time, time)  # of a reader whose start is captured; this one's is not
    polls = np.ones(2, np.int64)
    times = Timings(polls, polls, polls, polls > 1)
    fit_polls(times, np.arange(2))  # of an application at work; this one is not
    fit_waiting(times, Sample(np.arange(2), 0.5), 2, True)  # of a reader that waits for records; this one does not


def sample_log_and_read() -> pa.RecordBatch:
    """An aborted transaction, a batch, a witness and a read of one partition."""
    return blank_rows(LOG_EVENTS, len(LogEvent), kind=np.array([*LogEvent]), size_bytes=np.full(len(LogEvent), 100))


def two_fetch_lanes() -> FetchLanes:
    """The captured limits and others."""
    limits, clients = [AS_CAPTURED, 1 << 20], as_captured_clients(2)
    both = new_records(
        FETCH_LIMITS, 2, max_bytes=limits, partition_max_bytes=limits, broker_max_bytes=1 << 20
    )  # fmt: skip
    return FetchLanes(("captured", "other"), both, both, clients, clients, np.ones(2))


def two_producer_lanes() -> ProducerLanes:
    """No quota and one."""
    ones = np.ones(2, np.int64)
    return ProducerLanes(("captured", "other"), ({}, {QuotaOf(None, EACH): 1}), ones, ones, 0)
