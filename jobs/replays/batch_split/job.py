"""batch_split: KIP-126 on the silver tables, every producer's records sent again under every lane.

Records are appended when they were, to the partitions they were; what a producer would have sent had it been faster or
slower for it, and where its partitioner would have put records, is not followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.captures.kafka_release import KAFKA_SETTING, PROPOSAL
from jobs.captures.packets_needed import check_packets
from jobs.replays.algorithm import Algorithm, Prepared, Source
from jobs.replays.batch_split.answers import BATCH_SIZE, MESSAGE_MAX_BYTES, QUERIES, TITLE, TOPIC_LIMIT, answer_lines
from jobs.replays.batch_split.events import check_topics, created_topics, sent_batches
from jobs.replays.batch_split.producer_packets import with_packets
from jobs.replays.one_shuffle import shards_of
from jobs.scenarios.scenario import Scenario, values_in
from jobs.scenarios.settings import Value, setting_of, settings
from schemas.tables import algorithms, gold_splits
from schemas.tables.silver import CAPTURES, CONNECTIONS, EXCHANGES, RECORD_BATCHES
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.steps import SENT
from schemas.tables.values import FROM_PRODUCE
from udfs.columns.time_units import US_PER_MS
from udfs.errors import CaptureError
from udfs.facts.asked_records import SAMPLE_EVERY
from udfs.replay.batch_split.estimate import BY_CLIENT, KIP_TEXT, PROFILES, TODAY, Producers
from udfs.replay.batch_split.replay import CLIENT, SplitLanes, replay_splits
from udfs.replay.batch_split.replay_with_records import IS_SENT, PACKET_ORDER, replay_with_records
from udfs.replay.batch_split.settings import NOT_SAID, TopicLimits
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.wire.compressed_sizes import CODEC_NAMES

HALVES_SINCE = (4, 2)
"""The first release that splits a batch which came of a split in halves."""

SENT_ORDER = (SENT.append_from, SENT.request_time, SENT.connection_id, SENT.exchange_no, SENT.position)
EXACT = "exact"
"""Of recut.sizes: records are compressed anew as they are batched."""


def split_lanes(scenario: Scenario) -> SplitLanes:
    """The scenario's lanes as the replay takes them; what a lane leaves is as captured, else Kafka's default."""
    lanes, captured = scenario.lanes(algorithms.BATCH_SPLIT), scenario.captured

    def values(key: str) -> list[Value | None]:
        return values_in(lanes, key, captured)

    def whole(key: str, factor: int = 1) -> npt.NDArray[np.int64]:
        return np.array([int(value or 0) * factor for value in values(key)], np.int64)

    def single(key: str) -> npt.NDArray[np.float32]:
        return np.array([float(value or 0) for value in values(key)], np.float32)

    default = int(settings()[BATCH_SIZE].default_value or 0)
    batch_sizes = [int(lane.settings.get(BATCH_SIZE, stated(scenario, BATCH_SIZE, BY_CLIENT))) for lane in lanes]
    codecs = [
        AS_CAPTURED if name is None else CODEC_NAMES.index(str(name)) for name in values("producer.compression.type")
    ]
    sizes = values("recut.sizes")
    every = 1 if captured.get("recompress") == "all" else SAMPLE_EVERY
    releases = values(KAFKA_SETTING)
    profiles = [PROFILES.index(str(name)) for name in values("split.profile")]
    texts = [
        KIP_TEXT if release == PROPOSAL and of == TODAY else of for release, of in zip(releases, profiles, strict=True)
    ]
    halves = [BY_CLIENT if release in (None, PROPOSAL) else int(is_halving(str(release))) for release in releases]
    return SplitLanes(
        tuple(lane.name for lane in lanes),
        Producers(
            batch_size=np.array(batch_sizes, np.int64),
            max_message_bytes=np.zeros((len(lanes), 0), np.int64),
            linger_us=whole("producer.linger.ms", US_PER_MS),
            codec=np.array(codecs, np.int64),
            profile=np.array(texts, np.int64),
            halves=np.array(halves, np.int64),
            is_fitted=np.array([mode == "fitted" for mode in sizes]).astype(np.int64),
            measured_every=np.array([every if mode == EXACT else 0 for mode in sizes], np.int64),
            improving_step=single("compression.ratio.improving.step"),
            deteriorate_step=single("compression.ratio.deteriorate.step"),
            estimation_factor=single("compression.ratio.estimation.factor"),
        ),
        topic_limits(scenario),
        default,
    )


def stated(scenario: Scenario, key: str, unsaid: int) -> int:
    """What is stated of a setting, bytes; `unsaid` where nobody states it, and Kafka's default is no more than that."""
    return unsaid if key in scenario.assumed else int(scenario.captured.get(key, unsaid))


def is_halving(release: str) -> bool:
    """Whether a release, such as `4.3`, splits a batch which came of a split in halves."""
    return tuple(map(int, release.split("."))) >= HALVES_SINCE


def topic_limits(scenario: Scenario) -> TopicLimits:
    """What lanes and statements say of max.message.bytes: a lane's of all topics overrides what is stated of one."""
    lanes, own = scenario.lanes(algorithms.BATCH_SPLIT), own_limits(scenario.captured)
    of_all, of_brokers = (
        np.array([int(lane.settings.get(key, stated(scenario, key, NOT_SAID))) for lane in lanes], np.int64)
        for key in (TOPIC_LIMIT, MESSAGE_MAX_BYTES)
    )
    return TopicLimits(
        tuple(({} if TOPIC_LIMIT in lane.settings else own) | own_limits(lane.settings) for lane in lanes),
        of_all,
        of_brokers,
        int(settings()[MESSAGE_MAX_BYTES].default_value or 0),
    )


def own_limits(values: Mapping[str, Value]) -> dict[str, int]:
    """max.message.bytes by topic, of what is said of one topic."""
    said = ((setting_of(key), value) for key, value in values.items())
    return {setting.topic: int(value) for setting, value in said if setting.topic is not None}


def prepare(source: Source) -> Prepared:
    """Every producer of the capture set. Where lanes measure sizes, the packets of a producer's connections come with
    what it sent. Raises CaptureError where sizes of records are not known.
    """
    batches, connections, exchanges = map(source.rows, (RECORD_BATCHES, CONNECTIONS, EXCHANGES))
    check_record_sizes(source, batches)
    scenario, lanes = source.run.scenario, split_lanes(source.run.scenario)
    by_host = scenario.captured.get("producer.process") == "host"
    check_topics(batches, lanes.limits)
    created = created_topics(source.rows(TOPIC_CHANGES))
    sent = sent_batches(batches, connections, exchanges, created, by_host, shards_of(source.spark))
    if not lanes.producers.measured_every.any():
        return Prepared(sent, (*CLIENT, *SENT_ORDER), partial(replay_splits, lanes=lanes, run_id=source.run_id))
    rows = with_packets(source.spark, source.run.lake, source.capture_id, sent, connections)
    order = (*CLIENT, IS_SENT, *PACKET_ORDER, *SENT_ORDER)
    return Prepared(rows, order, partial(replay_with_records, lanes=lanes, run_id=source.run_id))


def check_record_sizes(source: Source, batches: DataFrame) -> None:
    """Raises CaptureError where the capture set was ingested without sizes of records, shows no produce request, or is
    of request logs.
    """
    lake, capture_id = source.run.lake, source.capture_id
    check_packets(source.spark, lake, capture_id, algorithms.BATCH_SPLIT)
    t = RECORD_BATCHES
    of_files = source.rows(CAPTURES).select(CAPTURES.decoder).first()
    produced = batches.where(F.col(t.source) == FROM_PRODUCE)
    if of_files is None or ("+records/" in of_files[0] and produced.first() is not None):
        return
    if "+records/" in of_files[0]:
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
