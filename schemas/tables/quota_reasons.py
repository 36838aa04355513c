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
            "What the producers sent before the capture began counts towards the quota for some seconds, and the "
            "capture does not show it.",
            "Begin the capture earlier than the time that matters, by `quota.window.num` windows.",
            "unknown",
        ),
        "quota_not_stated": FidelityReason(
            "The response is throttled, and nobody stated the producer's quota.", STATE_QUOTA, "unknown"
        ),
        "another_quota": FidelityReason(
            "The quota of bytes is not exceeded, and the response is throttled for no longer than a quota of "
            "`request_percentage` may throttle it (KIP-124).",
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
