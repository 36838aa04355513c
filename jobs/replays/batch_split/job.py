"""batch_split: KIP-126 on the silver tables. Every producer's records are sent again in every lane.

Records are appended at the captured times and to the captured partitions. The replay does not follow what a producer
would have sent if it had been faster or slower in a lane, or where its partitioner would have put records.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.captures.packets_needed import check_packets
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.batch_split.answers import QUERIES, TITLE, answer_lines
from jobs.replays.batch_split.producer_packets import with_packets
from jobs.replays.batch_split.stored_codecs import stored_codecs
from jobs.replays.client_processes import client_addresses
from jobs.replays.lane_settings import lane_settings
from jobs.replays.silver import Read, client_software, dealt_silver, read_small_table, rows_of_step_table
from jobs.scenarios.scenario import Scenario
from jobs.scenarios.settings import setting_of
from jobs.session.one_shuffle import replay_in_order, replay_shards, shard_column, shard_count
from schemas.tables import algorithms
from schemas.tables.silver import CAPTURES, CONNECTIONS, RECORD_BATCHES
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.steps import SENT
from schemas.tables.values import FROM_PRODUCE
from udfs.errors import CaptureError
from udfs.replay.batch_split.replay import IS_SENT, PACKET_ORDER, replay_splits, replay_with_records
from udfs.replay.batch_split.settings import LINGER, SplitLanes, TopicLimits, split_lanes
from udfs.replay.batch_split.silver_events import (
    BATCH_COLUMNS,
    CHANGE_COLUMNS,
    CONNECTION_COLUMNS,
    PRODUCERS,
    created_codecs,
    created_limits,
    producers_of,
    sent_batches,
)
from udfs.replay.shared.dealt_rows import SHARD
from udfs.replay.shared.process_addresses import ONE_ADDRESS_EACH

ORDER = (*PRODUCERS.unit, IS_SENT, *PACKET_ORDER, *PRODUCERS.order)
"""The order of rows in a task that measures sizes: for each producer first its packets, then what it sent."""


def lanes_for_splits(scenario: Scenario) -> SplitLanes:
    """The scenario's lanes. The release of a client is taken from the capture, unless one is stated."""
    lanes = split_lanes(lane_settings(scenario, algorithms.BATCH_SPLIT, scenario.captured), scenario.assumed)
    return replace(lanes, window=scenario.window)


def packed(source: Source) -> DataFrame:
    """Replay every producer of the capture set. If lanes measure sizes, a task has the packets of a producer's
    connections, too, with the batches that it sent. Raises CaptureError if the sizes of records are not known.
    """
    lanes = lanes_for_splits(source.run.scenario)
    batches = source.rows(RECORD_BATCHES)
    check_record_sizes(source, batches)
    check_topics_of_limits(batches, lanes.limits)
    shards, sent = shard_count(source.spark), reads_of_sent(source)
    if not lanes.measures:
        replay = partial(replay_splits, lanes=lanes, run_id=source.run_id)
        return replay_shards(dealt_silver(source, PRODUCERS, sent, shards), PRODUCERS, shards, replay)
    rows = rows_of_step_table(source, SENT, sent).withColumn(SHARD, shard_column(shards, *PRODUCERS.unit))
    with_both = with_packets(source.spark, source.run.lake, source.capture_id, rows, source.rows(CONNECTIONS))
    return replay_in_order(with_both, shards, ORDER, partial(replay_with_records, lanes=lanes, run_id=source.run_id))


def reads_of_sent(source: Source) -> list[Read]:
    """The batches that each client sent, with what is known about the client and the topic."""
    changes = read_small_table(source, TOPIC_CHANGES, CHANGE_COLUMNS)
    connections, software = read_small_table(source, CONNECTIONS, CONNECTION_COLUMNS), client_software(source)
    by_host = source.run.scenario.captured.get("producer.process") == "host"
    processes = ONE_ADDRESS_EACH if by_host else client_addresses(source)
    mapped = partial(
        sent_batches,
        producers=producers_of(connections, software, default_linger_ms, processes),
        created=created_limits(changes),
        by_host=by_host,
        stored=created_codecs(changes) | stored_codecs(source.rows(RECORD_BATCHES)),  # it may be altered later
    )
    return [Read(RECORD_BATCHES, BATCH_COLUMNS, mapped)]


def default_linger_ms(release: tuple[int, ...] | None) -> int:
    """The default of linger.ms in a release of Kafka's client; in the newest one if the release is not known."""
    return int(setting_of(LINGER).default_in(release) or 0)


def check_topics_of_limits(batches: DataFrame, limits: TopicLimits) -> None:
    """Raises CaptureError if max.message.bytes is stated for a topic that nobody produces to."""
    b, stated = RECORD_BATCHES, sorted({topic for by_name in limits.by_name for topic in by_name})
    if not stated:
        return
    produced = batches.where((F.col(b.source) == FROM_PRODUCE) & F.col(b.topic).isin(stated))
    missing = sorted(set(stated) - {row[0] for row in produced.select(b.topic).distinct().collect()})
    if missing:
        raise CaptureError(
            f"topic.NAME.max.message.bytes is given of {', '.join(missing)}, to which the capture shows no batch being "
            "produced: name topics as the column `topic` of silver/record_batches does"
        )


def check_record_sizes(source: Source, batches: DataFrame) -> None:
    """Raises CaptureError if the capture set was ingested without sizes of records, shows no produce request, or
    consists of request logs.
    """
    lake, capture_id = source.run.lake, source.capture_id
    check_packets(source.spark, lake, capture_id, algorithms.BATCH_SPLIT)
    decoder = source.rows(CAPTURES).select(CAPTURES.decoder).first()
    if decoder is None:
        return
    has_sizes = "+records/" in decoder[0]
    if has_sizes and batches.where(F.col(RECORD_BATCHES.source) == FROM_PRODUCE).first() is not None:
        return
    if has_sizes:
        raise CaptureError(
            f"{lake}: capture {capture_id} shows no produce request, which the replay of batch_split is about: "
            "capture packets of producers' connections with `tcpdump -s 0`"
        )
    raise CaptureError(
        f"{lake}: capture {capture_id} was ingested without the sizes of records, which the replay of batch_split "
        "needs. Run `pipeline`, or `ingest`, with the same scenario and flags, which ask for them"
    )


BATCH_SPLIT = Algorithm(algorithms.BATCH_SPLIT, TITLE, packed, QUERIES, answer_lines)
