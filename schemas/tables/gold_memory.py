"""The gold tables on memory: that of consumers under KIP-81 (a proposal), of brokers (KIP-72) and of producers."""

from __future__ import annotations

from schemas.tables.gold_columns import CLIENT_ADDRESS, RANGE, RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

_CLIENT = {
    "run_id": RUN_ID,
    "scenario": SCENARIO,
    "client_id": C("string", "client.id; empty for none"),
    "client_address": CLIENT_ADDRESS,
}
_CLIENT_KEY = ("run_id", "scenario", "client_id", "client_address")
_USED = {
    "used_bytes_p50": C("bigint", "Bytes in use: median over time, within 1 %", "bytes"),
    "used_bytes_p95": C("bigint", "Bytes in use: 95th percentile over time, within 1 %", "bytes"),
    "used_bytes_p99": C("bigint", "Bytes in use: 99th percentile over time, within 1 %", "bytes"),
    "used_bytes_max": C("bigint", "Most bytes in use, exact", "bytes"),
}
_WAITS = {
    "wait_ms_p50": C("double", "Added waiting time for memory: median of all waits, within 1 %", "ms"),
    "wait_ms_p99": C("double", "Added waiting time for memory: 99th percentile of all waits, within 1 %", "ms"),
    "wait_ms_max": C("double", "Longest wait for memory that ended", "ms"),
}
_PACE = {
    "span_ms": C("double", "Time from the first request to the last event, within the window", "ms"),
    "throughput_ratio": C(
        "double",
        "Bytes per second relative to the captured lane; in closed loop, records per second relative to the closed "
        "loop at the captured settings. Null if that is 0, and in lanes with traffic.consumers",
        nullable=True,
    ),
}

CONSUMER_MEMORY = table(
    "consumer_memory", "gold",
    "How much memory a consumer process would hold for its responses, over all its connections, and what a bound on it "
    "would cost. The bound is KIP-81's, a proposal; the captured lane has none. In a lane with traffic.consumers, a "
    "row is about the one of these consumers that holds most.",
    _CLIENT_KEY, "run_id",
    **_CLIENT,
    variant=C("string", "memory_pool: SimpleMemoryPool, as KIP-81's prototype uses it. in_flight_estimate: the KIP's "
                        "earlier text. requests_in_flight and completed_as_max: alternatives that the KIP rejects"),
    responses_of=C("string", "capture: the captured responses. closed_loop: the responses that the consumer would get "
                             "under the lane's limits and traffic, by the closed loop of fetch_max_bytes. Do not "
                             "compare bytes in use of one kind with those of the other"),
    pool_bytes=C("bigint", "buffer.memory; null if there is no bound", "bytes", nullable=True),
    config_refused=C("boolean", "buffer.memory is not larger than fetch.max.bytes, so the prototype would not start"),
    responses=C("bigint", "Responses read"),
    response_bytes=C("bigint", "Bytes of the responses, without the size field", "bytes"),
    connections=C("bigint", "Connections, including those to coordinators"),
    brokers=C("bigint", "Brokers fetched from"),
    partitions=C("bigint", "Partitions fetched from"),
    **_USED,
    records=C("bigint", "Records of whole batches in the responses; in closed loop, the records that poll() returned"),
    record_bytes=C("bigint", "Record bytes of the responses", "bytes"),
    decompressed_bytes=C("bigint", "Record bytes without compression; batches that are cut count as they are, because "
                                   "they are not decompressed. Null if the size of some batch is not known",
                         "bytes", nullable=True),
    unmeasured_batches=C("bigint", "Compressed batches whose uncompressed size is not known: all of them in closed "
                                   "loop, and if `ingest` was not asked to prepare batch_split; otherwise those that "
                                   "could not be read"),
    memory_bound_bytes=C("bigint", "KIP-74's bound on memory: min(brokers x fetch.max.bytes, partitions x "
                                   "max.partition.fetch.bytes), by the lane's limits, otherwise by the largest ones "
                                   "that fetches ask for", "bytes"),
    reckoned_bytes_max=C("bigint", "Most bytes that the variant counted as used", "bytes"),
    smallest_pool_bytes=C("bigint", "Smallest pool in which nothing of this lane would wait. It is exact if nothing in "
                                    "the lane waits or is larger than the pool, otherwise a lower bound", "bytes"),
    depleted_share=C("double", "Share of span_ms during which the pool had refused a request for memory"),
    waits=C("bigint", "Responses, or fetches that were held back, that had to wait for memory"),
    **_WAITS,
    **_PACE,
    starved_connections=C("bigint", "Connections that, during one wait, were passed over as often as there are "
                                    "connections"),
    pinned_responses=C("bigint", "Responses whose memory is never released, because one of their partitions was not "
                                 "fetched again while the process was there: it was paused, or revoked without a sign "
                                 "of it, or the capture ends"),
    unpooled_responses=C("bigint", "Responses of coordinators that the pool refused, and that were put on the heap "
                                   "instead"),
    larger_than_pool=C("bigint", "Responses larger than the pool; the connection is closed"),
    stuck_connections=C("bigint", "Connections that wait although nothing is left that would free memory"),
    deadlock=C("string", "Why connections are stuck: response_larger_than_pool, buffer_below_fetch_max_bytes or "
                         "pinned_responses; null if none is", nullable=True),
    left_out=C("bigint", "What was not replayed: exchanges after the first 1,048,576 of the process, or responses of "
                         "the closed loop beyond what memory allows"),
)  # fmt: skip

_METRICS = "used_bytes_max, smallest_pool_bytes, waits, wait_ms_max and depleted_share, as in "
_REPLICATIONS = (
    "How often the lane was replayed: 20 times, fewer (down to 5) for a {whose} with many {what}, and 5 in a lane in "
    "which nothing waits"
)

CONSUMER_MEMORY_RANGES = table(
    "consumer_memory_ranges", "gold",
    "Ranges of a consumer's results under a bound on its memory (KIP-81, a proposal): each lane is replayed several "
    "times, each time with how long responses come and are held drawn anew from the capture. 80 % of the results lie "
    "between p10 and p90. What follows from rules alone is the same each time.",
    (*_CLIENT_KEY, "metric"), "run_id",
    **_CLIENT,
    metric=C("string", f"{_METRICS}consumer_memory"),
    **RANGE,
    replications=C("int", _REPLICATIONS.format(whose="consumer", what="responses")),
)  # fmt: skip

CONSUMER_MEMORY_TIMELINE = table(
    "consumer_memory_timeline", "gold",
    "How much memory a consumer process would hold over time (KIP-81, a proposal), in at most 256 intervals.",
    (*_CLIENT_KEY, "slot_start"), "run_id",
    **_CLIENT,
    slot_start=C("timestamp", "Start of the interval, by the capture's clock. In a lane with traffic.speed, it is when "
                              "the same records were produced in the capture", "UTC"),
    slot_ms=C("double", "Length of the interval, by the capture's clock", "ms"),
    used_bytes_max=C("bigint", "Most bytes in use in the interval", "bytes"),
    waiting_connections_max=C("bigint", "Most connections that waited at the same time"),
)  # fmt: skip

CONSUMER_MEMORY_EXCEEDANCE = table(
    "consumer_memory_exceedance", "gold",
    "For how long a consumer process would hold more than a number of bytes (KIP-81, a proposal): one row per step of "
    "the curve. Steps are exact; of steps within 1 % of each other only the last is kept.",
    (*_CLIENT_KEY, "bytes"), "run_id",
    **_CLIENT,
    bytes=C("bigint", "Number of bytes in use", "bytes"),
    time_above_ms=C("double", "Time during which more than this number of bytes is in use", "ms"),
    share_above=C("double", "time_above_ms as a share of span_ms in consumer_memory"),
)  # fmt: skip

BROKER_MEMORY = table(
    "broker_memory", "gold",
    "How much of queued.max.request.bytes (KIP-72) a broker's requests would hold. A request holds memory from its "
    "first byte until it is parsed; requests with delayed release (Produce, JoinGroup, SyncGroup and those that may be "
    "forwarded) hold it until they are handled.",
    ("run_id", "scenario", "broker"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=C("string", "The broker's node id, otherwise its address and port"),
    pool_bytes=C("bigint", "queued.max.request.bytes; null if there is no bound", "bytes", nullable=True),
    requests=C("bigint", "Requests read"),
    request_bytes=C("bigint", "Bytes of the requests, without the size field", "bytes"),
    connections=C("bigint", "Connections"),
    **_USED,
    smallest_pool_bytes=C("bigint", "Smallest pool in which nothing of this lane would wait. It is exact if nothing in "
                                    "the lane waits or is larger than the pool, otherwise a lower bound", "bytes"),
    depleted_share=C("double", "Share of span_ms during which the pool had refused a request for memory"),
    waits=C("bigint", "Requests whose channel was muted because there was no memory"),
    **_WAITS,
    **_PACE,
    starved_connections=C("bigint", "Connections that, during one wait, were passed over as often as there are "
                                    "connections"),
    held_until_response=C("bigint", "Requests with delayed release that are held until their response: an upper bound "
                                    "on how long they hold memory"),
    held_until_fetched=C("bigint", "Requests with delayed release, with acks=all, that are held until a fetch has "
                                   "returned all that they appended: an upper bound, too"),
    held_as_logged=C("bigint", "Requests with delayed release for which a request log shows when they had been "
                               "handled: requestQueueTimeMs + localTimeMs"),
    held_as_estimated=C("bigint", "Requests with delayed release for which it is estimated when they had been handled: "
                                  "they are held for as long as the broker took at about that time for requests that "
                                  "it answers at once, such as Metadata, or Produce without acks=all. Null in runs of "
                                  "older releases", nullable=True),
    larger_than_limit=C("bigint", "Requests larger than socket.request.max.bytes; the connection is closed"),
    left_out=C("bigint", "Requests after the first 1,048,576, which are not replayed"),
)  # fmt: skip

BROKER_MEMORY_RANGES = table(
    "broker_memory_ranges", "gold",
    "Ranges of a broker's results under queued.max.request.bytes (KIP-72): each lane is replayed several times, each "
    "time with how long requests come and are handled drawn anew from the capture. 80 % of the results lie between p10 "
    "and p90. What follows from rules alone is the same each time.",
    ("run_id", "scenario", "broker", "metric"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=C("string", "As in broker_memory"),
    metric=C("string", f"{_METRICS}broker_memory"),
    **RANGE,
    replications=C("int", _REPLICATIONS.format(whose="broker", what="requests")),
)  # fmt: skip

LIBRDKAFKA_QUEUE = table(
    "librdkafka_queue", "gold",
    "How much a consumer that is or uses librdkafka can have in its queue, which holds what it fetches ahead of the "
    "application. Like fetchq_size in librdkafka's statistics, bytes are those of uncompressed values. All of a record "
    "but seven bytes counts as its value, so keys and headers are included, which librdkafka does not count.",
    _CLIENT_KEY, "run_id",
    **_CLIENT,
    librdkafka=C("string", "Release of librdkafka; null if the client does not report it", nullable=True),
    max_queued_bytes=C("bigint", "queued.max.messages.kbytes, in kilobytes of 1,000 bytes: with this much in its "
                                 "queue, the consumer asks for no more", "bytes"),
    min_queued_messages=C("bigint", "queued.min.messages: with this many messages in its queue, the consumer asks for "
                                    "no more"),
    backoff_ms=C("double", "fetch.queue.backoff.ms: how long a consumer with a full queue waits until it decides again",
                 "ms"),
    brokers=C("bigint", "Brokers fetched from"),
    partitions=C("bigint", "Partitions fetched from"),
    responses=C("bigint", "Responses with records"),
    messages=C("bigint", "Messages in the responses"),
    value_bytes=C("bigint", "Bytes of the messages; null if some were not measured", "bytes", nullable=True),
    unmeasured_batches=C("bigint", "Compressed batches whose uncompressed size is not known"),
    threshold_bytes=C("bigint", "Bytes in the queue from which on the consumer asks for no more: max_queued_bytes or, "
                                "if less, min_queued_messages times the mean size of the captured messages",
                      "bytes", nullable=True),
    overshoot_bytes=C("bigint", "Most bytes that can come on top of threshold_bytes: one response of each broker, "
                                "uncompressed in the ratio of the captured ones", "bytes", nullable=True),
    bound_bytes=C("bigint", "Most bytes in the queue, whatever the application does: threshold_bytes + overshoot_bytes",
                  "bytes", nullable=True),
    bound_messages=C("bigint", "Most messages in the queue, if they have the mean size of the captured messages",
                     nullable=True),
    memory_bound_bytes=C("bigint", "About the most memory that the queue takes: bound_bytes, and 350 bytes for each "
                                   "message", "bytes", nullable=True),
    queued_bytes_at_most=C("bigint", "Most bytes that the queue can have held in the capture; null in other lanes, and "
                                     "if sizes or processes are not known", "bytes", nullable=True),
    queued_bytes_max=C("bigint", "Most bytes in the queue in the replay; null if there is no replay, for the reason in "
                                 "unknown_for", "bytes", nullable=True),
    queued_messages_max=C("bigint", "Most messages in the queue in the replay; null if there is no replay",
                          nullable=True),
    full_share=C("double", "Share of the replayed time during which the queue is at a threshold", nullable=True),
    idle_ms=C("double", "Time during which the application had nothing to do only because a backoff kept the consumer "
                        "from asking for more", "ms", nullable=True),
    held_back=C("bigint", "How often the consumer decided not to ask for more because the queue was full",
                nullable=True),
    pace_of=C("string", "Where the application's pace is known from: capture, which shows it while the queue is full, "
                        "or stated (processing.us.per.record)", nullable=True),
    unknown_for=C("string", "Why there is no replay. never_full: the queue was never full, so the capture does not "
                            "show the application's pace. sizes_not_measured: `ingest` did not decompress the records. "
                            "other_fetch_limits: the lane changes limits of fetches. capture_too_short: the capture "
                            "has less than the lane's queue can hold. several_processes: it is not known which "
                            "of the processes that share client.id and address has which connection", nullable=True),
)  # fmt: skip

PRODUCER_MEMORY = table(
    "producer_memory", "gold",
    "How much of its buffer.memory a Java producer process would hold. A batch holds memory from the time of its first "
    "record until its response. If that cannot be the time at which the record was appended, it holds memory from its "
    "request on. Lanes other than the captured one are replayed in closed loop if a batch of a busy producer would "
    "wait in them.",
    _CLIENT_KEY, "run_id",
    **_CLIENT,
    buffer_bytes=C("bigint", "buffer.memory", "bytes"),
    batch_size=C("int", "batch.size: the least that a batch takes", "bytes"),
    is_batch_size_told=C("boolean", "Nobody stated batch.size; it is inferred from the captured batches"),
    times_of=C("string", "What decides when memory is held. capture: the captured times. closed_loop: simulated "
                         "threads that wait for memory, and connections that serve requests in turn, each for as long "
                         "as captured"),
    sending_threads=C("int", "Threads of the application that send, as stated"),
    share_behind=C("double", "Of the time that captured requests were under way, the share during which they waited "
                             "behind other requests of their connection. From 0.1 on the producer counts as busy, and "
                             "a lane in which a batch would wait is replayed in closed loop"),
    batches=C("bigint", "Captured batches, each counted once"),
    batch_bytes=C("bigint", "Bytes of the captured batches", "bytes"),
    batches_begun=C("bigint", "Batches that got memory; in closed loop they have other records than in the capture"),
    **_USED,
    waits=C("bigint", "Batches whose first record had to wait for memory"),
    **_WAITS,
    wait_ms_total=C("double", "Time that threads wait, added up: Kafka's bufferpool-wait-time-ns-total, in ms. No more "
                              "than sending_threads wait at a time", "ms"),
    late_ms_max=C("double", "The most by which a record is appended later than in the capture, because of all waits "
                            "before it; null if captured times decide when memory is held", "ms", nullable=True),
    resent=C("bigint", "How often batches were sent again; a batch keeps its memory until its last response"),
    split_parts=C("bigint", "Parts of batches that were too large and were split; they take memory outside of the pool",
                  ),
    exhausted=C("bigint", "Batches whose first record waited for all of max.block.ms, each of them a "
                          "BufferExhaustedException: Kafka's buffer-exhausted-total"),
    larger_than_buffer=C("bigint", "Batches larger than buffer.memory, which are refused"),
    span_ms=_PACE["span_ms"],
    left_out=C("bigint", "Batches after the first 1,048,576, which are not replayed"),
)  # fmt: skip

PRODUCER_MEMORY_RANGES = table(
    "producer_memory_ranges", "gold",
    "Ranges of a producer's results: each lane is replayed several times, each time with the pace of brokers drawn "
    "anew from the capture. 80 % of the results lie between p10 and p90. What follows from rules alone is the same "
    "each time.",
    (*_CLIENT_KEY, "metric"), "run_id",
    **_CLIENT,
    metric=C("string", "used_bytes_max, waits, wait_ms_max, wait_ms_total and exhausted, as in producer_memory"),
    **RANGE,
    replications=C("int", "How often the lane was replayed: 20 times, fewer (down to 5) for a producer with many "
                          "batches, and 5 in a lane in which nothing waits"),
)  # fmt: skip

GOLD_MEMORY = (
    CONSUMER_MEMORY, CONSUMER_MEMORY_RANGES, CONSUMER_MEMORY_TIMELINE, CONSUMER_MEMORY_EXCEEDANCE, LIBRDKAFKA_QUEUE,
    BROKER_MEMORY, BROKER_MEMORY_RANGES, PRODUCER_MEMORY, PRODUCER_MEMORY_RANGES,
)  # fmt: skip
