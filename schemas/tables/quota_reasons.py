"""Every reason about producers' quotas that the table `fidelity` gives."""

from __future__ import annotations

from schemas.tables.reason import WHOLE, FidelityReason, FidelityReasons

STATE_QUOTA = (
    "State the quota that was in force, and its windows if they are not Kafka's default: "
    "`--captured=producer_byte_rate=...`."
)

THROTTLES = FidelityReasons(
    "Throttle times of producers",
    "fetch_max_bytes",
    ("produce_throttles",),
    {
        "no_response": FidelityReason("The throttle time of the response is not in the capture.", WHOLE, "unknown"),
        "sent_before": FidelityReason(
            "What the producers had sent before the capture began counts for some seconds, and packets do not show it.",
            "Begin the capture earlier than `quota.window.num` windows before what you want to know.",
            "unknown",
        ),
        "quota_not_stated": FidelityReason(
            "The response is throttled, and nobody stated the producer's quota.", STATE_QUOTA, "unknown"
        ),
        "another_quota": FidelityReason(
            "The response is throttled for no longer than `request_percentage` throttles (KIP-124), and the quota of "
            "bytes is not exceeded.",
            "Nothing: packets do not show how long a broker's threads worked on a request.",
            "unknown",
        ),
        "throttled_longer": FidelityReason(
            "The capture throttles the response for longer than the replay.", STATE_QUOTA, "different"
        ),
        "throttled_less": FidelityReason(
            "The capture throttles the response for less than the replay.", STATE_QUOTA, "different"
        ),
    },
)
