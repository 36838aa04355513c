"""Every reason about batches and splits of producers that the table `fidelity` gives."""

from __future__ import annotations

from schemas.tables.reason import NOT_SHOWN, SEVERAL_PROCESSES, WHOLE, FidelityReason, FidelityReasons

STATE_PRODUCER = (
    "State what was in force and is not Kafka's default: `--captured` with `batch.size`, `linger.ms`, "
    "`max.message.bytes`. If that was done, trust this producer's lanes as a direction only."
)

SPLITS = FidelityReasons(
    "Batches and splits of producers",
    "batch_split",
    (),
    {
        "not_a_java_client": FidelityReason(
            "The producer is not a Java client; KIP-126's estimate and splits are the Java client's.",
            "Nothing.",
            "unknown",
        ),
        "several_processes": SEVERAL_PROCESSES,
        "records_unknown": FidelityReason(
            "The batch, or one before it, could not be read: `record_batches.records_fault` says why.",
            WHOLE,
            "unknown",
        ),
        "producer_began_before": FidelityReason(
            "The producer had sent before the capture began: its estimate is known only after its first split.",
            "Restart the producer while the capture runs.",
            "unknown",
        ),
        "close_append_order": FidelityReason(
            "Batches are closed while other records are appended, in an order that is not known. One of the possible "
            "orders gives what was captured.",
            NOT_SHOWN,
            "unknown",
        ),
        "near_limit": FidelityReason(
            "The size of the batch differs from `max.message.bytes` by no more than a record, so the result depends on "
            "which records the batch has.",
            "Nothing, unless you choose a `batch.size` farther from `max.message.bytes`.",
            "unknown",
        ),
        "recompressed": FidelityReason(
            "The broker compresses the topic's batches again and then checks `max.message.bytes` once more. The "
            "capture does not show how large the batch was by then.",
            "Nothing: take the splits in the lanes of such a topic as an estimate. With `compression.type=producer`, "
            "or if producers use the topic's codec, brokers store batches as they are.",
            "unknown",
        ),
        "fewer_records": FidelityReason(
            "The captured batch took no more records although, according to the replay, it had room.",
            STATE_PRODUCER,
            "different",
        ),
        "more_records": FidelityReason(
            "The captured batch took records for which, according to the replay, it had no room.",
            STATE_PRODUCER,
            "different",
        ),
        "split_not_captured": FidelityReason(
            "The batch is larger than `max.message.bytes` and was not refused. For a whole producer: the replay splits "
            "more often than the capture shows.",
            STATE_PRODUCER,
            "different",
        ),
        "split_not_replayed": FidelityReason(
            "The batch was refused as too large and is not larger than `max.message.bytes`. For a whole producer: "
            "the replay splits less often than the capture shows.",
            f"{STATE_PRODUCER} If the limit of a topic changed during the capture, replay the time before or after "
            "that, with `--to` or `--from`.",
            "different",
        ),
        "bytes_beyond_error": FidelityReason(
            "The size that the replay gives for a batch is wrong by more than the metric allows.",
            "Let sizes be measured more exactly: `--captured=recompress=all`, or `--captured=recut.sizes=exact` with "
            "it. State the producer's level of compression if it is not Kafka's default: "
            "`--captured=compression.zstd.level=...`.",
            "different",
        ),
    },
)
