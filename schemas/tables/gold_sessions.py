"""The gold tables of the replay of fetch sessions (KIP-227)."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

BROKER = C("string", "The broker's node id, otherwise its address and port")

SESSION_CACHE = table(
    "session_cache", "gold",
    "What a broker's cache of fetch sessions would do, by lane and 10 s (KIP-227). It is in closed loop: clients "
    "follow the responses they would have got. Buckets without a fetch have no row.",
    ("run_id", "scenario", "broker", "bucket_start"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    bucket_start=C("timestamp", "When the 10 s begin", "UTC"),
    live_sessions=C("int", "Sessions at the end: Kafka's NumIncrementalFetchSessions"),
    follower_sessions=C("int", "... of which followers have; consumers have the others"),
    cached_partitions=C("bigint", "Partitions of these: Kafka's NumIncrementalFetchPartitionsCached"),
    shard_sessions=C("array<int>", "Most sessions in each shard at a time"),
    fetches=C("bigint", "Fetches, including those that a client repeats because of a session error"),
    full_fetches=C("bigint", "... that name every partition, and those that only close a session"),
    full_fetch_share=C("double", "full_fetches / fetches", nullable=True),
    created=C("bigint", "Sessions opened"),
    refused=C("bigint", "Full fetches that got no session for want of a slot; Kafka has no metric of it"),
    refused_despite_room=C("bigint", "... while another shard had a free slot"),
    refused_share=C("double", "refused / (created + refused)", nullable=True),
    evicted=C("bigint", "Sessions evicted for another: the count of Kafka's IncrementalFetchSessionEvictionsPerSec"),
    evicted_despite_room=C("bigint", "... while another shard had a free slot"),
    evictions_per_s=C("double", "evicted, by second of the 10 s, or of what a window has of them: Kafka's "
                                "IncrementalFetchSessionEvictionsPerSec"),
    not_found=C("bigint", "Fetches whose session was gone: FETCH_SESSION_ID_NOT_FOUND"),
    partitions_reread=C("bigint", "Partitions that full fetches name and read again, which incremental ones need not"),
    request_bytes=C("bigint", "Fetch requests on the wire, as captured except for what the lane changes", "bytes"),
    response_bytes=C("bigint", "Fetch responses on the wire, as captured except for what the lane changes", "bytes"),
    captured_fetches=C("bigint", "Captured: fetches"),
    captured_created=C("bigint", "Captured: sessions opened"),
    captured_refused=C("bigint", "Captured: full fetches that got none"),
    captured_not_found=C("bigint", "Captured: fetches whose session was gone"),
    captured_request_bytes=C("bigint", "Captured: Fetch requests on the wire", "bytes"),
    captured_response_bytes=C("bigint", "Captured: Fetch responses on the wire", "bytes"),
    unknown_fetches=C("bigint", "Captured fetches in sessions whose partitions are not all known"),
)  # fmt: skip

SESSION_EVICTIONS = table(
    "session_evictions", "gold", "Who evicts whose fetch session (KIP-227).",
    ("run_id", "scenario", "broker", "evictor", "evictor_reader", "victim", "victim_reader"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    evictor=C("string", "client.id of those whose sessions took the slots; empty for none"),
    evictor_reader=C("string", "consumer or follower"),
    victim=C("string", "client.id of those who lost them; empty for none"),
    victim_reader=C("string", "consumer or follower"),
    evictions=C("bigint", "Sessions"),
)  # fmt: skip

SESSION_SLOTS = table(
    "session_slots", "gold", "How many slots a broker needs, and how many it can have had (KIP-227).",
    ("run_id", "scenario", "broker"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    slots=C("bigint", "Sessions that all shards together can have: the setting, rounded down to whole shards"),
    shards=C("int", "Shards of the cache"),
    most_sessions=C("bigint", "Most sessions in a shard at a time"),
    zero_harm_slots=C("bigint", "max.incremental.fetch.session.cache.slots with which nobody is refused or evicted: "
                                "most sessions in a shard at a time without a limit, times the shards"),
    enough_slots=C("bigint", "... with which no client that still fetches is refused or evicted. Sessions idle longer "
                             "than min.incremental.fetch.session.eviction.ms may be evicted, if no client returned to "
                             "one; otherwise it is the same as zero_harm_slots"),
    slots_at_least=C("bigint", "The captured broker's slots: no fewer, because this many sessions existed at a time, "
                               "also before a window"),
    slots_at_most=C("bigint", "... and no more, because a shard with this many refused; null if no shard is known "
                              "to be full", nullable=True),
)  # fmt: skip

SESSION_TABLES = (SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS)
