"""The gold tables of KIP-126: what producers would split, and how their estimate follows the batches' ratios."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

_CLIENT = {
    "run_id": RUN_ID,
    "scenario": SCENARIO,
    "client_id": C("string", "client.id of the producer; empty for none, and where all of an address are one process"),
    "client_address": C("string", "The producer's IP address"),
    "topic": C("string", "Topic name, or its id where the name is not known"),
}

BATCH_SPLIT = table(
    "batch_split", "gold",
    "What each producer would send to a topic, and split (KIP-126). The captured lane is a replay too: fidelity says "
    "how far it is from the capture.",
    ("run_id", "scenario", "client_id", "client_address", "topic"), "run_id",
    **_CLIENT,
    batch_size=C("bigint", "batch.size of the producer in the lane", "bytes"),
    is_batch_size_told=C("boolean", "Nobody stated batch.size: it is inferred from the captured batches"),
    max_message_bytes=C("bigint", "The largest batch that brokers take for the topic in the lane", "bytes"),
    is_limit_told=C("boolean", "Nobody stated max.message.bytes, and brokers' responses show another than Kafka's "
                               "default"),
    stored_codec=C("string", "Codec that brokers compress the topic's batches into anew (compression.type), after "
                             "which they check max.message.bytes once more. It is null if they keep the producer's, "
                             "as far as fetched batches show", nullable=True),
    records=C("bigint", "Records"),
    batches=C("bigint", "Batches sent for the first time"),
    over_limit=C("bigint", "... larger than max.message.bytes, as sent or as stored"),
    over_limit_share=C("double", "over_limit / batches: the probability that a batch is too large", nullable=True),
    splits=C("bigint", "Batches that were split, including those made by a split: Kafka's batch-split-total"),
    split_rate=C("double", "splits / batches; what Kafka calls so is batch_split_rate", nullable=True),
    batch_split_rate=C("double", "splits, by second of the time from the producer's first request to its last, in "
                                 "the window; null if that is no time. Kafka's batch-split-rate looks at the last "
                                 "minute",
                       "1/s", nullable=True),
    split_batches=C("bigint", "Batches made by splits"),
    failed_batches=C("bigint", "Batches that are too large and cannot be split, or are not: the client fails their "
                               "records"),
    bytes_sent=C("bigint", "Bytes of all batches sent, whether first, again or after a split", "bytes"),
    bytes_resent=C("bigint", "... of batches made by splits", "bytes"),
    fill=C("double", "Bytes of batches sent for the first time, relative to batch.size", nullable=True),
    compression_ratio=C("double", "Compressed bytes without headers / uncompressed ones: Kafka's compression-rate-avg",
                        nullable=True),
    batch_bytes_max=C("bigint", "The largest batch: Kafka's batch-size-max", "bytes"),
    final_estimate=C("double", "The estimated compression ratio at the end, of the codec sent last"),
    recoveries=C("bigint", "How often the estimate returned, after splits, to the batches' actual ratio"),
    recovery_ms_mean=C("double", "Time from a split until then, mean", "ms", nullable=True),
    recovery_ms_max=C("double", "... the longest", "ms", nullable=True),
    is_recovering=C("boolean", "The estimate had not returned by the end"),
    measured_batches=C("bigint", "Closed batches whose own records were recompressed to get their size "
                                 "(recut.sizes=exact); the others have it from the model"),
    size_error=C("double", "Mean relative error of the model's sizes of recut batches. It is that on the measured "
                           "ones, otherwise on those that splits made in the capture; null if there are neither",
                 nullable=True),
)  # fmt: skip

BATCH_SPLIT_RANGES = table(
    "batch_split_ranges", "gold",
    "The outcomes of a producer when its pace and that of its brokers are drawn anew from the capture, many times. "
    "80 % of the replications are between p10 and p90. What follows only from rules is the same each time.",
    ("run_id", "scenario", "client_id", "client_address", "topic", "metric"), "run_id",
    **_CLIENT,
    metric=C("string", "splits, split_rate, batches and bytes_resent, as in batch_split"),
    value=C("double", "At the captured pace"),
    p10=C("double", "What one in ten replications does not exceed"),
    p50=C("double", "... half of them"),
    p90=C("double", "... nine in ten"),
    is_exact=C("boolean", "p10 and p90 are the same: pace does not matter"),
    replications=C("int", "How often the lane was replayed: 20 times, down to 5 for a producer with many records"),
)  # fmt: skip

BATCH_SPLIT_TIMELINE = table(
    "batch_split_timeline", "gold",
    "The estimate against the batches' actual ratio, over each producer's batches to a topic, in spans of 32 batches.",
    ("run_id", "scenario", "client_id", "client_address", "topic", "first_batch"), "run_id",
    **_CLIENT,
    first_batch=C("bigint", "Batches closed before the span, including those made by splits"),
    batches=C("bigint", "Batches of the span"),
    splits=C("bigint", "... that were split"),
    estimated_ratio=C("double", "The estimated compression ratio before each was closed, mean"),
    observed_ratio=C("double", "The compression ratio of each, mean"),
    time=C("timestamp", "When the last of them was closed", "UTC"),
)  # fmt: skip
