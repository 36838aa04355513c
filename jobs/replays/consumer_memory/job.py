"""consumer_memory: what memory consumers (KIP-81, a proposal), brokers (KIP-72) and producers use and would need."""

from __future__ import annotations

from functools import partial

from jobs.captures.packets_needed import check_packets
from jobs.lake.packed_tables import unpacked
from jobs.replays.algorithm import Algorithm, Prepared, Source
from jobs.replays.consumer_memory.answers import QUERIES, TITLE, answer_lines
from jobs.replays.consumer_memory.events import memory_events
from jobs.replays.consumer_memory.fetch_limits import (
    fetch_limits,
    limits_of_consumers,
    limits_of_memory,
    replayed_responses,
)
from jobs.replays.lane_settings import lane_settings
from jobs.replays.one_shuffle import shards_of
from jobs.scenarios.scenario import Scenario
from schemas.tables import algorithms
from schemas.tables.gold_memory import GOLD_MEMORY
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps import MEMORY_EVENTS
from udfs.replay.consumer_memory.replay import replay_memory
from udfs.replay.consumer_memory.settings import MemoryLanes, memory_lanes
from udfs.replay.fetch_max_bytes.settings import FetchLanes

_T = MEMORY_EVENTS
ORDER = (
    _T.side, _T.unit, _T.unit_address, _T.time, _T.connection_id, _T.exchange_no, _T.kind, _T.lane, _T.partition_key,
    _T.end_offset, _T.cut_end_offset, _T.size, _T.held,
)  # fmt: skip


def lanes_of(scenario: Scenario) -> tuple[MemoryLanes, FetchLanes]:
    """(the lanes as the replay takes them, the fetch limits under which it needs consumers' responses). What a lane
    does not change is as captured, or Kafka's default.
    """
    numbers, limits = fetch_limits(scenario.lanes(algorithms.CONSUMER_MEMORY), scenario.captured)
    settings = lane_settings(scenario, algorithms.CONSUMER_MEMORY, scenario.captured)
    return memory_lanes(settings, limits_of_consumers(limits), numbers), limits


def reads_logs(source: Source) -> bool:
    """Whether lanes have fetch limits of their own, and no replay before this one hands on what consumers receive."""
    return algorithms.FETCH_MAX_BYTES not in source.before and limits_of_memory(source.run.scenario) is not None


def prepare(source: Source) -> Prepared:
    """The memory of everyone in the capture set. Raises CaptureError where sizes of messages are not known."""
    check_packets(source.spark, source.run.lake, source.capture_id, algorithms.CONSUMER_MEMORY)
    lanes, limits = lanes_of(source.run.scenario)
    exchanges, fetches, batches = map(source.rows, (EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES))
    responses, shards = None, shards_of(source.spark)
    if reads_logs(source):
        responses = replayed_responses(exchanges, fetches, batches, limits, shards)
    elif lanes.fetch_number.any():
        responses = unpacked(source.before[algorithms.FETCH_MAX_BYTES], MEMORY_EVENTS)
    events = memory_events(exchanges, fetches, batches, responses, shards)
    replay = partial(replay_memory, lanes=lanes, run_id=source.run_id)
    # Reads of logs have the sizes of all batches that could be read.
    return Prepared(events, ORDER, replay, is_narrow=not reads_logs(source))


CONSUMER_MEMORY = Algorithm(algorithms.CONSUMER_MEMORY, TITLE, GOLD_MEMORY, prepare, QUERIES, answer_lines)
