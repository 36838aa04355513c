"""Every reason about the memory of consumers and producers that the table `fidelity` gives."""

from __future__ import annotations

from schemas.tables.fetch_reasons import CLOSED_OBSTACLES
from schemas.tables.reason import DIRECTION, WHOLE, FidelityReason, FidelityReasons

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
