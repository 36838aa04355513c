"""What the table `fidelity` compares, by algorithm."""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, Mapping[str, str]] = {
    "fetch_max_bytes": {
        "fetches_with_records": "Record bytes of every partition, in a response that has records",
        "empty_fetches": "Record bytes of every partition, in a response that has no records",
        "closed_loop_order": "Closed loop: which partition is read just before the nth part of a "
        "partition's backlog. Here, and in all of the closed loop, a segment is "
        "assumed to end only where a captured read shows it",
        "closed_loop_bytes": "Closed loop: bytes read by the end of each 32nd of the captured time, "
        "within 1 % of all bytes. They may come sooner or later by 100 ms or 2 % of "
        "that time",
        "closed_loop_catch_up": "Closed loop: the time until a partition's backlog is read, within 100 ms or 20 %",
        "closed_loop_requests": "Closed loop: the number of requests, within 3 requests or 10 %",
        "closed_loop_restarts": "Closed loop: how far a reader has read a partition when it leaves the "
        "partition out, or continues elsewhere in it, within 1 % of all bytes or the "
        "largest response",
        "fetcher_of_partition": "Followers, if a lane sets `num.replica.fetchers`: the fetcher thread of a "
        "partition, by Kafka's rule. How many threads there were is derived from "
        "what they fetched",
        "produce_throttles": "Producers, if a lane sets or somebody states a quota: the throttle time in "
        "the response to a Produce request, within 5 ms",
    },
    "session_cache": {
        "session_grants": "Whether a full fetch gets a session or is refused one",
        "session_shards": "The shard of the cache in which a full fetch gets its session",
        "session_errors": "The error of a fetch in a session: none, FETCH_SESSION_ID_NOT_FOUND, "
        "INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR",
        "session_partitions": "The partitions of a session",
        "incremental_responses": "The partitions of an incremental response",
        "session_requests": "Session, epoch and partitions of a request, by the client's rules",
        "share_grants": "Share groups: whether a ShareFetch that opens a session gets it or is refused",
        "share_errors": "Share groups: the error of any other request: none, SHARE_SESSION_NOT_FOUND "
        "or INVALID_SHARE_SESSION_EPOCH",
        "share_requests": "Share groups: the epoch of a request, by the client's rules",
    },
    "consumer_memory": {
        "drained_partitions": "The offset at which the next fetch of a partition begins: where the records "
        "received before ended",
        "closed_loop_held": "Closed loop at the captured settings: most bytes in use in each 32nd of the "
        "captured time, within 10 % and 1 % of the peak. They may come sooner or "
        "later by 100 ms or 2 % of that time",
        "queue_decisions": "Whether a librdkafka consumer that has a response finds its queue full or "
        "fetches more at once. It may do so sooner or later by a backoff, 100 ms or "
        "2 % of the captured time",
        "batches_without_wait": "How long a captured batch of a producer waits for memory; it may wait no "
        "longer than until its last record",
        "closed_loop_sends": "Closed loop at the captured settings, if a lane is replayed that way: when "
        "a captured batch of a producer has memory for its first record; it may be "
        "no later than 100 ms after the capture has its last record",
    },
    "batch_split": {
        "batches": "Where a captured batch ends: which records it has",
        "batches_in_one_order": "Where a captured batch ends, if batches are closed in one order that is "
        "derived from the content of all batches",
        "splits": "Whether a batch is refused; only batches larger than max.message.bytes are",
        "splits_replayed": "The number of splits of a producer that is replayed from its captured records",
        "recut_bytes_recompressed": "Size of a batch that a split made, within 5 %, computed from recompressed records",
        "recut_bytes_fitted": "Size of a batch that a split made, within 5 %, by a curve fitted to the "
        "captured batches",
        "recut_bytes_exact": "Size of a batch that a split made, within 0.5 %, by compressing its own "
        "records again, if a lane asks for it",
        "first_bytes_exact": "Size of a batch that was sent for the first time, within 0.5 %, by "
        "compressing its own records again, if a lane asks for it",
    },
    "partition_limits": {
        "create_topic, delete_topic, ...": "The error code of a change; the metric is the kind of change, as in "
        "topic_changes",
        "placements": "The brokers of new replicas that Metadata shows: StripedReplicaPlacer can have drawn them",
    },
}
"""When two results agree, by algorithm and metric."""
