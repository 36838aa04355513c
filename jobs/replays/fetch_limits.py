"""fetch_max_bytes: KIP-74 on the silver tables, under every lane, in open loop and in closed loop.

Open loop: each captured request is answered under the settings of each lane. Closed loop: each reader goes on from what
it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from jobs.captures.told_by_packets import check_packets
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.fetch_answers import QUERIES, TITLE, answer_lines
from jobs.replays.fetch_events import READER_ORDER, known_reads, with_profiles
from jobs.replays.fetch_settings import fetch_lanes
from jobs.replays.memory_fetches import limits_of_memory
from jobs.replays.one_shuffle import packed_in_order, shards_of
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY, FETCH_TIMELINE
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from udfs.replay.fetch.carried_reads import reads_of
from udfs.replay.fetch.fetch_lanes import FetchLanes
from udfs.replay.fetch.fetch_replay import Others, replay_fetches
from udfs.replay.fetch.fetch_report import ALGORITHM
from udfs.replay.memory.response_events import response_events, room_for


def replay(source: Source) -> DataFrame:
    """Replay every fetch of the capture set; with the responses that the replay of memory goes on from, where the
    scenario has it. Raises CaptureError where batch sizes are not known.
    """
    check_packets(source.spark, source.run.lake, source.capture_id, ALGORITHM)
    scenario, shards = source.run.scenario, shards_of(source.spark)
    lanes = fetch_lanes(scenario.lanes(ALGORITHM), dict(scenario.captured))
    limits = limits_of_memory(scenario)
    others = None if limits is None else Others(limits, room_for, response_events)
    fetches = with_profiles(source.rows(FETCH_PARTITIONS), source.rows(EXCHANGES))
    reads = known_reads(fetches, source.rows(RECORD_BATCHES), shards)
    return replayed(reads, lanes, source.run_id, shards, others)


def replayed(reads: DataFrame, lanes: FetchLanes, run_id: str, shards: int, others: Others | None) -> DataFrame:
    """Packed rows of the gold tables, and `others`, from rows of CARRIED_READS: one shuffle, by reader."""

    def replay(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from replay_fetches(map(reads_of, rows), lanes, run_id, others)

    return packed_in_order(reads, shards, READER_ORDER, replay)


TABLES = (FETCH_FAIRNESS, FETCH_CONSUMERS, FETCH_TIMELINE, FETCH_MEMORY)
FETCH_LIMITS = Algorithm(ALGORITHM, TITLE, TABLES, replay, QUERIES, answer_lines)
