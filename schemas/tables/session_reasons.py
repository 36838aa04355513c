"""Every reason about fetch sessions that the table `fidelity` gives."""

from __future__ import annotations

from schemas.tables.reason import FidelityReason, FidelityReasons

FROM_BEFORE = "Begin the capture before the brokers' clients connect, or restart them while it runs."
STATE = (
    "State what was in force: `--captured` with `max.incremental.fetch.session.cache.slots`, "
    "`min.incremental.fetch.session.eviction.ms`, `kafka`. Capture all listeners, including the inter-broker one."
)
CLIENT = "Check whether the client is Kafka's own or librdkafka: other clients have their own rules."
STATE_SHARES = (
    "State what was in force: `--captured=group.share.max.share.sessions=...`, `kafka`. Capture all listeners of the "
    "broker."
)

SESSIONS = FidelityReasons(
    "Fetch sessions",
    "session_cache",
    (
        "session_grants",
        "session_shards",
        "session_errors",
        "session_partitions",
        "incremental_responses",
        "session_requests",
    ),
    {
        "session_from_before_capture": FidelityReason(
            "The result depends on a session that was opened before the capture began, or of whose full fetch the "
            "capture lacks bytes.",
            f"{FROM_BEFORE} Capture whole packets (`-s 0`) and lose none (`-B`).",
            "unknown",
        ),
        "session_not_seen": FidelityReason(
            "A session that has been idle since before the capture began may hold the slot.",
            "Let the capture run for longer than `min.incremental.fetch.session.eviction.ms`: 2 minutes by default.",
            "unknown",
        ),
        "shard_unknown": FidelityReason(
            "No session id has yet shown which shard of the cache is next.",
            "Let the capture run longer: the first session granted on the broker shows it.",
            "unknown",
        ),
        "eviction_time": FidelityReason(
            "The response is within 2 ms of the time at which another result becomes right.",
            "Nothing: clocks are not exact enough.",
            "unknown",
        ),
        "close_grant_order": FidelityReason(
            "The close of a session and the response overlap in time, and the other order gives what was captured.",
            "Nothing: packets do not show it.",
            "unknown",
        ),
        "response_not_captured": FidelityReason(
            "The result depends on a request or response that the capture does not have, or has only in part, or on a "
            "new connection.",
            "Capture whole packets (`-s 0`) and lose none (`-B`).",
            "unknown",
        ),
        "order_inferred": FidelityReason(
            "The result agrees, in an order of overlapping responses that session ids show.", "Nothing.", "equal"
        ),
        "granted": FidelityReason("The capture has a session where the replay refuses one.", STATE, "different"),
        "refused": FidelityReason("The capture has no session where the replay grants one.", STATE, "different"),
        "other_shard": FidelityReason(
            "The session's id belongs to another shard than in the replay.", STATE, "different"
        ),
        "other_error": FidelityReason(
            "The capture has another session error than the replay, or only one of them has one.",
            STATE,
            "different",
        ),
        "other_partitions": FidelityReason(
            "The session, or an incremental response, has other partitions than in the replay.", CLIENT, "different"
        ),
        "other_request": FidelityReason(
            "The request's session, epoch or partitions are not what the client's rules say.", CLIENT, "different"
        ),
    },
)

SHARES = FidelityReasons(
    "Share sessions",
    "session_cache",
    ("share_grants", "share_errors", "share_requests"),
    {
        "share_session_from_before": FidelityReason(
            "The result depends on a share session that was opened before the capture began, or such a session may "
            "hold a place in the cache.",
            FROM_BEFORE,
            "unknown",
        ),
        "share_close_order": FidelityReason(
            "The close of a session, or the end of its connection, is within 100 ms of the response, and the other "
            "order gives what was captured.",
            "Nothing: packets do not show when a broker learns that a connection has ended.",
            "unknown",
        ),
        "connection_end_not_captured": FidelityReason(
            "The result depends on when connections with share sessions ended, and the capture does not show it.",
            "Capture packets: a request log does not show when connections end.",
            "unknown",
        ),
        "share_response_not_captured": FidelityReason(
            "The result depends on a request or response that the capture does not have, or has only in part.",
            "Capture whole packets (`-s 0`) and lose none (`-B`).",
            "unknown",
        ),
        "share_granted": FidelityReason(
            "The capture has a share session where the replay refuses one.", STATE_SHARES, "different"
        ),
        "share_refused": FidelityReason(
            "The capture refuses a share session where the replay grants one.", STATE_SHARES, "different"
        ),
        "other_share_error": FidelityReason(
            "The capture has another error of the share session than the replay, or only one of them has one.",
            STATE_SHARES,
            "different",
        ),
        "other_share_epoch": FidelityReason(
            "The request's epoch is not what the rules of Kafka's own client say.",
            "Check whether the client is Kafka's own: other clients have their own rules.",
            "different",
        ),
    },
)
