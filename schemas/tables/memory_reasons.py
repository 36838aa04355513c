"""Every reason about the memory of consumers and producers that the table `fidelity` gives."""

from __future__ import annotations

from schemas.tables.fetch_reasons import CLOSED_OBSTACLES
from schemas.tables.reason import DIRECTION, SEVERAL_PROCESSES, WHOLE, FidelityReason, FidelityReasons

DRAINED = FidelityReasons(
    "Memory of responses: when it is released",
    "consumer_memory",
    ("drained_partitions",),
    {
        "not_fetched_again": FidelityReason(
            "The partition was not fetched again: it was paused, or given up by a consumer that assigns its partitions "
            "itself, or the capture ends.",
            "Let the capture run longer, and capture all members of the group from before they join.",
            "unknown",
        ),
        "taken_over": FidelityReason(
            "Another member of the consumer group fetched the partition next: the partition was revoked, and the "
            "consumer dropped the records that it had buffered.",
            "Nothing: the memory counts as held until later responses are drained, or until the consumer's next fetch.",
            "unknown",
        ),
        "given_up": FidelityReason(
            "The partition was not fetched again: the consumer was closed, left its group, or got another assignment.",
            "Nothing: the memory counts as held until the consumer leaves, or until later responses are drained.",
            "unknown",
        ),
        "offsets_unknown": FidelityReason("No whole batch shows where the response ended.", WHOLE, "unknown"),
        "another_connection": FidelityReason(
            "The next fetch came on another connection and begins at another offset: perhaps from another process with "
            "the same `client.id` and address.",
            "Give each process a `client.id` of its own.",
            "unknown",
        ),
        "several_processes": FidelityReason(
            "Several processes share the `client.id` and address, and it is not known which of them has the "
            "connection.",
            "Give each process a `client.id` of its own.",
            "unknown",
        ),
        "fetched_before_end": FidelityReason(
            "The next fetch begins before the end of what was received: the consumer went back.",
            "Nothing: the next fetch still shows when the memory of these responses is released.",
            "different",
        ),
        "fetched_beyond_end": FidelityReason(
            "The next fetch begins after the end of what was received: the consumer skipped something.",
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
        "several_processes": FidelityReason(
            "Closed loop: several processes share the `client.id` and address, and it is not known which of them has "
            "the connection.",
            "Give each process a `client.id` of its own.",
            "unknown",
        ),
        **CLOSED_OBSTACLES,
        "another_connection": FidelityReason(
            "Closed loop: several processes seem to share the `client.id` and address, and it is not known what each "
            "of them held.",
            "Give each process a `client.id` of its own.",
            "unknown",
        ),
        "more_held": FidelityReason("Closed loop: the replay held more bytes by then.", DIRECTION, "different"),
        "less_held": FidelityReason("Closed loop: the replay held fewer bytes by then.", DIRECTION, "different"),
        "after_giving_up": FidelityReason(
            "Closed loop: the replay held more or fewer bytes after the consumer had given up buffered records, mostly "
            "in a rebalance. In the replay, the application does not get back the time that those records would have "
            "taken.",
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
            "Batches are compressed, and `ingest` did not decompress them, so it is not known how full the queue was.",
            "Run `pipeline` with a setting of the queue, such as `--set=consumer.queued.max.messages.kbytes=16384`.",
            "unknown",
        ),
        "several_processes": FidelityReason(
            "Several processes share the `client.id` and address, and each has a queue of its own. It is not known "
            "which of them has which connection.",
            "Give each process a `client.id` of its own.",
            "unknown",
        ),
        "pace_unknown": FidelityReason(
            "The queue may have been full, but the consumer never waited because of it. So the capture does not show "
            "how fast the application takes messages.",
            "Capture while the application is behind, or state its pace: `--set=processing.us.per.record=...`.",
            "unknown",
        ),
        "waited_otherwise": FidelityReason(
            "The consumer fetched more only after a while, although its queue cannot have been full: it was paused or "
            "rebalanced, or has lower thresholds than the replay.",
            "State what was in force: `--captured=consumer.queued.max.messages.kbytes=...`, "
            "`consumer.queued.min.messages`, `consumer.fetch.queue.backoff.ms`.",
            "different",
        ),
        "asked_sooner": FidelityReason(
            "In the capture the consumer waits because its queue is full; in the replay it does not.",
            DIRECTION,
            "different",
        ),
        "held_back": FidelityReason(
            "In the replay the consumer waits because its queue is full; in the capture it does not.",
            DIRECTION,
            "different",
        ),
    },
)

BUFFERS = FidelityReasons(
    "Memory of producers",
    "consumer_memory",
    ("batches_without_wait", "closed_loop_sends"),
    {
        "not_a_java_client": FidelityReason(
            "The producer is not a Java client, and only the Java client's `buffer.memory` is replayed.",
            "Nothing.",
            "unknown",
        ),
        "several_processes": SEVERAL_PROCESSES,
        "waited_for_memory": FidelityReason(
            "In the replay, a captured batch waits for memory longer than it can have waited in the capture.",
            "State the producer's `buffer.memory` and `batch.size` if they are not Kafka's defaults: "
            "`--captured=producer.buffer.memory=...`.",
            "different",
        ),
        "sent_later": FidelityReason(
            "Closed loop: the replay has memory for the first record of a captured batch later than the capture.",
            "State the producer's settings, as for waited_for_memory; if several threads send, state how many: "
            "`--captured=sending.threads=...`. Otherwise take the lanes in closed loop (`times_of`) as a direction "
            "only.",
            "different",
        ),
    },
)
