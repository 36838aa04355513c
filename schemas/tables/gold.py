"""The gold tables: how well the replay agrees with the capture, and what other settings would do."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_TIMELINE
from schemas.tables.table import Spec as C
from schemas.tables.table import table

MODE = C("string", "open: each captured request is answered under the lane's settings")
CLIENT_ID = C("string", "client.id of the reader; empty for none")
CLIENT_ADDRESS = C("string", "The reader's IP address")
READER = C("string", "consumer or follower")

RUNS = table(
    "runs", "gold", "One row an algorithm of a finished run; written when all its tables are complete.",
    ("run_id", "algorithm"), "run_id",
    run_id=RUN_ID,
    capture_id=C("string", "The capture set, as in the silver tables"),
    scenario_id=C("string", "SHA-256 of the resolved scenario"),
    scenario_json=C("string", "The resolved scenario"),
    assumed=C("array<string>", "Captured settings that nobody stated: Kafka's default was taken"),
    algorithm=C("string", "What was replayed, as scenarios have it"),
    lanes=C("array<string>", "The lanes replayed"),
    refetch_version=C("string", "Version of refetch"),
    run_at=C("timestamp", "The run's clock", "UTC"),
)  # fmt: skip

FIDELITY = table(
    "fidelity", "gold",
    "How often the replay of the captured settings gives what the capture shows.",
    ("run_id", "algorithm", "metric", "broker", "client_id", "client_address", "reader"), "run_id",
    run_id=RUN_ID,
    algorithm=C("string", "As in runs"),
    metric=C("string", "fetch_max_bytes has fetches_with_records and empty_fetches: record bytes of every partition of "
                       "a response are equal; batch_split has batches, splits, splits_replayed and recut_bytes: see "
                       "udfs.replay.split_verdicts"),
    broker=C("string", "The broker's node id, else its address and port", nullable=True),
    client_id=C("string", "client.id of the reader or producer", nullable=True),
    client_address=C("string", "The reader's or producer's IP address", nullable=True),
    reader=C("string", "consumer, follower or producer", nullable=True),
    checked=C("bigint", "What could be checked, such as responses"),
    agreed=C("bigint", "... that agree"),
    unknown=C("bigint", "What could not be checked: the capture does not tell what the replay needs"),
    reasons=C("map<string,bigint>", "Count by reason of what was unknown or disagreed: see udfs.replay.fidelity and "
                                    "split_fidelity"),
)  # fmt: skip

FETCH_FAIRNESS = table(
    "fetch_fairness", "gold", "What each partition of a reader would get (KIP-74).",
    ("run_id", "scenario", "mode", "client_id", "client_address", "reader", "broker", "topic", "partition"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    mode=MODE,
    client_id=CLIENT_ID,
    client_address=CLIENT_ADDRESS,
    reader=READER,
    broker=C("string", "The broker's node id, else its address and port"),
    topic=C("string", "Topic name, or its id where the name is not known"),
    partition=C("int", "Partition of the topic"),
    requests=C("bigint", "Fetches that wanted the partition"),
    bytes=C("bigint", "Record bytes returned", "bytes"),
    available_bytes=C("bigint", "Record bytes there were to be read, summed over the fetches", "bytes"),
    share_of_bytes=C("double", "bytes, of all the reader got"),
    share_of_available=C("double", "available_bytes, of all there was for the reader"),
    empty_though_available=C("bigint", "Fetches that got nothing though there was something"),
    longest_wait_requests=C("bigint", "Most fetches in a row that got nothing though there was something"),
    longest_wait_ms=C("double", "Longest time from a fetch that got nothing though there was something to one that "
                                "got some", "ms"),
    first_batch_overrides=C("bigint", "Fetches that got a first batch larger than the limits allow"),
    cut_tail_bytes=C("bigint", "Bytes of batches cut at the end, which have to be fetched again", "bytes"),
    unknown_requests=C("bigint", "Fetches whose answer depends on what the capture does not show; counted with what "
                                 "is known"),
)  # fmt: skip

FETCH_CONSUMERS = table(
    "fetch_consumers", "gold", "What each reader would get, over all its partitions and brokers (KIP-74).",
    ("run_id", "scenario", "mode", "client_id", "client_address", "reader"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    mode=MODE,
    client_id=CLIENT_ID,
    client_address=CLIENT_ADDRESS,
    reader=READER,
    requests=C("bigint", "Fetches"),
    partitions=C("bigint", "Partitions fetched from"),
    brokers=C("bigint", "Brokers fetched from"),
    bytes=C("bigint", "Record bytes returned", "bytes"),
    jain_index=C("double", "Jain's fairness index of bytes / available_bytes over the partitions that had any; 1 is "
                           "fair",
                 nullable=True),
    response_bytes_p50=C("bigint", "Record bytes of a response with records, median, within 1 %",
                         "bytes", nullable=True),
    response_bytes_p95=C("bigint", "... 95th percentile", "bytes", nullable=True),
    response_bytes_p99=C("bigint", "... 99th percentile", "bytes", nullable=True),
    response_bytes_max=C("bigint", "... the largest, exact", "bytes", nullable=True),
    memory_bound_bytes=C("bigint", "KIP-74's bound: min(brokers x fetch.max.bytes, partitions x "
                                   "max.partition.fetch.bytes)", "bytes"),
    empty_though_available=C("bigint", "Partition reads that gave nothing though there was something"),
    first_batch_overrides=C("bigint", "Fetches with a first batch larger than the limits allow"),
    cut_tail_bytes=C("bigint", "Bytes of batches cut at the end, which have to be fetched again", "bytes"),
    unknown_requests=C("bigint", "Fetches whose answer depends on what the capture does not show"),
)  # fmt: skip

GOLD = (FIDELITY, FETCH_FAIRNESS, FETCH_CONSUMERS, BATCH_SPLIT, BATCH_SPLIT_TIMELINE, RUNS)
