"""Every reason that the table `fidelity` gives of fetch sessions."""

from __future__ import annotations

from schemas.tables.reason import FidelityReason, FidelityReasons

FROM_BEFORE = "Begin the capture before the brokers' clients connect, or restart them while it runs."
STATE = (
    "State what was in force: `--captured` with `max.incremental.fetch.session.cache.slots`, "
    "`min.incremental.fetch.session.eviction.ms`, `kafka`. Capture all listeners, including the inter-broker one."
)
CLIENT = "Check whether the client is one of Kafka's own or librdkafka: others have rules of their own."

SESSIONS = FidelityReasons(
    "Fetch sessions",
    "session_cache",
    (),
    {
        "session_from_before_capture": FidelityReason(
            "A session that was opened before the capture began decides.", FROM_BEFORE, "unknown"
        ),
        "session_not_seen": FidelityReason(
            "A session that has been idle since before the capture began may hold the slot.",
            "Let the capture run for longer than `min.incremental.fetch.session.eviction.ms`: 2 minutes by default.",
            "unknown",
        ),
        "shard_unknown": FidelityReason(
            "No session id has shown yet which of the cache's shards has its turn.",
            "Let the capture run longer: the first session granted on the broker shows it.",
            "unknown",
        ),
        "eviction_time": FidelityReason(
            "The response is within 2 ms of the time at which it would be a different one.",
            "Nothing: clocks are not more exact.",
            "unknown",
        ),
        "close_grant_order": FidelityReason(
            "A session's close and the response overlap in time; the other order gives what was captured.",
            "Nothing: packets do not show it.",
            "unknown",
        ),
        "response_not_captured": FidelityReason(
            "A request or response that is not in the capture, or is cut, or a new connection decides.",
            "Capture whole packets (`-s 0`) and lose none (`-B`).",
            "unknown",
        ),
        "order_inferred": FidelityReason(
            "It agrees; session ids show in which order overlapping responses were made.", "Nothing.", "equal"
        ),
        "granted": FidelityReason("The capture has a session where the replay refuses one.", STATE, "different"),
        "refused": FidelityReason("The capture has no session where the replay grants one.", STATE, "different"),
        "other_shard": FidelityReason(
            "The session's id belongs to another shard than the replay's.", STATE, "different"
        ),
        "other_error": FidelityReason(
            "The capture has another error of the session than the replay, or only one of them has one.",
            STATE,
            "different",
        ),
        "other_partitions": FidelityReason(
            "The session, or an incremental response, has other partitions than the replay's.", CLIENT, "different"
        ),
        "other_request": FidelityReason(
            "The request's session, epoch or partitions are not what the client's rules say.", CLIENT, "different"
        ),
    },
)
