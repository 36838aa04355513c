"""The records of a producer's replay: its records, the captured batches, and the state of a lane.

Three kinds of records describe batches. BATCH is a captured batch. In a lane, a batch is FILLING as long as it takes
records. Then it is READY, as Kafka calls a batch that may be sent, until it has been sent and, if necessary, split.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Floats, Ints, Record, Records, Singles, read_only
from udfs.columns.records import int_fields, new_records
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.estimate import DAMPED_INITIAL, record_bytes
from udfs.replay.batch_split.settings import DAMPED
from udfs.replay.shared.event_heap import Heap
from udfs.replay.shared.lanes import AS_CAPTURED
from udfs.replay.shared.window import WHOLE, Window
from udfs.wire.compressed_sizes import CODEC_NAMES

MICRO = 1_000_000
"""Ratios and errors are kept as integers in millionths."""
SPAN_BATCHES = 32
"""How many batches make a span of `batch_split_timeline`."""
SPANS_ROOM = 1024
"""For how many spans there is memory until they are taken away."""

RECORD = int_fields(
    "time",  # us: when it was appended
    "timestamp",  # ms
    "content",  # bytes of key, value and headers
    "partition",
    "batch",  # the captured batch in which it was first sent
    "part",  # if that batch was split, the captured part that begins with this record; or NONE
)
"""A record of the producer. The records of a partition are next to each other, in the order of appends."""

BATCH = int_fields(
    "sending",  # the number of the sending that sent it first
    "first",  # its records are [first, end)
    "end",
    "next_record",  # the next appended record that could have gone into the same batch; or NONE
    "codec",
    "has_sequence",  # 1: of an idempotent producer
    "closed",  # us; NONE if pace is drawn anew, so that every batch is closed by its delay
    "size",  # bytes
    # A batch is ready when it is full or has lingered. The client closes it some time after that, and after the close
    # of the batch before. If parts of a split batch have to be sent first, it waits for these, too.
    "delay",  # us: from when it is ready to its close, without the time in which it had to wait for parts
    "delay_in_turn",  # us: the part of `delay` after the last part, or after the close of the batch before
    "in_turn",  # 1: it was ready, and waited for parts or for the close of the batch before
    "by_bytes",  # us: the part of `delay_in_turn` that is in proportion to its bytes
    "uncompressed",  # bytes of its records
    "early",  # us: when it was closed, if that was before it was ready; otherwise NEVER
    "filled_by",  # `next_record`, if it can have come before the request and found the batch full; otherwise NONE
    "round_trip",  # us: from its close to the response
    "retries",  # how often it was sent again unchanged
    "retry_at",  # us: when it was first sent again unchanged; NEVER: it was not
    "queued_by",  # the split batch for whose parts it had to wait, or NONE
)
"""A captured batch, as first sent."""

PART = int_fields("end", "size", "sent_at", "answered_at")
"""A part: a captured batch that a split made. It has the record behind its last one, its bytes, and when it was closed
and answered (us); `answered_at` may be NEVER."""

SENT_PARTITION = int_fields(
    "topic",
    "is_sticky",  # 1: the built-in partitioner places the topic's records, which have no key (KIP-794)
)
"""A partition that the producer sends to."""

FILLING = np.dtype(
    [
        ("first", np.int64),  # its first record, if it has any
        ("count", np.int64),  # records
        ("uncompressed", np.int64),  # bytes
        ("limit", np.int64),  # the most bytes that it may have
        ("created", np.int64),  # us
        ("is_overdue", np.int64),  # 1: it has lingered, and waits until the parts before it are sent
        ("last_closed", np.int64),  # us: when the batch before was closed, or will be
        ("queued", np.int64),  # the first batch in the queue, by its first record; or NONE
        ("left", np.int64),  # the last batch that left the queue to be closed, by its first record; or NONE
        ("left_at", np.int64),  # us: when that batch is closed
        ("part", np.int64),  # the state of the part that left the queue last (`partition_queue`)
        ("refused", np.int64),  # the last captured batch that is also a batch of the lane, and is too large; or NONE
        ("ratio", np.float32),  # the estimate with which it was created
    ],
    align=True,
)
"""The batch of a partition that is being filled, and the batches that wait before it (`partition_queue`)."""

READY = int_fields(
    "end",
    "uncompressed",
    "size",  # bytes once it is closed, NOT_CLOSED before; MODELLED if it will not be measured
    "made_by_split",  # 1 or STUCK if a split made it, otherwise 0
    "may_leave",  # us: it does not leave the queue before
    "next_in_queue",  # the next batch in the queue, by its first record; or NONE
)
"""A batch that takes no more records, kept at the index of its first record."""
NOT_CLOSED, MODELLED = 0, -1
STUCK = 2
"""The split of the batch made the same batch again: Kafka goes on until delivery.timeout.ms, the replay gives up."""

SPLIT_OUTCOME = np.dtype(
    [
        (name, np.int64)
        for name in (
            "batches",  # that were sent, without those that splits made
            "over_limit",  # of these, larger than max.message.bytes
            "records",
            "bytes_sent",  # of all batches, as often as each is sent
            "bytes_resent",  # of the batches that splits made
            "splits",
            "split_batches",  # batches that splits made
            "failed",  # batches that are refused, and cannot be split or are not split under the profile
            "retries",
            "size",  # bytes of `batches`
            "limit",  # the sum of batch.size over `batches`
            "uncompressed",  # bytes of the records of `batches`
            "largest",  # bytes of the largest of `batches`
            "recoveries",  # how often the estimate came back after a split had raised it
            "recovery_us",  # us: how long this took in total
            "recovery_longest",  # us
            "measured",  # closed batches whose records were compressed anew to get their size
            "model_error",  # sum of the model's errors for these, in MICRO of the size
            "since_split",  # us: when a split raised the estimate, if it has not come back since; else NEVER
            "span_first",  # batches closed before the current span of the timeline
            "span_batches",
            "span_splits",
        )
    ]
    + [("span_estimated", np.float64), ("span_observed", np.float64)]  # sums of ratios
)
"""The outcome of a lane for a topic in the window; only `since_split` also counts the time before it."""

SPLIT_SPAN = int_fields("lane", "topic", "first_batch", "batches", "splits", "estimated", "observed", "time")
"""A span of the timeline: the sums of estimated and observed ratios in MICRO, and the us at which it ended."""

LANE_PROGRESS = int_fields(
    "lane",  # the lane that is replayed
    "appended",  # how many records it has appended, or NOT_BEGUN
    "spans",  # spans that wait to be taken away
    "unmeasured",  # the batch, by its first record, that has to be measured before the lane can go on; or NONE
    "codec",  # that this batch is to be compressed with
    "counts_from",  # us: the first time that counts
    "last",  # us: the last time that is replayed
)
"""The progress of the lanes."""
NOT_BEGUN = -1
AS_PRODUCED = -1
"""Stands for the codec in which brokers store a topic's batches: they keep the producer's."""


class SizeModel(NamedTuple):
    """Compressed bytes without the header: a batch of [first, end) has fixed[codec, first] + cost[model, codec, end] -
    cost[model, codec, first].

    fixed: float64[codecs, records]. cost: float64[2, codecs, records + 1], by model: BY_PARTS, from parts that were
    compressed anew, and FITTED, from the fitted lines only (`recompression`).
    """

    fixed: Floats
    cost: Floats


class Capture(NamedTuple):
    """What the capture shows of a producer, in the form that its lanes replay.

    records: RECORD[records]. append_order: int64[records], the records in the order of appends. batches:
    BATCH[batches]. parts: PART[parts]. partitions: SENT_PARTITION[partitions].
    """

    records: Records
    append_order: Ints
    batches: Records
    parts: Records
    partitions: Records
    sizes: SizeModel


class TopicRules(NamedTuple):
    """What brokers do with the batches of topics.

    limits: int64[lanes, topics], max.message.bytes. stored: int64[topics], the codec in which brokers store a topic's
    batches, or AS_PRODUCED.
    """

    limits: Ints
    stored: Ints


class ProducerSim(NamedTuple):
    """The replay of a stretch of what a producer sent, in every lane."""

    capture: Capture
    settings: Records  # SPLIT_SETTINGS[lanes]
    rules: TopicRules
    estimates: Singles  # float32[lanes, topics, codecs]; go on from the stretch before, as the outcomes do
    outcomes: Records  # SPLIT_OUTCOME[lanes, topics]
    filling: Records  # FILLING[partitions]
    ready: Records  # READY[records]
    current: Ints  # int64[topics]: the partition that got the last record
    heap: Heap
    spans: Records  # SPLIT_SPAN[SPANS_ROOM]
    progress: Records  # LANE_PROGRESS[1]


def new_sim(
    capture: Capture,
    settings: Records,
    rules: TopicRules,
    estimates: Singles,
    outcomes: Records,
    window: Window = WHOLE,
) -> ProducerSim:
    """The replay of a stretch, before its first record.

    settings: SPLIT_SETTINGS[lanes]. estimates: float32[lanes, topics, codecs]. outcomes: SPLIT_OUTCOME[lanes, topics].
    Both go on from the stretch before, and are written in place. window: the time that counts.
    """
    room, topics = 3 * len(capture.records) + 64, outcomes.shape[1]
    return ProducerSim(
        capture=read_only_capture(capture),
        settings=read_only(settings),
        rules=TopicRules(*map(read_only, rules)),
        estimates=estimates,
        outcomes=outcomes,
        filling=np.zeros(len(capture.partitions), FILLING),
        ready=np.zeros(len(capture.records), READY),
        current=np.zeros(topics, np.int64),
        heap=Heap(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64)),
        spans=np.zeros(SPANS_ROOM, SPLIT_SPAN),
        progress=new_progress(window),
    )


def new_progress(window: Window) -> Records:
    """The progress of a replay before its first record: LANE_PROGRESS[1]."""
    last = NEVER if window.end == NEVER else window.end - 1
    return new_records(LANE_PROGRESS, 1, counts_from=window.begin, last=last)


def read_only_capture(capture: Capture) -> Capture:
    """The capture in the form that kernels take."""
    return capture._replace(
        records=read_only(capture.records),
        append_order=read_only(capture.append_order),
        batches=read_only(capture.batches),
        parts=read_only(capture.parts),
        partitions=read_only(capture.partitions),
        sizes=SizeModel(*map(read_only, capture.sizes)),
    )


def initial_estimates(settings: Records, topics: int) -> Singles:
    """The estimates before any batch was closed: float32[lanes, topics, codecs]. settings: SPLIT_SETTINGS[lanes]."""
    estimates = np.ones((len(settings), topics, len(CODEC_NAMES)), np.float32)
    estimates[settings["profile"] == DAMPED, :, 1:] = DAMPED_INITIAL
    return estimates


def no_outcomes(lanes: int, topics: int) -> Records:
    """The outcomes of lanes before their first event: SPLIT_OUTCOME[lanes, topics]."""
    outcomes = np.zeros((lanes, topics), SPLIT_OUTCOME)
    outcomes["since_split"] = NEVER
    return outcomes


@kernel
def codec_of(sim: ProducerSim, lane: int, first: int) -> int:
    """The codec of a batch that begins with this record."""
    codec = sim.settings[lane].codec
    return int(sim.capture.batches[sim.capture.records[first].batch].codec if codec == AS_CAPTURED else codec)


@kernel
def topic_of(sim: ProducerSim, record: int) -> int:
    """The topic of a record."""
    return int(sim.capture.partitions[sim.capture.records[record].partition].topic)


@kernel
def bytes_in_batch(records: Records, record: int, first: int) -> int:
    """Bytes of a record in a batch that begins with the record `first`. records: RECORD[records]."""
    since = records[record].timestamp - records[first].timestamp
    return record_bytes(records[record].content, record - first, since)


@kernel
def close_time(captured: Record, ready_at: int, before: int) -> int:
    """When a batch is closed (us). ready_at: when it is ready. before: when the batch before is closed.

    If the captured batch waited in turn, the capture shows the time from the close before to its close. Otherwise, it
    shows the time from when it was ready.
    """
    if captured.in_turn:
        return int(max(ready_at, before) + captured.delay)
    return int(max(ready_at + captured.delay, before))


@kernel
def delay_by_bytes(captured: Record, uncompressed: int) -> int:
    """How much later than the captured batch a batch of `uncompressed` bytes is closed (us)."""
    if captured.by_bytes == 0:
        return 0
    return int(captured.by_bytes * (uncompressed - captured.uncompressed) // captured.uncompressed)


@kernel
def estimate_topic(settings: Record, topic: int) -> int:
    """The topic whose estimate a batch uses: before KIP-126 a client had one estimate for all topics."""
    return 0 if settings.profile == DAMPED else topic
