"""The gold tables on memory: that of consumers under KIP-81 (a proposal), of brokers (KIP-72) and of producers."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

_CLIENT = {
    "run_id": RUN_ID,
    "scenario": SCENARIO,
    "client_id": C("string", "client.id; empty for none"),
    "client_address": C("string", "The client's IP address"),
}
_CLIENT_KEY = ("run_id", "scenario", "client_id", "client_address")
_USED = {
    "used_bytes_p50": C("bigint", "Bytes in use, median over time, within 1 %", "bytes"),
    "used_bytes_p95": C("bigint", "... 95th percentile over time", "bytes"),
    "used_bytes_p99": C("bigint", "... 99th percentile over time", "bytes"),
    "used_bytes_max": C("bigint", "... the most, exact", "bytes"),
}
_WAITS = {
    "wait_ms_p50": C("double", "Added wait, median of all of them, within 1 %", "ms"),
    "wait_ms_p99": C("double", "... 99th percentile", "ms"),
    "wait_ms_max": C("double", "... the longest that ended", "ms"),
}
_PACE = {
    "span_ms": C("double", "From the first request to the last event, within the window", "ms"),
    "throughput_ratio": C(
        "double",
        "Bytes per second relative to the captured lane; in closed loop, records relative to the closed loop at the "
        "captured settings",
        nullable=True,
    ),
}

CONSUMER_MEMORY = table(
    "consumer_memory", "gold",
    "What a consumer process would hold of its responses, over all its connections, and what a bound would cost it. "
    "The bound is KIP-81's, a proposal; the captured lane has none.",
    _CLIENT_KEY, "run_id",
    **_CLIENT,
    variant=C("string", "memory_pool: SimpleMemoryPool as KIP-81's prototype uses it; in_flight_estimate: the KIP's "
                        "earlier text; rejected ones: requests_in_flight, completed_as_max"),
    responses_of=C("string", "capture: the captured responses. closed_loop: those that it would get under the lane's "
                             "limits, by the closed loop of fetch_max_bytes. Bytes in use of one are not to be "
                             "compared with those of the other"),
    pool_bytes=C("bigint", "buffer.memory; null for no bound", "bytes", nullable=True),
    config_refused=C("boolean", "buffer.memory is not above fetch.max.bytes: the prototype would not start"),
    responses=C("bigint", "Responses read"),
    response_bytes=C("bigint", "... their bytes without the size field", "bytes"),
    connections=C("bigint", "Connections, coordinators' included"),
    brokers=C("bigint", "Brokers fetched from"),
    partitions=C("bigint", "Partitions fetched from"),
    **_USED,
    records=C("bigint", "Records of whole batches in the responses; in closed loop, those that its poll() returned"),
    record_bytes=C("bigint", "Record bytes in them", "bytes"),
    decompressed_bytes=C("bigint", "... uncompressed, except cut batches, which are not decompressed; null if it is "
                                   "not known for a batch",
                         "bytes", nullable=True),
    unmeasured_batches=C("bigint", "Compressed batches for which it is not known: all if ingest did not prepare "
                                   "batch_split, and in closed loop; otherwise those that could not be read"),
    memory_bound_bytes=C("bigint", "KIP-74's bound: min(brokers x fetch.max.bytes, partitions x "
                                   "max.partition.fetch.bytes), by the lane's limits, otherwise the largest requested",
                         "bytes"),
    reckoned_bytes_max=C("bigint", "Most bytes that the variant counted as used", "bytes"),
    smallest_pool_bytes=C("bigint", "Smallest pool in which nothing of this lane would wait. It is exact if nothing "
                                    "of the lane waits or is larger than the pool, otherwise a lower bound", "bytes"),
    depleted_share=C("double", "Share of span_ms in which the pool had refused somebody"),
    waits=C("bigint", "Responses, or fetches held back, that had to wait for memory"),
    **_WAITS,
    **_PACE,
    starved_connections=C("bigint", "Connections that saw others served, while waiting once, as often as there are "
                                    "connections"),
    pinned_responses=C("bigint", "Responses never released: one of their partitions was not fetched again while the "
                                 "process was there. It was paused, or revoked without a sign of it, or the capture "
                                 "ends"),
    unpooled_responses=C("bigint", "Coordinators' responses that the pool refused and the heap took"),
    larger_than_pool=C("bigint", "Responses larger than the pool: the connection is closed"),
    stuck_connections=C("bigint", "Connections that wait when nothing is left that would free memory"),
    deadlock=C("string", "Why they are stuck: response_larger_than_pool, buffer_below_fetch_max_bytes, "
                         "pinned_responses; null if none is", nullable=True),
    left_out=C("bigint", "Exchanges beyond the first 1,048,576 of the process, or responses of the closed loop beyond "
                         "what memory allows: not replayed"),
)  # fmt: skip

CONSUMER_MEMORY_TIMELINE = table(
    "consumer_memory_timeline", "gold",
    "What a consumer process would hold over time (KIP-81, a proposal); 256 slots at most.",
    (*_CLIENT_KEY, "slot_start"), "run_id",
    **_CLIENT,
    slot_start=C("timestamp", "Start of the slot", "UTC"),
    slot_ms=C("double", "Length of the slot", "ms"),
    used_bytes_max=C("bigint", "Most bytes in use", "bytes"),
    waiting_connections_max=C("bigint", "Most connections that waited at the same time"),
)  # fmt: skip

CONSUMER_MEMORY_EXCEEDANCE = table(
    "consumer_memory_exceedance", "gold",
    "How long a consumer process would hold more than a number of bytes (KIP-81, a proposal): one row for each step of "
    "the curve. Steps are exact; of those within 1 % of each other only the last is kept.",
    (*_CLIENT_KEY, "bytes"), "run_id",
    **_CLIENT,
    bytes=C("bigint", "Bytes in use", "bytes"),
    time_above_ms=C("double", "Time with more than that in use", "ms"),
    share_above=C("double", "... of span_ms"),
)  # fmt: skip

BROKER_MEMORY = table(
    "broker_memory", "gold",
    "What a broker's requests would hold of queued.max.request.bytes (KIP-72), from their first byte until they are "
    "parsed. Requests with delayed release hold it until they are handled: Produce, JoinGroup, SyncGroup, what may "
    "be forwarded.",
    ("run_id", "scenario", "broker"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=C("string", "The broker's node id, otherwise its address and port"),
    pool_bytes=C("bigint", "queued.max.request.bytes; null for off", "bytes", nullable=True),
    requests=C("bigint", "Requests read"),
    request_bytes=C("bigint", "... their bytes without the size field", "bytes"),
    connections=C("bigint", "Connections"),
    **_USED,
    smallest_pool_bytes=C("bigint", "Smallest pool in which nothing of this lane would wait. It is exact in a lane in "
                                    "which nothing waits or is larger than the pool, otherwise a lower bound", "bytes"),
    depleted_share=C("double", "Share of span_ms in which the pool had refused somebody"),
    waits=C("bigint", "Requests whose channel was muted for lack of memory"),
    **_WAITS,
    **_PACE,
    starved_connections=C("bigint", "Connections that saw others served, while waiting once, as often as there are "
                                    "connections"),
    held_until_response=C("bigint", "Requests with delayed release for which only the response shows that they were "
                                    "handled: an upper bound"),
    held_until_fetched=C("bigint", "... with acks=all, for which a fetch of all that they appended shows it"),
    held_as_logged=C("bigint", "... for which a request log shows it: requestQueueTimeMs + localTimeMs"),
    larger_than_limit=C("bigint", "Requests above socket.request.max.bytes: the connection is closed"),
    left_out=C("bigint", "Requests beyond the first 1,048,576: not replayed"),
)  # fmt: skip

LIBRDKAFKA_QUEUE = table(
    "librdkafka_queue", "gold",
    "What a consumer that is or uses librdkafka can have in its queue: what it fetches ahead of the application. "
    "Bytes stand for those of uncompressed values, which librdkafka counts (fetchq_size in its statistics). Each "
    "record counts with all its bytes but seven, so keys and headers are included, which librdkafka does not count.",
    _CLIENT_KEY, "run_id",
    **_CLIENT,
    librdkafka=C("string", "Release of librdkafka, null if the client does not say", nullable=True),
    max_queued_bytes=C("bigint", "queued.max.messages.kbytes, of 1,000 bytes each: with as many it asks for no more",
                       "bytes"),
    min_queued_messages=C("bigint", "queued.min.messages: with as many it asks for no more"),
    backoff_ms=C("double", "fetch.queue.backoff.ms: the time until it decides again", "ms"),
    brokers=C("bigint", "Brokers fetched from"),
    partitions=C("bigint", "Partitions fetched from"),
    responses=C("bigint", "Responses with records"),
    messages=C("bigint", "Messages in them"),
    value_bytes=C("bigint", "... their bytes; null if some were not measured", "bytes", nullable=True),
    unmeasured_batches=C("bigint", "Compressed batches whose uncompressed size is not known"),
    threshold_bytes=C("bigint", "Bytes from which on it asks for no more: max_queued_bytes, or min_queued_messages of "
                                "the captured messages' mean size if that is less", "bytes", nullable=True),
    overshoot_bytes=C("bigint", "The most that may be added to it: a response of each broker, uncompressed, as large "
                                "as the captured ones", "bytes", nullable=True),
    bound_bytes=C("bigint", "Most bytes in the queue, whatever the application does: the sum of both", "bytes",
                  nullable=True),
    bound_messages=C("bigint", "Most messages in the queue, of the captured messages' mean size", nullable=True),
    memory_bound_bytes=C("bigint", "Most memory for the queue, about: bound_bytes, and 350 bytes for each message",
                         "bytes", nullable=True),
    queued_bytes_at_most=C("bigint", "Most bytes that the queue can have had as captured; null in other lanes, and if "
                                     "sizes are not known", "bytes", nullable=True),
    queued_bytes_max=C("bigint", "Most bytes in the queue in the replay; null if unknown_for says why", "bytes",
                       nullable=True),
    queued_messages_max=C("bigint", "... messages", nullable=True),
    full_share=C("double", "Share of the replay's time in which the queue is at a threshold", nullable=True),
    idle_ms=C("double", "Time in which the application had nothing to do, although only a backoff kept the consumer "
                        "from asking for more", "ms", nullable=True),
    held_back=C("bigint", "Decisions not to ask, because the queue was full", nullable=True),
    pace_of=C("string", "Where the application's pace is from: capture, which shows it while the queue is full; "
                        "stated, processing.us.per.record", nullable=True),
    unknown_for=C("string", "Why there is no replay. never_full: the capture does not show the application's pace. "
                            "sizes_not_measured. other_fetch_limits: the lane changes limits of fetches. "
                            "capture_too_short: the capture brings less than the lane's queue takes",
                  nullable=True),
)  # fmt: skip

PRODUCER_MEMORY = table(
    "producer_memory", "gold",
    "What a Java producer process would hold of its buffer.memory. A batch is held from its first record's time until "
    "its response. If that time cannot be the time of the append, it is held from its request on. A lane other than "
    "the captured one in which a batch of a busy producer would wait is replayed in closed loop.",
    _CLIENT_KEY, "run_id",
    **_CLIENT,
    buffer_bytes=C("bigint", "buffer.memory", "bytes"),
    batch_size=C("int", "batch.size: what a batch takes at least", "bytes"),
    times_of=C("string", "What decides when memory is held. capture: the captured times. closed_loop: threads that "
                         "wait and connections that serve requests in turn, each for as long as captured"),
    sending_threads=C("int", "Threads that send, as stated; used by the closed loop"),
    share_behind=C("double", "Of the time that captured requests were under way, the share in which the broker had "
                             "others of their connection before them. From 0.1 on, a lane in which a batch would "
                             "wait is in closed loop"),
    batches=C("bigint", "Captured batches, each once"),
    batch_bytes=C("bigint", "... their bytes", "bytes"),
    batches_begun=C("bigint", "Batches that got memory; in closed loop they have other records than captured"),
    **_USED,
    waits=C("bigint", "Batches whose first record had to wait for memory"),
    **_WAITS,
    wait_ms_total=C("double", "... all waits that ended together: bufferpool-wait-time-ns-total", "ms"),
    late_ms_max=C("double", "The most by which a record is appended later than captured, because of all waits before "
                            "it; null if captured times decide", "ms", nullable=True),
    resent=C("bigint", "How often a batch was sent again: it keeps its memory until the last response"),
    split_parts=C("bigint", "Parts of batches that were too large: split, they take memory beside the pool"),
    exhausted=C("bigint", "Batches whose first record waited for max.block.ms, each a BufferExhaustedException: "
                          "Kafka's buffer-exhausted-total"),
    larger_than_buffer=C("bigint", "Batches larger than buffer.memory: refused"),
    span_ms=_PACE["span_ms"],
    left_out=C("bigint", "Batches beyond the first 1,048,576: not replayed"),
)  # fmt: skip

GOLD_MEMORY = (
    CONSUMER_MEMORY, CONSUMER_MEMORY_TIMELINE, CONSUMER_MEMORY_EXCEEDANCE, LIBRDKAFKA_QUEUE, BROKER_MEMORY,
    PRODUCER_MEMORY,
)  # fmt: skip
