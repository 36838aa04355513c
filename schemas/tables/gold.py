"""The gold tables: how well the replay agrees with the capture, and what other settings would do."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.tables import algorithms
from schemas.tables.gold_aims import AIM_TABLES
from schemas.tables.gold_columns import CLIENT_ADDRESS, MODE, OF_READER, RANGE, RUN_ID, SCENARIO
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.gold_limits import LIMIT_TABLES
from schemas.tables.gold_memory import GOLD_MEMORY
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.gold_racks import RACK_READS
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.gold_sessions import SESSION_TABLES
from schemas.tables.gold_shares import SHARE_TABLES
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_RANGES, BATCH_SPLIT_TIMELINE
from schemas.tables.gold_trends import TRENDS
from schemas.tables.table import Spec as C
from schemas.tables.table import Table, table

RUNS = table(
    "runs", "gold", "One row per replay of a finished run. It is written when all tables of the run are complete.",
    ("run_id", "algorithm"), "run_id",
    run_id=RUN_ID,
    capture_id=C("string", "The capture set, as in the silver tables"),
    cluster_id=C("string", "Id of the cluster that is replayed, if the capture set shows several", nullable=True),
    scenario_id=C("string", "SHA-256 of the resolved scenario"),
    scenario_json=C("string", "The resolved scenario as JSON. `from` and `to`, in UTC, are there if a window was "
                              "replayed: what came before the window only prepared the state"),
    assumed=C("array<string>", "Settings in force that nobody stated, so that Kafka's default was assumed; an entry "
                               "with a value after the key, as for `kafka`, names what was assumed instead"),
    algorithm=C("string", "The replay, by its name in scenarios"),
    lanes=C("array<string>", "The lanes that were replayed"),
    refused=C("map<string,string>", "For each replay that was asked for and could not be made, what the captures lack "
                                    "for it"),
    refetch_version=C("string", "Version of refetch that made the run"),
    replayed_by=C("string", "refetch's version, a digest of its code, and what decoded the capture set; `pipeline` "
                            "keeps the tables if all of these are unchanged"),
    run_at=C("timestamp", "When the run was last asked for, by the clock of the machine that ran it", "UTC"),
)  # fmt: skip

FIDELITY = table(
    "fidelity", "gold",
    "How often the replay of the settings in force gives exactly what the capture shows.",
    ("run_id", "algorithm", "metric", "broker", "client_id", "client_address", "reader"), "run_id",
    run_id=RUN_ID,
    algorithm=C("string", "The replay, as in runs"),
    metric=C("string", "What is compared; the table below this one in docs/tables.md explains the metrics"),
    broker=C("string", "The broker's node id, otherwise its address and port", nullable=True),
    client_id=C("string", "client.id of the reader or producer", nullable=True),
    client_address=C("string", "The reader's or producer's IP address, with a port as in their tables",
                     nullable=True),
    reader=C("string", "consumer, follower or producer", nullable=True),
    checked=C("bigint", "How many results, such as responses, could be checked"),
    agreed=C("bigint", "How many of the checked results agree"),
    unknown=C("bigint", "How many results could not be checked, because the capture does not show what the replay "
                        "needs"),
    reasons=C("map<string,bigint>", "How many results were unknown or disagreed, by reason; docs/reasons.md explains "
                                    "the words"),
)  # fmt: skip

FETCH_FAIRNESS = table(
    "fetch_fairness", "gold",
    "What each partition of a reader would get (KIP-74). A larger fetch.max.bytes is not always fairer, so look at "
    "every lane.",
    ("run_id", "scenario", "mode", "client_id", "client_address", "reader", "broker", "topic", "partition"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    mode=MODE,
    **OF_READER,
    broker=C("string", "The broker's node id, otherwise its address and port"),
    topic=C("string", "Topic name, or the topic id if the name is not known"),
    partition=C("int", "Partition of the topic"),
    requests=C("bigint", "Fetches that asked for the partition"),
    bytes=C("bigint", "Record bytes returned", "bytes"),
    available_bytes=C("bigint", "Record bytes that were available to read, summed over the fetches", "bytes"),
    share_of_bytes=C("double", "bytes as a share of all that the reader got"),
    share_of_available=C("double", "available_bytes as a share of all that was available to the reader"),
    empty_though_available=C("bigint", "Fetches that got nothing of the partition although records were available"),
    longest_wait_requests=C("bigint", "Most fetches in a row that got nothing of the partition although records were "
                                      "available"),
    longest_wait_ms=C("double", "Longest time from a fetch that got nothing, although records were available, to one "
                                "that got some", "ms"),
    first_batch_overrides=C("bigint", "Fetches that got a first batch larger than the limits, which comes whole"),
    cut_tail_bytes=C("bigint", "Bytes of batches that were cut at the end and have to be fetched again", "bytes"),
    unknown_requests=C("bigint", "Fetches whose result depends on something that the capture does not show; they are "
                                 "counted by what is known"),
    backlog_bytes=C("bigint", "Size of the backlog: record bytes that were there when the reader first asked for the "
                              "partition. Null in open mode", "bytes", nullable=True),
    catch_up_ms=C("double", "Time from the reader's first fetch of the partition until the backlog was read. Null in "
                            "open mode, if the backlog was never read, and if the reader gave it up",
                  "ms", nullable=True),
    is_given_up=C("boolean", "The captured reader left the backlog before it had read it, for good or to read on after "
                             "it: the partition moved, was revoked or was deleted, or the reader sought elsewhere. "
                             "Null in open mode", nullable=True),
)  # fmt: skip

FETCH_CONSUMERS = table(
    "fetch_consumers", "gold", "What each reader would get, over all its partitions and brokers (KIP-74).",
    ("run_id", "scenario", "mode", "client_id", "client_address", "reader"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    mode=MODE,
    **OF_READER,
    requests=C("bigint", "Fetches of the reader"),
    partitions=C("bigint", "Partitions that the reader fetches, each counted once"),
    brokers=C("bigint", "Brokers from which the reader fetches"),
    fetchers=C("bigint", "Fetcher threads of a follower; each has a connection and a fetch session of its own to one "
                         "leader. As captured there is one per broker. In a lane with num.replica.fetchers, the "
                         "threads that have most of their partitions from this reader. Null in such a lane if the "
                         "follower could not be replayed with other threads (`fetcher_of_partition` of `fidelity`), "
                         "for a consumer, and in open mode", nullable=True),
    bytes=C("bigint", "Record bytes returned", "bytes"),
    jain_index=C("double", "Jain's fairness index of bytes / available_bytes, over the partitions that had records "
                           "available; 1 is fair", nullable=True),
    response_bytes_p50=C("bigint", "Record bytes of a response that has records: median, within 1 %",
                         "bytes", nullable=True),
    response_bytes_p95=C("bigint", "Record bytes of a response that has records: 95th percentile, within 1 %",
                         "bytes", nullable=True),
    response_bytes_p99=C("bigint", "Record bytes of a response that has records: 99th percentile, within 1 %",
                         "bytes", nullable=True),
    response_bytes_max=C("bigint", "Record bytes of the largest response, exact: Kafka's fetch-size-max",
                         "bytes", nullable=True),
    memory_bound_bytes=C("bigint", "KIP-74's bound on memory: min(brokers x fetch.max.bytes, partitions x "
                                   "max.partition.fetch.bytes)", "bytes"),
    empty_though_available=C("bigint", "Reads of a partition in a fetch that gave nothing although records were "
                                       "available"),
    first_batch_overrides=C("bigint", "Fetches that got a first batch larger than the limits, which comes whole"),
    cut_tail_bytes=C("bigint", "Bytes of batches that were cut at the end and have to be fetched again", "bytes"),
    unknown_requests=C("bigint", "Fetches whose result depends on something that the capture does not show"),
    catch_up_ms=C("double", "catch_up_ms of the slowest partition, of those that the reader did not give up. Null in "
                            "open mode, and if a backlog was never read", "ms", nullable=True),
    given_up=C("bigint", "Partitions whose backlog the captured reader left before it had read it, counted at each "
                         "broker; 0 in open mode"),
    left_out=C("bigint", "Captured fetches after the first 1,048,576 of their connection. The closed loop does not "
                         "follow them, and `fidelity` does not compare them; 0 in open mode"),
    user=C("string", "Name of the user as whom brokers know the reader, if a lane has a quota of users. Null if none "
                     "has, and if the capture does not show the user or shows several",
           nullable=True, names="principal"),
    throttle_time_ms=C("bigint", "How long the lane's consumer_byte_rate holds the reader back: the sum of "
                                 "throttle_time_ms of its responses from all brokers. 0 in a lane without that quota, "
                                 "null in open mode", nullable=True),
    read_all=C("boolean", "The reader reads everything that the capture shows. False if the closed loop was stopped "
                          "because too many fetches returned nothing; null in open mode", nullable=True),
)  # fmt: skip

FETCH_RANGES = table(
    "fetch_ranges", "gold",
    "Ranges of a reader's results in closed loop: each lane is replayed several times, each time with the pace of the "
    "reader and its brokers, the times at which it starts and those at which records are produced drawn anew from the "
    "capture. 80 % of the results lie between p10 and p90. What follows from rules alone is the same each time.",
    ("run_id", "scenario", "client_id", "client_address", "reader", "metric"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    **OF_READER,
    metric=C("string", "catch_up_ms and requests, as in fetch_consumers; longest_wait_ms, of the partition that waits "
                       "longest; held_bytes, which is bytes_max of fetch_memory; end_lag_bytes, which is not yet read "
                       "when the capture ends; throttle_time_ms, as in fetch_consumers, in lanes with "
                       "consumer_byte_rate"),
    value=C("double", "Result at the captured pace; null for a backlog that is never read", nullable=True),
    p10=C("double", "One in ten replications does not exceed this; null for a backlog that is never read",
          nullable=True),
    p50=C("double", "Half of the replications do not exceed this; null for a backlog that is never read",
          nullable=True),
    p90=C("double", "Nine in ten replications do not exceed this; null for a backlog that is never read",
          nullable=True),
    is_exact=C("boolean", "p10 and p90 are the same, so pace does not matter"),
    replications=C("int", "How often the lane was replayed: 20 times, fewer (down to 5) for a reader with many "
                          "fetches, and 5 in a lane in which the reader waits for nothing"),
)  # fmt: skip

FETCH_TIMELINE = table(
    "fetch_timeline", "gold",
    "What a reader in closed loop would get of a partition over time (KIP-74). A partition with nothing to read has no "
    "rows.",
    ("run_id", "scenario", "client_id", "client_address", "reader", "broker", "topic", "partition", "bucket"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    **OF_READER,
    broker=C("string", "The broker's node id, otherwise its address and port"),
    topic=C("string", "Topic name, or the topic id if the name is not known"),
    partition=C("int", "Partition of the topic"),
    bucket=C("int", "Number of the time bucket, from 0. Long times during which the reader is not there are left out"),
    bucket_start=C("timestamp", "When the bucket begins; the first begins with the reader's first fetch", "UTC"),
    bucket_ms=C("double", "How much of the reader's time the bucket covers; the same in all lanes of a reader", "ms"),
    bytes=C("bigint", "Record bytes returned in the bucket", "bytes"),
    lag_bytes=C("bigint", "Record bytes available to read at the end of the bucket", "bytes"),
    wait_ms=C("double", "Longest wait so far of the fetches in the bucket that got nothing although records were "
                        "available", "ms"),
)  # fmt: skip

FETCH_MEMORY = table(
    "fetch_memory", "gold",
    "How many record bytes a reader in closed loop would hold (received, and not yet taken by the application), "
    "compared with KIP-74's bound.",
    ("run_id", "scenario", "client_id", "client_address", "reader"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    **OF_READER,
    tick_ms=C("double", "Length of the intervals into which time is cut; the value of an interval is the most that is "
                        "held at once in it", "ms"),
    held_bytes=C("array<bigint>", "The most that is held at once in each bucket of fetch_timeline, in the order of "
                                  "buckets", "bytes"),
    bytes_p50=C("bigint", "Bytes that are not exceeded in half of the intervals in which records are held", "bytes"),
    bytes_p95=C("bigint", "Bytes that are not exceeded in 95 % of the intervals in which records are held", "bytes"),
    bytes_p99=C("bigint", "Bytes that are not exceeded in 99 % of the intervals in which records are held", "bytes"),
    bytes_max=C("bigint", "Most bytes held at once", "bytes"),
    memory_bound_bytes=C("bigint", "KIP-74's bound, as in fetch_consumers", "bytes"),
    share_above_bound=C("double", "Share of the intervals in which more than the bound is held, which is possible "
                                  "because first batches come whole"),
)  # fmt: skip

_OF_PRODUCER = {
    "run_id": RUN_ID,
    "scenario": SCENARIO,
    "client_id": C("string", "client.id of the producer; empty for none"),
    "client_address": CLIENT_ADDRESS,
    "broker": C("string", "The broker's node id, otherwise its address and port"),
}
PRODUCER_THROTTLES = table(
    "producer_throttles", "gold",
    "How a quota of bytes slows down a producer at a broker (KIP-13). No rows if no lane has such a quota.",
    ("run_id", "scenario", "client_id", "client_address", "broker"), "run_id",
    **_OF_PRODUCER,
    user=C("string", "Name of the user as whom brokers know the producer, as in fetch_consumers",
           nullable=True, names="principal"),
    byte_rate=C("bigint", "The producer_byte_rate that applies to the producer, alone or shared with others; null for "
                          "none", "bytes/s", nullable=True),
    requests=C("bigint", "Produce requests"),
    bytes=C("bigint", "Bytes of the Produce requests, as the quota counts them", "bytes"),
    throttled_requests=C("bigint", "Produce requests that are throttled"),
    throttle_time_ms=C("bigint", "Sum of the throttle times of the Produce requests", "ms"),
    throttle_time_max_ms=C("bigint", "Longest throttle time of a Produce request", "ms"),
    sending_ms=C("double", "Time from the first request until the last one is answered", "ms"),
    captured_sending_ms=C("double", "Time from the first request until the last one was answered, in the capture",
                          "ms"),
    behind_ms_max=C("double", "The most by which a request is answered later than in the capture", "ms"),
    blocked_ms=C("double", "How long the application waits for buffer.memory, for all brokers together", "ms"),
    expired_requests=C("bigint", "Requests that are answered more than 120 s (delivery.timeout.ms) after their last "
                                 "record was made: the client would have given them up"),
    captured_throttled_requests=C("bigint", "Throttled requests in the capture"),
    captured_throttle_time_ms=C("bigint", "Sum of the throttle times in the capture", "ms"),
    captured_throttle_time_max_ms=C("bigint", "Longest throttle time in the capture", "ms"),
    replayed_throttle_time_ms=C("bigint", "Sum of the throttle times that the captured lane's quota gives for captured "
                                          "requests at captured times; it should equal captured_throttle_time_ms",
                                "ms"),
    shown_byte_rate=C("bigint", "The quota that captured throttle times above 1 s show, as a median; null if there are "
                                "none", "bytes/s", nullable=True),
)  # fmt: skip

PRODUCER_THROTTLE_RANGES = table(
    "producer_throttle_ranges", "gold",
    "Ranges of a producer's results at a broker under quotas: each lane is replayed several times, each time with the "
    "pace of the application, the client and the broker drawn anew from the capture. 80 % of the results lie between "
    "p10 and p90. What follows from rules alone is the same each time. No rows if no lane has a quota of producers.",
    ("run_id", "scenario", "client_id", "client_address", "broker", "metric"), "run_id",
    **_OF_PRODUCER,
    metric=C("string", "throttled_requests, throttle_time_ms, throttle_time_max_ms, sending_ms, behind_ms_max, "
                       "blocked_ms and expired_requests, as in producer_throttles"),
    **RANGE,
    replications=C("int", "How often the lane was replayed: 20 times, fewer (down to 5) for producers with many "
                          "requests, and 5 in a lane in which nobody is throttled"),
)  # fmt: skip

TABLES_OF_REPLAY: Mapping[str, tuple[Table, ...]] = {
    algorithms.FETCH_MAX_BYTES: (
        FETCH_FAIRNESS,
        FETCH_CONSUMERS,
        FETCH_RANGES,
        FETCH_TIMELINE,
        FETCH_MEMORY,
        PRODUCER_THROTTLES,
        PRODUCER_THROTTLE_RANGES,
        RACK_READS,
    ),
    algorithms.CONSUMER_MEMORY: GOLD_MEMORY,
    algorithms.SESSION_CACHE: (*SESSION_TABLES, *SHARE_TABLES),
    algorithms.BATCH_SPLIT: (BATCH_SPLIT, BATCH_SPLIT_RANGES, BATCH_SPLIT_TIMELINE),
    algorithms.PARTITION_LIMITS: LIMIT_TABLES,
}
"""The tables that only one replay writes, by the replay's name. All replays write `fidelity`."""
GOLD = (
    RECOMMENDATIONS, *AIM_TABLES, FIDELITY, *(table for tables in TABLES_OF_REPLAY.values() for table in tables), RUNS,
    GATE_RESULTS, PREDICTIONS_CHECKED, TRENDS,
)  # fmt: skip
