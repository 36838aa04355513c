"""Every reason that the table `fidelity` gives, by what is compared: what it means and what to do about it."""

from __future__ import annotations

from schemas.tables.limit_reasons import CHANGES
from schemas.tables.reason import WHOLE, FidelityReason, FidelityReasons
from schemas.tables.session_reasons import SESSIONS, SHARES

NOTHING = "Nothing: packets do not show it."
FROM_THE_START = (
    "Begin the capture before the clients connect, or restart them while it runs: the full fetch that opens a session "
    "names all its partitions."
)
A_RESPONSE_WITH_ROOM = (
    "Let the capture run on: a response that is not full, or one that comes to a partition for the second time, shows "
    "them. Or begin it before the clients connect."
)
WHAT_WAS_READ = (
    "Capture from before the records are produced, every listener that producers use, or have consumers read them "
    "again while the capture runs."
)
TIERED = "Nothing: a response does not show where its records were."
COMPACTED = "Nothing: the capture does not show what compaction left of which batch, and when."
RACK = (
    "Nothing: which replica answers depends on `replica.selector.class` and `client.rack`, which are not replayed. To "
    "compare without, capture consumers that state no `client.rack`."
)
QUOTA = "Capture while no quota holds the client back, or raise its quota for that time."
STATE_BROKER = (
    "State the broker's limit if it is not Kafka's default: `--captured=broker.fetch.max.bytes=...`, and a client's "
    "quota: `--captured=consumer_byte_rate=...`. If that was done, trust the lanes of such readers as a direction "
    "only."
)
DIRECTION = "Compare lanes with the lane `captured`, and take these readers' times as a direction only."
STATE_PRODUCER = (
    "State what was in force and is not Kafka's default: `--captured` with `batch.size`, `linger.ms`, "
    "`max.message.bytes`. If that was done, trust this producer's lanes as a direction only."
)

OPEN_FETCHES = FidelityReasons(
    "Fetches in open loop",
    "fetch_max_bytes",
    ("fetches_with_records", "empty_fetches"),
    {
        "no_response": FidelityReason("No whole response to the fetch is in the capture.", WHOLE, "unknown"),
        "response_error": FidelityReason(
            "The broker refused the fetch: nothing was read.",
            "Nothing, if the errors of `exchanges.error_code` are expected ones.",
            "unknown",
        ),
        "throttled": FidelityReason("A quota held the records back.", QUOTA, "unknown"),
        "session_unknown": FidelityReason(
            "The fetch's session was opened, or lost track of, outside the capture, and no response had yet shown all "
            "its partitions that have records.",
            A_RESPONSE_WITH_ROOM,
            "unknown",
        ),
        "partition_refused": FidelityReason(
            "An error took a partition's records.",
            "Nothing: the capture does not show which records there would have been.",
            "unknown",
        ),
        "sent_to_replica": FidelityReason(
            "The leader sent the consumer to a replica in its rack (KIP-392); another partition of the fetch differs.",
            RACK,
            "unknown",
        ),
        "converted_format": FidelityReason(
            "The broker converted record batches to message sets for an old client; their sizes differ from those in "
            "the log.",
            "Nothing, unless the client can use Fetch 4 or later.",
            "unknown",
        ),
        "compacted": FidelityReason(
            "Compaction had removed records from the log: batches that the capture showed earlier are smaller or gone.",
            COMPACTED,
            "unknown",
        ),
        "remote_read": FidelityReason(
            "A partition of the fetch is of a topic with tiered storage, and may have been read from remote storage "
            "(KIP-405), by rules that are not replayed; or a follower was refused what is there alone.",
            TIERED,
            "unknown",
        ),
        "truncated": FidelityReason(
            "An earlier leader had batches that a later leader's log does not have, and the read may have met them.",
            "Nothing, unless you produce with `acks=all`: what followers do not have is lost when the leader changes.",
            "unknown",
        ),
        "segment_end": FidelityReason(
            "A segment of the log may end where a read did. One read ended there, with a whole batch and below its "
            "limits, though the log went on. From two such reads on, the end counts as known.",
            "Nothing, or capture a second reader of the log.",
            "unknown",
        ),
        "high_watermark_unknown": FidelityReason(
            "How far the fetch could read is not known: no response has shown the partition's high watermark yet.",
            FROM_THE_START,
            "unknown",
        ),
        "log_content_unknown": FidelityReason(
            "Batches that decide the result are in no captured produce request or fetch response. Or they are in a "
            "produce request alone, and the broker compresses them anew, to another size (`compression.type`).",
            WHAT_WAS_READ,
            "unknown",
        ),
        "append_time_unknown": FidelityReason(
            "What was available to read depends on appends that no captured produce request shows.",
            "Capture every listener of the broker that producers use, from before they send.",
            "unknown",
        ),
        "append_read_order": FidelityReason(
            "An append and the read overlap in time, and no other fetch tells which came first; some order gives "
            "what was captured.",
            NOTHING,
            "unknown",
        ),
        "replication_throttled": FidelityReason(
            "A replication quota of the leader left a partition of a follower empty that had records for it (KIP-73).",
            "Capture while `leader.replication.throttled.replicas` names no topic, or take such followers' lanes as a "
            "direction only.",
            "unknown",
        ),
        "fewer_bytes": FidelityReason("The capture has fewer bytes than the replay.", STATE_BROKER, "different"),
        "more_bytes": FidelityReason("The capture has more bytes than the replay.", STATE_BROKER, "different"),
    },
)

CLOSED_OBSTACLES = {
    "session_unknown": FidelityReason(
        "Closed loop: the connection has fetches of a session from before the capture, of which no response had yet "
        "shown all partitions that have records.",
        A_RESPONSE_WITH_ROOM,
        "unknown",
    ),
    "throttled": FidelityReason(
        "Closed loop: a quota held back responses with records, as brokers before Kafka 2.0 do, which is not modelled.",
        QUOTA,
        "unknown",
    ),
    "response_error": FidelityReason(
        "Closed loop: fetches of the connection were refused.",
        "Nothing, if the errors of `exchanges.error_code` are expected ones.",
        "unknown",
    ),
    "partition_refused": FidelityReason(
        "Closed loop: an error took partitions of the connection away.",
        "Nothing: the capture does not show what the reader would have got.",
        "unknown",
    ),
    "sent_to_replica": FidelityReason(
        "Closed loop: the leader sent the consumer to a replica in its rack (KIP-392). It reads on over another "
        "connection, which is replayed by itself.",
        RACK,
        "unknown",
    ),
    "log_content_unknown": FidelityReason(
        "Closed loop: batches that the reader had to read are not in the capture. Or the logs that its connection "
        "reads have more than 4,194,304 batches: then none is kept.",
        f"{WHAT_WAS_READ} For so many batches, replay a shorter capture.",
        "unknown",
    ),
    "position_moved": FidelityReason(
        "Closed loop: the reader went on, as after a seek, from batches that are not in the capture.",
        WHAT_WAS_READ,
        "unknown",
    ),
    "converted_format": FidelityReason(
        "Closed loop: the reader is old and got record batches as message sets, whose sizes differ from those in the "
        "log.",
        "Nothing, unless the client can use Fetch 4 or later.",
        "unknown",
    ),
    "remote_read": FidelityReason(
        "Closed loop: the connection reads topics with tiered storage, and may have been given what was in remote "
        "storage (KIP-405).",
        TIERED,
        "unknown",
    ),
    "compacted": FidelityReason(
        "Closed loop: compaction had removed records from a log that the reader read.", COMPACTED, "unknown"
    ),
}
"""Why a connection's closed loop is not held against the capture."""

CLOSED_FETCHES = FidelityReasons(
    "Fetches in closed loop",
    "fetch_max_bytes",
    (
        "closed_loop_order", "closed_loop_bytes", "closed_loop_catch_up", "closed_loop_requests",
        "closed_loop_restarts",
    ),
    {
        **CLOSED_OBSTACLES,
        "other_partition": FidelityReason(
            "Closed loop: in the replay another partition had its turn first, or the turn did not come.",
            "If the client is not what the capture suggests, read the lane of its rules: `--set=profile=...`. If it "
            "asks in a new order each time, as sarama does, no rule says whose turn it is. Else take whose turn it is "
            "in this reader's lanes as a direction only.",
            "different",
        ),
        "fewer_bytes": FidelityReason("Closed loop: the replay had read less by then.", DIRECTION, "different"),
        "more_bytes": FidelityReason("Closed loop: the replay had read more by then.", DIRECTION, "different"),
        "slower": FidelityReason("Closed loop: the backlog took the replay longer.", DIRECTION, "different"),
        "faster": FidelityReason("Closed loop: the backlog took the replay less time.", DIRECTION, "different"),
        "fewer_requests": FidelityReason("Closed loop: the replay sent fewer requests.", DIRECTION, "different"),
        "more_requests": FidelityReason("Closed loop: the replay sent more requests.", DIRECTION, "different"),
    },
)  # fmt: skip

DRAINED = FidelityReasons(
    "Memory of responses: when it is released",
    "consumer_memory",
    ("drained_partitions",),
    {
        "not_fetched_again": FidelityReason(
            "The partition was not fetched again: it was paused, given up by a consumer that assigns its partitions "
            "itself, or the capture ends.",
            "Let the capture run longer, and capture all members of the group from before they join.",
            "unknown",
        ),
        "taken_over": FidelityReason(
            "Another member of the consumer group fetched the partition next: it was revoked, and the consumer "
            "dropped what it had of it.",
            "Nothing: that memory counts as held until later responses are drained, or until the consumer's next "
            "fetch.",
            "unknown",
        ),
        "given_up": FidelityReason(
            "The partition was not fetched again: the consumer was closed, left its group, or was assigned others.",
            "Nothing: that memory counts as held until the consumer leaves, or until later responses are drained.",
            "unknown",
        ),
        "offsets_unknown": FidelityReason("No whole batch shows where the response ended.", WHOLE, "unknown"),
        "another_connection": FidelityReason(
            "The next fetch came on another connection and begins elsewhere: perhaps from another process with the "
            "same `client.id` and address.",
            "Give each process a `client.id` of its own.",
            "unknown",
        ),
        "fetched_before_end": FidelityReason(
            "The next fetch begins within what was received: the consumer went back.",
            "Nothing: the next fetch still shows when the memory of these responses is released.",
            "different",
        ),
        "fetched_beyond_end": FidelityReason(
            "The next fetch begins beyond what was received: the consumer skipped something.",
            "Nothing: the next fetch still shows when the memory of these responses is released.",
            "different",
        ),
    },
)

HELD = FidelityReasons(
    "Memory of responses in closed loop",
    "consumer_memory",
    ("closed_loop_held",),
    {
        **CLOSED_OBSTACLES,
        "another_connection": FidelityReason(
            "Closed loop: several processes seem to share the `client.id` and address; what one held is not known.",
            "Give each process a `client.id` of its own.",
            "unknown",
        ),
        "more_held": FidelityReason("Closed loop: the replay held more bytes by then.", DIRECTION, "different"),
        "less_held": FidelityReason("Closed loop: the replay held fewer bytes by then.", DIRECTION, "different"),
        "after_giving_up": FidelityReason(
            "Closed loop: the replay held more or fewer bytes after the consumer had given up what it had buffered, "
            "mostly in a rebalance. The application does not get back its time for those records.",
            DIRECTION,
            "different",
        ),
    },
)

QUEUE = FidelityReasons(
    "Queues of librdkafka consumers",
    "consumer_memory",
    ("queue_decisions",),
    {
        "sizes_not_measured": FidelityReason(
            "Batches are compressed, and `ingest` did not decompress them: how full the queue was is not known.",
            "Run `pipeline` with a setting of the queue, such as `--set=consumer.queued.max.messages.kbytes=16384`.",
            "unknown",
        ),
        "pace_unknown": FidelityReason(
            "The queue can have been full, and never was: the capture does not show how fast the application takes "
            "messages.",
            "Capture while the application is behind, or state its pace: `--set=processing.us.per.record=...`.",
            "unknown",
        ),
        "waited_otherwise": FidelityReason(
            "The consumer fetched more only after a while, though its queue cannot have been full. It was paused or "
            "rebalanced, or has lower thresholds than the replay.",
            "State what was in force: `--captured=consumer.queued.max.messages.kbytes=...`, "
            "`consumer.queued.min.messages`, `consumer.fetch.queue.backoff.ms`.",
            "different",
        ),
        "asked_sooner": FidelityReason(
            "The capture has the consumer wait for a full queue, and the replay has not.", DIRECTION, "different"
        ),
        "held_back": FidelityReason(
            "The replay has the consumer wait for a full queue, and the capture has not.", DIRECTION, "different"
        ),
    },
)

BUFFERS = FidelityReasons(
    "Memory of producers",
    "consumer_memory",
    ("batches_without_wait", "closed_loop_sends"),
    {
        "not_a_java_client": FidelityReason(
            "The producer is not a Java client, whose `buffer.memory` is what is replayed.",
            "Nothing.",
            "unknown",
        ),
        "waited_for_memory": FidelityReason(
            "In the replay a captured batch waits for memory longer than it can have waited.",
            "State the producer's `buffer.memory` and `batch.size` if they are not Kafka's defaults: "
            "`--captured=producer.buffer.memory=...`.",
            "different",
        ),
        "sent_later": FidelityReason(
            "Closed loop: the replay has memory for a captured batch's first record later than the capture does.",
            "As for waited_for_memory; if several threads send, state how many: `--captured=sending.threads=...`. "
            "Else take the lanes in closed loop (`times_of`) as a direction only.",
            "different",
        ),
    },
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
            "Closes of batches and appends overlap in time; some order of both gives what was captured.",
            NOTHING,
            "unknown",
        ),
        "near_limit": FidelityReason(
            "The batch is within a record of `max.message.bytes`: it depends on which records it has.",
            "Nothing, unless you choose a `batch.size` farther from `max.message.bytes`.",
            "unknown",
        ),
        "recompressed": FidelityReason(
            "The broker compresses the topic's batches anew and checks `max.message.bytes` once more. How large the "
            "batch was then is not in the capture.",
            "Nothing: take what such a topic's lanes split as an estimate. With `compression.type=producer`, or in the "
            "producer's codec, the broker stores batches as they are.",
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
            "The batch is larger than `max.message.bytes` and was not refused; for a whole producer: the replay "
            "splits more often than the capture shows.",
            STATE_PRODUCER,
            "different",
        ),
        "split_not_replayed": FidelityReason(
            "The batch was refused as too large and is not larger than `max.message.bytes`. For a whole producer: "
            "the replay splits less often than the capture shows.",
            STATE_PRODUCER,
            "different",
        ),
        "bytes_beyond_error": FidelityReason(
            "The replay's size for a batch is farther off than the metric allows.",
            "Have sizes measured more closely: `--captured=recompress=all`, or `--captured=recut.sizes=exact` with it. "
            "State the producer's level of compression if it is not Kafka's: `--captured=compression.zstd.level=...`.",
            "different",
        ),
    },
)

FIDELITY_REASONS = (OPEN_FETCHES, CLOSED_FETCHES, SESSIONS, SHARES, DRAINED, HELD, QUEUE, BUFFERS, SPLITS, CHANGES)


def reason_of(algorithm: str, metric: str, word: str) -> FidelityReason | None:
    """The reason that a row of `fidelity` gives; None where it is not declared, as of a lake of another version."""
    groups = (of for of in FIDELITY_REASONS if of.algorithm == algorithm and metric in (of.metrics or (metric,)))
    return next((of.words[word] for of in groups if word in of.words), None)
