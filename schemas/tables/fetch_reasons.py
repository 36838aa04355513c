"""Every reason about fetches that the table `fidelity` gives, for the open and the closed loop."""

from __future__ import annotations

from schemas.tables.reason import DIRECTION, NOT_SHOWN, WHOLE, FidelityReason, FidelityReasons

FROM_THE_START = (
    "Begin the capture before the clients connect, or restart them while it runs: the full fetch that opens a session "
    "names all its partitions."
)
A_RESPONSE_WITH_ROOM = (
    "Let the capture run longer: a response that is not full, or that has a partition for the second time, shows which "
    "partitions have records. Or begin the capture before the clients connect."
)
WHAT_WAS_READ = (
    "Begin the capture before the records are produced, and capture every listener that producers use. Or let "
    "consumers read the records again while the capture runs."
)
TIERED = "Nothing: a response does not show where its records were."
COMPACTED = "Nothing: the capture does not show what compaction left of which batch, and when."
RACK = (
    "Nothing: it is not replayed when a replica would have answered. `rack_reads` has what leaders alone would serve. "
    "To compare times without fetch-from-follower, capture consumers that state no `client.rack`."
)
QUOTA = "Capture while no quota holds the client back, or raise its quota for that time."
STATE_BROKER = (
    "State the broker's limit if it is not Kafka's default: `--captured=broker.fetch.max.bytes=...`, or "
    "`--captured=broker.2.fetch.max.bytes=...` if only broker 2 has it; and a client's quota: "
    "`--captured=consumer_byte_rate=...`. If that was done, trust the lanes of such readers as a direction "
    "only."
)

OPEN_FETCHES = FidelityReasons(
    "Fetches in open loop",
    "fetch_max_bytes",
    ("fetches_with_records", "empty_fetches"),
    {
        "no_response": FidelityReason("No whole response to the fetch is in the capture.", WHOLE, "unknown"),
        "response_error": FidelityReason(
            "The broker refused the fetch, so nothing was read.",
            "Nothing, if you expect the errors in `exchanges.error_code`.",
            "unknown",
        ),
        "throttled": FidelityReason("A quota held the records back.", QUOTA, "unknown"),
        "session_unknown": FidelityReason(
            "The fetch's session was opened before the capture, or a fetch of it is not in the capture, and no "
            "response had yet shown all of its partitions that have records.",
            A_RESPONSE_WITH_ROOM,
            "unknown",
        ),
        "partition_refused": FidelityReason(
            "A partition of the fetch has no records in the response, because it had an error, or because the follower "
            "had to truncate its log first.",
            "Nothing: the capture does not show which records there would have been.",
            "unknown",
        ),
        "sent_to_replica": FidelityReason(
            "The leader sent the consumer to a replica in its rack (KIP-392), and another partition of the fetch "
            "differs.",
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
            "Compaction had removed records from the log: batches were smaller or gone by then, and no response shows "
            "which.",
            COMPACTED,
            "unknown",
        ),
        "remote_read": FidelityReason(
            "A partition of the fetch is of a topic with tiered storage. It may have been read from remote storage "
            "(KIP-405), by rules that are not replayed; or a follower was refused records that only remote storage "
            "has.",
            TIERED,
            "unknown",
        ),
        "truncated": FidelityReason(
            "An earlier leader had batches that a later leader's log does not have, and the fetch may have read them.",
            "Nothing, unless you can produce with `acks=all`: records that followers do not have are lost when the "
            "leader changes.",
            "unknown",
        ),
        "segment_end": FidelityReason(
            "A segment of the log may end where a read ended: one read ended there with a whole batch, below its "
            "limits, although the log went on. Two such reads make the end known.",
            "Nothing, or capture a second reader of the same log.",
            "unknown",
        ),
        "high_watermark_unknown": FidelityReason(
            "How far the fetch could read is not known: no response has shown the partition's high watermark yet.",
            FROM_THE_START,
            "unknown",
        ),
        "log_content_unknown": FidelityReason(
            "Batches that decide the result are in no captured Produce request or Fetch response. Or only a Produce "
            "request has them, and the broker compresses them again, to another size (`compression.type`).",
            WHAT_WAS_READ,
            "unknown",
        ),
        "append_time_unknown": FidelityReason(
            "The records that were available to read depend on appends that no captured Produce request shows.",
            "Capture every listener of the broker that producers use, from before they send.",
            "unknown",
        ),
        "append_read_order": FidelityReason(
            "An append, or a rise of the high watermark, overlaps the read in time, and no other fetch shows which "
            "came first. One of the possible orders gives what was captured.",
            NOT_SHOWN,
            "unknown",
        ),
        "replication_throttled": FidelityReason(
            "A replication quota of the leader (KIP-73) returned nothing of a follower's partition that had records "
            "for it.",
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
        "Closed loop: the connection has fetches of a session from before the capture, and no response had yet "
        "shown all of its partitions that have records.",
        A_RESPONSE_WITH_ROOM,
        "unknown",
    ),
    "throttled": FidelityReason(
        "Closed loop: a quota delayed responses with records, as brokers before Kafka 2.0 do. This is not replayed.",
        QUOTA,
        "unknown",
    ),
    "response_error": FidelityReason(
        "Closed loop: the broker refused fetches of the connection.",
        "Nothing, if you expect the errors in `exchanges.error_code`.",
        "unknown",
    ),
    "partition_refused": FidelityReason(
        "Closed loop: partitions of the connection had no records in a response, because they had errors, or because "
        "the follower had to truncate its log first. Errors do not count if the reader left the partition within a "
        "second, as it does when its leader moves.",
        "Nothing: the capture does not show what the reader would have got.",
        "unknown",
    ),
    "sent_to_replica": FidelityReason(
        "Closed loop: the leader sent the consumer to a replica in its rack (KIP-392). The consumer reads on over "
        "another connection, which is replayed by itself.",
        RACK,
        "unknown",
    ),
    "log_content_unknown": FidelityReason(
        "Closed loop: batches that the reader read are not in the capture. Or the logs that its connection reads "
        "have more than 4,194,304 batches, of which none is kept then.",
        f"{WHAT_WAS_READ} If there are too many batches, replay a shorter capture.",
        "unknown",
    ),
    "position_moved": FidelityReason(
        "Closed loop: the reader continued, as after a seek, at batches that are not in the capture.",
        WHAT_WAS_READ,
        "unknown",
    ),
    "converted_format": FidelityReason(
        "Closed loop: the reader is an old client, for which the broker converted record batches to message sets; "
        "their sizes differ from those in the log.",
        "Nothing, unless the client can use Fetch 4 or later.",
        "unknown",
    ),
    "remote_read": FidelityReason(
        "Closed loop: the connection reads topics with tiered storage, and may have got records from remote "
        "storage (KIP-405).",
        TIERED,
        "unknown",
    ),
    "compacted": FidelityReason(
        "Closed loop: compaction had removed records from a log that the reader read.", COMPACTED, "unknown"
    ),
    "fetches_lost": FidelityReason(
        "Closed loop: the capture lacks bytes of the connection. The reader went on behind records that no captured "
        "response to it has, or it seems to have asked for nothing for a second or more.",
        WHOLE,
        "unknown",
    ),
}
"""Why a connection's closed loop is not compared with the capture."""

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
            "Closed loop: before this part of a partition's backlog, the replay reads another partition than the "
            "captured reader did, or it does not read this part at all.",
            "If the client is not what the capture suggests, look at the lane of its rules: `--set=profile=...`. If it "
            "asks in a new order each time, as sarama and aiokafka do, no rule says which partition is next. Otherwise "
            "take the order of partitions in this reader's lanes as a direction only.",
            "different",
        ),
        "fewer_bytes": FidelityReason("Closed loop: the replay had read fewer bytes by then.", DIRECTION, "different"),
        "more_bytes": FidelityReason("Closed loop: the replay had read more bytes by then.", DIRECTION, "different"),
        "slower": FidelityReason("Closed loop: the replay reads the backlog in more time.", DIRECTION, "different"),
        "faster": FidelityReason("Closed loop: the replay reads the backlog in less time.", DIRECTION, "different"),
        "fewer_requests": FidelityReason("Closed loop: the replay sends fewer requests.", DIRECTION, "different"),
        "more_requests": FidelityReason("Closed loop: the replay sends more requests.", DIRECTION, "different"),
    },
)  # fmt: skip

FETCHERS = FidelityReasons(
    "Fetchers of followers",
    "fetch_max_bytes",
    ("fetcher_of_partition",),
    {
        "fetcher_unknown": FidelityReason(
            "The client.id is not that of a broker's fetcher thread, such as `broker-2-fetcher-0`. Lanes with "
            "`num.replica.fetchers` leave the follower as captured.",
            "Replay silver tables without pseudonyms: a pseudonym does not show which fetcher thread it stands for.",
            "unknown",
        ),
        "topic_name_unknown": FidelityReason(
            "The capture shows the topic's id but not its name, by which Kafka assigns partitions to fetcher threads. "
            "In lanes with `num.replica.fetchers` the partition has any of the threads that are possible, given the "
            "captured one.",
            "Let the capture run until some client asks for Metadata, as `kafka-topics.sh --list` does.",
            "unknown",
        ),
        "other_fetcher": FidelityReason(
            "By Kafka's rule another fetcher thread has this partition, whatever the number of threads. Or the "
            "captured release has another rule, or the number of threads changed during the capture. Lanes with "
            "`num.replica.fetchers` leave the follower as captured.",
            "Capture while `num.replica.fetchers` does not change.",
            "different",
        ),
    },
)
