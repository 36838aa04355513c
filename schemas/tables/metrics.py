"""What the table `fidelity` compares, by algorithm."""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, Mapping[str, str]] = {
    "fetch_max_bytes": {
        "fetches_with_records": "Record bytes of every partition of a response with records",
        "empty_fetches": "... of one without",
        "closed_loop_order": "Closed loop: the nth part of a partition's backlog follows a part of the same "
        "partition. Here and everywhere in the closed loop, a segment is taken to end only where "
        "a captured read shows it",
        "closed_loop_bytes": "Closed loop: bytes read by the end of each 32nd of the captured time are as captured, "
        "within 1 % of all bytes. They may come 100 ms or 2 % of that time sooner or later",
        "closed_loop_catch_up": "Closed loop: a partition's backlog is read within 100 ms or 20 % of the time it took",
        "closed_loop_requests": "Closed loop: requests sent differ by no more than 3 or 10 %",
        "closed_loop_restarts": "Closed loop: a reader that leaves a partition out, or continues elsewhere in it, "
        "has read as far as the capture. 1 % of all bytes or the largest response is no "
        "difference",
        "fetcher_of_partition": "Followers: Kafka's rule gives a partition to the fetcher that fetched it, where a "
        "lane sets `num.replica.fetchers`. How many fetchers there were is seen from what they fetched",
        "produce_throttles": "Producers' quotas: the throttle time of a response to a Produce request, within 5 ms, "
        "where a lane sets or somebody states such a quota",
    },
    "session_cache": {
        "session_grants": "A full fetch gets a session, or is refused one",
        "session_shards": "... in the shard whose turn it is",
        "session_errors": "The error of a fetch in a session: none, FETCH_SESSION_ID_NOT_FOUND, "
        "INVALID_FETCH_SESSION_EPOCH or FETCH_SESSION_TOPIC_ID_ERROR",
        "session_partitions": "The partitions of a session",
        "incremental_responses": "The partitions of an incremental response",
        "session_requests": "Session, epoch and partitions of a request, by the client's rules",
        "share_grants": "Share groups: a ShareFetch that opens a session gets it, or is refused one",
        "share_errors": "... the error of another request: none, SHARE_SESSION_NOT_FOUND or "
        "INVALID_SHARE_SESSION_EPOCH",
        "share_requests": "... the epoch of a request, by the client's rules",
    },
    "consumer_memory": {
        "drained_partitions": "The next fetch of a partition begins where its records ended",
        "closed_loop_held": "Closed loop at the captured settings: most bytes in use in each 32nd of the captured "
        "time are as captured. They may differ by 10 % and 1 % of the peak, and come 100 ms or 2 "
        "% of that time sooner or later",
        "queue_decisions": "A librdkafka consumer that has a response finds its queue full, or fetches more at once. "
        "A backoff, 100 ms or 2 % of the captured time sooner or later is no difference",
        "batches_without_wait": "A captured batch of a producer waits for memory no longer than until its last record",
        "closed_loop_sends": "Closed loop at the captured settings, if a lane is replayed that way. A captured batch "
        "of a producer has memory for its first record no later than 100 ms after the capture "
        "has its last",
    },
    "batch_split": {
        "batches": "Where a captured batch ends: its records",
        "batches_in_one_order": "... in one order of closes, which is inferred from what all batches hold",
        "splits": "A batch above max.message.bytes is refused, and no other",
        "splits_replayed": "Splits of a producer that is replayed from its captured records, in that order",
        "recut_bytes_recompressed": "Bytes of a batch that a split made, within 5 %, by recompressed records",
        "recut_bytes_fitted": "... by a curve fitted to the captured batches",
        "recut_bytes_exact": "... within 0.5 %, by recompressing its very records, if a lane asks for that",
        "first_bytes_exact": "... of a batch that was sent first",
    },
    "partition_limits": {
        "create_topic, delete_topic, ...": "The error code of a change, by its kind as in topic_changes",
        "placements": "StripedReplicaPlacer can draw the replicas that Metadata shows",
    },
}
"""When two results agree, by algorithm and metric."""
