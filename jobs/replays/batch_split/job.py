"""batch_split: KIP-126 on the silver tables, where every producer's records are sent again under every lane.

Records are appended when they were in the capture, and to the same partitions. What a producer would have sent if it
had been faster or slower in a lane, and where its partitioner would have put records, is not followed.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.captures.packets_needed import check_packets
from jobs.replays.algorithm import Algorithm, Prepared, Source
from jobs.replays.batch_split.answers import QUERIES, TITLE, answer_lines
from jobs.replays.batch_split.events import check_topics, created_topics, sent_batches
from jobs.replays.batch_split.producer_packets import with_packets
from jobs.replays.lane_settings import lane_settings
from jobs.replays.one_shuffle import shards_of
from jobs.scenarios.scenario import Scenario
from schemas.tables import algorithms, gold_splits
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, RECORD_BATCHES
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.steps import SENT
from schemas.tables.values import FROM_PRODUCE
from udfs.errors import CaptureError
from udfs.replay.batch_split.replay import CLIENT, IS_SENT, PACKET_ORDER, replay_splits, replay_with_records
from udfs.replay.batch_split.settings import SplitLanes, split_lanes

SENT_ORDER = (SENT.append_from, SENT.request_time, SENT.connection_id, SENT.exchange_no, SENT.position)


def lanes_of(scenario: Scenario) -> SplitLanes:
    """The scenario's lanes. Which release a client has, it shows itself unless a release is stated."""
    return split_lanes(lane_settings(scenario, algorithms.BATCH_SPLIT, scenario.captured), scenario.assumed)


def prepare(source: Source) -> Prepared:
    """Every producer of the capture set; if lanes measure sizes, the packets of a producer's connections come with what
    it sent. Raises CaptureError if the sizes of records are not known.
    """
    batches, connections, exchanges = map(source.rows, (RECORD_BATCHES, CONNECTIONS, EXCHANGES))
    check_record_sizes(source, batches)
    scenario, lanes = source.run.scenario, lanes_of(source.run.scenario)
    by_host = scenario.captured.get("producer.process") == "host"
    check_topics(batches, lanes.limits)
    created = created_topics(source.rows(TOPIC_CHANGES))
    sent = sent_batches(batches, connections, exchanges, created, by_host, shards_of(source.spark))
    if not lanes.measures:
        return Prepared(sent, (*CLIENT, *SENT_ORDER), partial(replay_splits, lanes=lanes, run_id=source.run_id))
    rows = with_packets(source.spark, source.run.lake, source.capture_id, sent, connections)
    order = (*CLIENT, IS_SENT, *PACKET_ORDER, *SENT_ORDER)
    return Prepared(rows, order, partial(replay_with_records, lanes=lanes, run_id=source.run_id))


def check_record_sizes(source: Source, batches: DataFrame) -> None:
    """Raises CaptureError if the capture set was ingested without sizes of records, shows no produce request, or is of
    request logs.
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
        "needs: run `pipeline`, or `ingest`, with the same scenario and flags, which ask for them"
    )


TABLES = (gold_splits.BATCH_SPLIT, gold_splits.BATCH_SPLIT_TIMELINE)
BATCH_SPLIT = Algorithm(algorithms.BATCH_SPLIT, TITLE, TABLES, prepare, QUERIES, answer_lines)
