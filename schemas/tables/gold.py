"""The gold tables: how well the replay agrees with the capture, and what other settings would do."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.tables import algorithms
from schemas.tables.gold_aims import AIM_TABLES
from schemas.tables.gold_columns import MODE, OF_READER, RUN_ID, SCENARIO
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
    "runs", "gold", "One row per algorithm of a finished run; written when all its tables are complete.",
    ("run_id", "algorithm"), "run_id",
    run_id=RUN_ID,
    capture_id=C("string", "The capture set, as in the silver tables"),
    cluster_id=C("string", "The cluster that is replayed, if the capture set shows several", nullable=True),
    scenario_id=C("string", "SHA-256 of the resolved scenario"),
    scenario_json=C("string", "The resolved scenario; with `from` and `to`, in UTC, where a window was replayed: what "
                              "came before it only warmed up the state"),
    assumed=C("array<string>", "Captured settings that nobody stated: Kafka's default was taken, or what follows the "
                               "key, as for `kafka`"),
    algorithm=C("string", "What was replayed, as scenarios have it"),
    lanes=C("array<string>", "The lanes replayed"),
    refused=C("map<string,string>", "For algorithms that were asked for and not replayed, what the captures lack"),
    refetch_version=C("string", "Version of refetch"),
    replayed_by=C("string", "refetch's version, a digest of its code, and what decoded the capture set: `pipeline` "
                            "keeps tables of the same"),
    run_at=C("timestamp", "The run's clock, when it was last asked for", "UTC"),
)  # fmt: skip

FIDELITY = table(
    "fidelity", "gold",
    "How often the replay of the captured settings equals the capture.",
    ("run_id", "algorithm", "metric", "broker", "client_id", "client_address", "reader"), "run_id",
    run_id=RUN_ID,
    algorithm=C("string", "As in runs"),
    metric=C("string", "What is compared: see below"),
    broker=C("string", "The broker's node id, otherwise its address and port", nullable=True),
    client_id=C("string", "client.id of the reader or producer", nullable=True),
    client_address=C("string", "The reader's or producer's IP address", nullable=True),
    reader=C("string", "consumer, follower or producer", nullable=True),
    checked=C("bigint", "What could be checked, such as responses"),
    agreed=C("bigint", "... that agree"),
    unknown=C("bigint", "What could not be checked: the capture does not show what the replay needs"),
    reasons=C("map<string,bigint>", "Count of what was unknown or disagreed, by reason: docs/reasons.md explains the "
                                    "words"),
)  # fmt: skip

FETCH_FAIRNESS = table(
    "fetch_fairness", "gold",
    "What each partition of a reader would get (KIP-74). Fairness is not monotone in fetch.max.bytes: see every lane.",
    ("run_id", "scenario", "mode", "client_id", "client_address", "reader", "broker", "topic", "partition"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    mode=MODE,
    **OF_READER,
    broker=C("string", "The broker's node id, otherwise its address and port"),
    topic=C("string", "Topic name, or its id where the name is not known"),
    partition=C("int", "Partition of the topic"),
    requests=C("bigint", "Fetches that wanted the partition"),
    bytes=C("bigint", "Record bytes returned", "bytes"),
    available_bytes=C("bigint", "Record bytes available to read, summed over the fetches", "bytes"),
    share_of_bytes=C("double", "bytes as a share of all the reader got"),
    share_of_available=C("double", "available_bytes as a share of all there was for the reader"),
    empty_though_available=C("bigint", "Fetches that got nothing though there was something"),
    longest_wait_requests=C("bigint", "Most fetches in a row that got nothing though there was something"),
    longest_wait_ms=C("double", "Longest time from a fetch that got nothing though there was something to one that "
                                "got some", "ms"),
    first_batch_overrides=C("bigint", "Fetches that got a first batch larger than the limits allow"),
    cut_tail_bytes=C("bigint", "Bytes of batches cut at the end, which have to be fetched again", "bytes"),
    unknown_requests=C("bigint", "Fetches whose result depends on what the capture does not show; counted with what "
                                 "is known"),
    backlog_bytes=C("bigint", "Record bytes that were there when the partition was first asked for; null in open mode",
                    "bytes", nullable=True),
    catch_up_ms=C("double", "Time from then until the backlog was read; null in open mode, if it never was, and if "
                            "the reader gave it up",
                  "ms", nullable=True),
    is_given_up=C("boolean", "The captured reader left the backlog before it was read, for good or to continue after "
                             "it. The partition moved, was revoked or deleted, or the reader sought elsewhere; null "
                             "in open mode",
                  nullable=True),
)  # fmt: skip

FETCH_CONSUMERS = table(
    "fetch_consumers", "gold", "What each reader would get, over all its partitions and brokers (KIP-74).",
    ("run_id", "scenario", "mode", "client_id", "client_address", "reader"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    mode=MODE,
    **OF_READER,
    requests=C("bigint", "Fetches"),
    partitions=C("bigint", "Partitions fetched from, each once"),
    brokers=C("bigint", "Brokers fetched from"),
    fetchers=C("bigint", "Fetcher threads of a follower, each with a connection and a fetch session of its own at one "
                         "leader: as captured one a broker, and in a lane with num.replica.fetchers those that have "
                         "most of their partitions from this one. Null in such a lane if it could not be followed "
                         "(`fetcher_of_partition` of `fidelity`), of a consumer, and in open mode", nullable=True),
    bytes=C("bigint", "Record bytes returned", "bytes"),
    jain_index=C("double", "Jain's fairness index of bytes / available_bytes over the partitions that had any; 1 is "
                           "fair",
                 nullable=True),
    response_bytes_p50=C("bigint", "Record bytes of a response with records, median, within 1 %",
                         "bytes", nullable=True),
    response_bytes_p95=C("bigint", "... 95th percentile", "bytes", nullable=True),
    response_bytes_p99=C("bigint", "... 99th percentile", "bytes", nullable=True),
    response_bytes_max=C("bigint", "... the largest, exact: Kafka's fetch-size-max", "bytes", nullable=True),
    memory_bound_bytes=C("bigint", "KIP-74's bound: min(brokers x fetch.max.bytes, partitions x "
                                   "max.partition.fetch.bytes)", "bytes"),
    empty_though_available=C("bigint", "Partition reads that gave nothing though there was something"),
    first_batch_overrides=C("bigint", "Fetches with a first batch larger than the limits allow"),
    cut_tail_bytes=C("bigint", "Bytes of batches cut at the end, which have to be fetched again", "bytes"),
    unknown_requests=C("bigint", "Fetches whose result depends on what the capture does not show"),
    catch_up_ms=C("double", "The slowest partition's, of those that the reader did not give up; null in open mode, "
                            "and if a backlog was never read", "ms", nullable=True),
    given_up=C("bigint", "Partitions whose backlog the captured reader left before it was read, at each broker; 0 "
                         "in open mode"),
    left_out=C("bigint", "Captured fetches beyond the first 1,048,576 of their connections: the closed loop follows, "
                         "and `fidelity` compares, those before; 0 in open mode"),
    user=C("string", "Name of the user that the reader is to brokers, if a lane has a quota of users; null if none "
                     "has, and if the capture does not show it or shows several", nullable=True,
           names="principal"),
    throttle_time_ms=C("bigint", "For how long the lane's consumer_byte_rate holds the reader back: the sum of "
                                 "throttle_time_ms of its responses from all brokers. It is 0 in a lane without that "
                                 "quota, null in open mode", nullable=True),
    read_all=C("boolean", "Everything that the capture shows was read; false if the closed loop was cut off because "
                          "too many fetches returned nothing; null in open mode", nullable=True),
)  # fmt: skip

FETCH_RANGES = table(
    "fetch_ranges", "gold",
    "The outcomes of a reader in closed loop when its pace and that of its brokers are drawn anew from the capture, "
    "many times, and with them when the reader starts and when records are produced. 80 % of the replications are "
    "between p10 and p90. What follows only from rules is the same each time.",
    ("run_id", "scenario", "client_id", "client_address", "reader", "metric"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    **OF_READER,
    metric=C("string", "catch_up_ms and requests: as in fetch_consumers. longest_wait_ms: of the partition that "
                       "waits longest. held_bytes: bytes_max of fetch_memory. end_lag_bytes: not yet read when the "
                       "capture ends. throttle_time_ms: as in fetch_consumers, if a lane has consumer_byte_rate"),
    value=C("double", "At the captured pace; null for a backlog that is not read", nullable=True),
    p10=C("double", "What one in ten replications does not exceed; null for a backlog that is not read", nullable=True),
    p50=C("double", "... half of them", nullable=True),
    p90=C("double", "... nine in ten", nullable=True),
    is_exact=C("boolean", "p10 and p90 are the same: pace does not matter"),
    replications=C("int", "How often the lane was replayed: 20 times, down to 5 for a reader with many fetches. It "
                          "is 5 in a lane in which nothing makes the reader wait"),
)  # fmt: skip

FETCH_TIMELINE = table(
    "fetch_timeline", "gold",
    "What a reader in closed loop would get from a partition over time (KIP-74); no row if there is nothing to read.",
    ("run_id", "scenario", "client_id", "client_address", "reader", "broker", "topic", "partition", "bucket"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    **OF_READER,
    broker=C("string", "The broker's node id, otherwise its address and port"),
    topic=C("string", "Topic name, or its id where the name is not known"),
    partition=C("int", "Partition of the topic"),
    bucket=C("int", "The time bucket, from 0; the long times in which the reader is not there are left out"),
    bucket_start=C("timestamp", "When it begins: the first at the reader's first fetch", "UTC"),
    bucket_ms=C("double", "How much of the reader's time it holds: the same for all lanes of a reader", "ms"),
    bytes=C("bigint", "Record bytes returned in it", "bytes"),
    lag_bytes=C("bigint", "Record bytes available to read at its end", "bytes"),
    wait_ms=C("double", "Longest wait so far of fetches in it that got nothing though there was something", "ms"),
)  # fmt: skip

FETCH_MEMORY = table(
    "fetch_memory", "gold",
    "How many record bytes a reader in closed loop would hold, received and not yet taken, against KIP-74's bound.",
    ("run_id", "scenario", "client_id", "client_address", "reader"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    **OF_READER,
    tick_ms=C("double", "Time is cut into pieces of this length; the most that is held at once in a piece is its value",
              "ms"),
    held_bytes=C("array<bigint>", "The most that is held at once in each bucket of fetch_timeline, from the first on",
                 "bytes"),
    bytes_p50=C("bigint", "What is not exceeded in half the pieces in which records are held", "bytes"),
    bytes_p95=C("bigint", "... in 95 %", "bytes"),
    bytes_p99=C("bigint", "... in 99 %", "bytes"),
    bytes_max=C("bigint", "... in all", "bytes"),
    memory_bound_bytes=C("bigint", "KIP-74's bound, as in fetch_consumers", "bytes"),
    share_above_bound=C("double", "Share of the pieces that exceed the bound, as first batches come whole"),
)  # fmt: skip

PRODUCER_THROTTLES = table(
    "producer_throttles", "gold",
    "What a quota of bytes makes of a producer at a broker (KIP-13). No rows where no lane has such a quota.",
    ("run_id", "scenario", "client_id", "client_address", "broker"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    client_id=C("string", "client.id of the producer; empty for none"),
    client_address=C("string", "The producer's IP address"),
    broker=C("string", "The broker's node id, otherwise its address and port"),
    user=C("string", "As in fetch_consumers", nullable=True, names="principal"),
    byte_rate=C("bigint", "The producer_byte_rate of whom the producer shares it with; null for none", "bytes/s",
                nullable=True),
    requests=C("bigint", "Produce requests"),
    bytes=C("bigint", "Bytes of these requests, as the quota counts them", "bytes"),
    throttled_requests=C("bigint", "... that are throttled"),
    throttle_time_ms=C("bigint", "Throttle time of all of them", "ms"),
    throttle_time_max_ms=C("bigint", "... of the one that is throttled for longest", "ms"),
    sending_ms=C("double", "From the first request until the last one is answered", "ms"),
    captured_sending_ms=C("double", "... in the capture", "ms"),
    behind_ms_max=C("double", "The most that a request is answered later than in the capture", "ms"),
    blocked_ms=C("double", "How long the application waits for buffer.memory, at whichever broker the batches wait",
                 "ms"),
    expired_requests=C("bigint", "Requests that are answered later than delivery.timeout.ms, 120 s, after their last "
                                 "record was made: the client would have given them up"),
    captured_throttled_requests=C("bigint", "Throttled requests in the capture"),
    captured_throttle_time_ms=C("bigint", "Throttle time of all of them", "ms"),
    captured_throttle_time_max_ms=C("bigint", "... of the one that is throttled for longest", "ms"),
    replayed_throttle_time_ms=C("bigint", "Throttle time of captured requests at captured times, by the captured "
                                          "lane's quota: what captured_throttle_time_ms is to be", "ms"),
    shown_byte_rate=C("bigint", "The quota that captured throttle times above 1 s show, the median; null for none",
                      "bytes/s", nullable=True),
)  # fmt: skip

TABLES_OF_REPLAY: Mapping[str, tuple[Table, ...]] = {
    algorithms.FETCH_MAX_BYTES: (
        FETCH_FAIRNESS,
        FETCH_CONSUMERS,
        FETCH_RANGES,
        FETCH_TIMELINE,
        FETCH_MEMORY,
        PRODUCER_THROTTLES,
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
