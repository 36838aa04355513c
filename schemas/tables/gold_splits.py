"""The gold tables of KIP-126: what producers would split, and how their estimate follows the batches' ratios."""

from __future__ import annotations

from schemas.tables.gold_columns import CLIENT_ADDRESS, RANGE, RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

_CLIENT = {
    "run_id": RUN_ID,
    "scenario": SCENARIO,
    "client_id": C(
        "string", "client.id of the producer; empty for none, and if all producers at an address count as one process"
    ),
    "client_address": CLIENT_ADDRESS,
    "topic": C("string", "Topic name, or the topic id if the name is not known"),
}

BATCH_SPLIT = table(
    "batch_split", "gold",
    "What each producer would send to a topic, and how much of it would be split (KIP-126). The captured lane is "
    "replayed, too; `fidelity` says how well it agrees with the capture.",
    ("run_id", "scenario", "client_id", "client_address", "topic"), "run_id",
    **_CLIENT,
    batch_size=C("bigint", "The producer's batch.size in the lane", "bytes"),
    is_batch_size_told=C("boolean", "Nobody stated batch.size; it is inferred from the captured batches"),
    max_message_bytes=C("bigint", "Largest batch that brokers accept for the topic in the lane", "bytes"),
    is_limit_told=C("boolean", "Nobody stated max.message.bytes; brokers' responses show that it is not Kafka's "
                               "default"),
    stored_codec=C("string", "Codec into which brokers compress the topic's batches again (compression.type), after "
                             "which they check max.message.bytes a second time. Null if brokers keep the producer's "
                             "codec, as far as fetched batches show", nullable=True),
    records=C("bigint", "Records that the producer sends to the topic"),
    batches=C("bigint", "Batches sent for the first time"),
    over_limit=C("bigint", "Batches sent for the first time that are larger than max.message.bytes, as sent or as "
                           "stored"),
    over_limit_share=C("double", "over_limit / batches: how likely a batch is to be too large", nullable=True),
    splits=C("bigint", "Batches that are split, including parts that are split again: Kafka's batch-split-total"),
    split_rate=C("double", "splits / batches. It is not Kafka's batch-split-rate, for which see batch_split_rate",
                 nullable=True),
    batch_split_rate=C("double", "splits per second of the time from the producer's first request to its last, within "
                                 "the window; null if that time is 0. Kafka's batch-split-rate is that of the last "
                                 "minute", "1/s", nullable=True),
    split_batches=C("bigint", "Batches that splits make"),
    failed_batches=C("bigint", "Batches that are too large and are not, or cannot be, split; the client fails their "
                               "records"),
    bytes_sent=C("bigint", "Bytes of all batches sent, whether for the first time, again, or after a split", "bytes"),
    bytes_resent=C("bigint", "The part of bytes_sent that is of batches made by splits", "bytes"),
    fill=C("double", "Mean size of batches sent for the first time, relative to batch.size", nullable=True),
    compression_ratio=C("double", "Compressed bytes without headers, relative to uncompressed bytes: Kafka's "
                                  "compression-rate-avg", nullable=True),
    batch_bytes_max=C("bigint", "Size of the largest batch: Kafka's batch-size-max", "bytes"),
    final_estimate=C("double", "The producer's estimate of the compression ratio at the end, for the codec that it "
                               "sent last"),
    recoveries=C("bigint", "How often the estimate returned to the batches' actual ratio after splits"),
    recovery_ms_mean=C("double", "Time from a split until the estimate returned: mean", "ms", nullable=True),
    recovery_ms_max=C("double", "Time from a split until the estimate returned: longest", "ms", nullable=True),
    is_recovering=C("boolean", "The estimate had not yet returned at the end"),
    measured_batches=C("bigint", "Batches whose size was measured by compressing their own records again "
                                 "(recut.sizes=exact); the sizes of the others are estimated"),
    size_error=C("double", "Mean relative error of the estimated sizes of batches that end at other records than in "
                           "the capture: on the measured batches, otherwise on batches that splits made in the "
                           "capture. Null if there are neither", nullable=True),
)  # fmt: skip

BATCH_SPLIT_RANGES = table(
    "batch_split_ranges", "gold",
    "Ranges of a producer's results: each lane is replayed several times, each time with the pace of the producer and "
    "its brokers drawn anew from the capture. 80 % of the results lie between p10 and p90. What follows from rules "
    "alone is the same each time.",
    ("run_id", "scenario", "client_id", "client_address", "topic", "metric"), "run_id",
    **_CLIENT,
    metric=C("string", "splits, split_rate, batches and bytes_resent, as in batch_split"),
    **RANGE,
    replications=C("int", "How often the lane was replayed: 20 times, fewer (down to 5) for a producer with many "
                          "records"),
)  # fmt: skip

BATCH_SPLIT_TIMELINE = table(
    "batch_split_timeline", "gold",
    "How a producer's estimate of the compression ratio follows the actual ratio of its batches to a topic: one row "
    "per 32 batches.",
    ("run_id", "scenario", "client_id", "client_address", "topic", "first_batch"), "run_id",
    **_CLIENT,
    first_batch=C("bigint", "How many batches the producer had closed before those of the row, including batches made "
                            "by splits"),
    batches=C("bigint", "Number of batches in the row"),
    splits=C("bigint", "Batches of the row that were split"),
    estimated_ratio=C("double", "Mean of the estimated compression ratios just before each batch of the row was closed",
                      ),
    observed_ratio=C("double", "Mean of the actual compression ratios of the batches of the row"),
    time=C("timestamp", "When the last batch of the row was closed", "UTC"),
)  # fmt: skip
