"""fetch_max_bytes: KIP-74 on the silver tables, under every lane, in open loop and in closed loop.

Open loop: each captured request is answered under the settings of each lane. Closed loop: each reader goes on from what
it was given.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from jobs.captures.packets_needed import check_packets
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.consumer_memory.fetch_limits import limits_of_memory
from jobs.replays.fetch_max_bytes.answers import QUERIES, TITLE, answer_lines
from jobs.replays.fetch_max_bytes.reads import dealt_reads
from jobs.replays.fetch_max_bytes.users import with_users
from jobs.replays.lane_settings import lane_settings
from jobs.session.one_shuffle import replay_shards, shard_count
from schemas.tables import algorithms
from udfs.replay.fetch_max_bytes.replay import replay_fetches
from udfs.replay.fetch_max_bytes.settings import fetch_lanes
from udfs.replay.fetch_max_bytes.silver_events import READERS


def packed(source: Source) -> DataFrame:
    """Replay every fetch of the capture set. If the scenario replays memory under other fetch limits, the rows have the
    responses that this needs, too. Raises CaptureError where batch sizes are not known.
    """
    check_packets(source.spark, source.run.lake, source.capture_id, algorithms.FETCH_MAX_BYTES)
    scenario, shards = source.run.scenario, shard_count(source.spark)
    lanes = fetch_lanes(lane_settings(scenario, algorithms.FETCH_MAX_BYTES, scenario.captured))
    lanes, groups = with_users(source, replace(lanes, window=scenario.window))
    under = limits_of_memory(scenario)
    replay = partial(
        replay_fetches,
        lanes=lanes,
        run_id=source.run_id,
        responses_under=under and replace(under, users=lanes.users),
    )
    return replay_shards(dealt_reads(source, shards, groups), READERS, shards, replay)


FETCH_MAX_BYTES = Algorithm(algorithms.FETCH_MAX_BYTES, TITLE, packed, QUERIES, answer_lines)
