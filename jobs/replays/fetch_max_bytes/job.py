"""fetch_max_bytes: KIP-74 on the silver tables, in every lane, in open loop and in closed loop.

Open loop: each captured request is answered under the settings of each lane. Closed loop: each reader's next request
depends on the answers that it got in the lane.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce

import numpy as np
from pyspark.sql import DataFrame

from jobs.captures.packets_needed import check_packets
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.client_processes import client_addresses
from jobs.replays.consumer_memory.fetch_limits import limits_of_memory
from jobs.replays.fetch_max_bytes.answers import QUERIES, TITLE, answer_lines
from jobs.replays.fetch_max_bytes.rack_reads import packed_rack_rows
from jobs.replays.fetch_max_bytes.reads import dealt_reads, with_connections
from jobs.replays.fetch_max_bytes.users import producers_with_users, with_users
from jobs.replays.lane_settings import lane_settings
from jobs.replays.silver import Read, dealt_silver, read_small_table
from jobs.session.one_shuffle import replay_shards, shard_count
from schemas.tables import algorithms
from schemas.tables.silver import CONNECTIONS, EXCHANGES, RECORD_BATCHES
from udfs.replay.fetch_max_bytes.producer_quota.replay import replay_producers
from udfs.replay.fetch_max_bytes.producer_quota.settings import lanes_of_fetches, producer_lanes
from udfs.replay.fetch_max_bytes.producer_quota.silver_events import (
    MADE_COLUMNS,
    PRODUCE_COLUMNS,
    PRODUCERS,
    made_events,
    produce_events,
)
from udfs.replay.fetch_max_bytes.replay import replay_fetches
from udfs.replay.fetch_max_bytes.settings import fetch_lanes
from udfs.replay.fetch_max_bytes.silver_events import READERS
from udfs.replay.shared.lanes import LaneSettings
from udfs.replay.shared.silver_columns import ByConnection


def packed(source: Source) -> DataFrame:
    """Replay every fetch of the capture set. If the scenario replays memory under other fetch limits, the rows also
    have the responses that this needs. Raises CaptureError if batch sizes are not known.
    """
    check_packets(source.spark, source.run.lake, source.capture_id, algorithms.FETCH_MAX_BYTES)
    scenario, shards = source.run.scenario, shard_count(source.spark)
    settings = lane_settings(scenario, algorithms.FETCH_MAX_BYTES, scenario.captured)
    lanes = fetch_lanes(lanes_of_fetches(settings))
    lanes, groups = with_users(source, with_connections(source, replace(lanes, window=scenario.window)))
    under = limits_of_memory(scenario)
    replay = partial(
        replay_fetches,
        lanes=lanes,
        run_id=source.run_id,
        responses_under=under and replace(under, users=lanes.users),
    )
    of_fetches = replay_shards(dealt_reads(source, shards, groups, lanes.deals_fetchers), READERS, shards, replay)
    of_producers = packed_producers(source, settings, shards)
    of_racks = None if source.judges_lanes else packed_rack_rows(source)
    parts = [part for part in (of_fetches, of_producers, of_racks) if part is not None]
    return reduce(DataFrame.unionByName, parts)


def packed_producers(source: Source, settings: LaneSettings, shards: int) -> DataFrame | None:
    """Every producer in the lanes with quotas of producers; None if there are no such quotas."""
    lanes = producer_lanes(settings)
    if lanes is None:
        return None
    lanes, groups = producers_with_users(source, replace(lanes, window=source.run.scenario.window))
    processes = client_addresses(source)
    reads = [
        Read(
            EXCHANGES,
            PRODUCE_COLUMNS,
            partial(produce_events, began_before=begun_before(source), groups=groups, processes=processes),
        ),
        Read(RECORD_BATCHES, MADE_COLUMNS, partial(made_events, groups=groups, processes=processes)),
    ]
    replay = partial(replay_producers, lanes=lanes, run_id=source.run_id)
    return replay_shards(dealt_silver(source, PRODUCERS, reads, shards), PRODUCERS, shards, replay)


def begun_before(source: Source) -> ByConnection:
    """1 for each connection whose begin the capture does not show, and for each connection of a request log."""
    c = CONNECTIONS
    rows = read_small_table(source, c, (c.connection_id, c.began_before_capture))
    ids = rows.filter(rows[c.began_before_capture])[c.connection_id].drop_null().to_numpy()
    return ByConnection(np.sort(ids), np.ones(len(ids), np.int64))


FETCH_MAX_BYTES = Algorithm(algorithms.FETCH_MAX_BYTES, TITLE, packed, QUERIES, answer_lines)
