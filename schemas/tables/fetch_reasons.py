"""Every reason about fetches that the table `fidelity` gives, for the open and the closed loop."""

from __future__ import annotations

from schemas.tables.reason import DIRECTION, NOT_SHOWN, WHOLE, FidelityReason, FidelityReasons

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
    "Nothing: when a replica would have answered is not replayed. `rack_reads` has what leaders alone would serve; to "
    "compare times without, capture consumers that state no `client.rack`."
)
QUOTA = "Capture while no quota holds the client back, or raise its quota for that time."
STATE_BROKER = (
    "State the broker's limit if it is not Kafka's default: `--captured=broker.fetch.max.bytes=...`, and a client's "
    "quota: `--captured=consumer_byte_rate=...`. If that was done, trust the lanes of such readers as a direction "
    "only."
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
            NOT_SHOWN,
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

FETCHERS = FidelityReasons(
    "Fetchers of followers",
    "fetch_max_bytes",
    ("fetcher_of_partition",),
    {
        "fetcher_unknown": FidelityReason(
            "The client.id is none of a broker's fetcher, such as `broker-2-fetcher-0`: lanes with "
            "`num.replica.fetchers` leave the follower as captured.",
            "Replay silver tables without pseudonyms: a pseudonym does not show which fetcher it is of.",
            "unknown",
        ),
        "topic_name_unknown": FidelityReason(
            "The capture shows a topic's id and not its name, by which Kafka deals partitions to fetchers: in lanes "
            "with `num.replica.fetchers` the partition has any fetcher that it may have, given the captured one.",
            "Capture until some client asks for Metadata: `kafka-topics.sh --list` does.",
            "unknown",
        ),
        "other_fetcher": FidelityReason(
            "By Kafka's rule another fetcher has this partition, however many there are; or a release with another "
            "rule, or two numbers of fetchers, were captured. Lanes with `num.replica.fetchers` leave the follower as "
            "captured.",
            "Capture while `num.replica.fetchers` does not change.",
            "different",
        ),
    },
)
