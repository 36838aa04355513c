"""The gold tables of the replay of fetch sessions (KIP-227)."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

BROKER = C("string", "The broker's node id, otherwise its address and port")

SESSION_CACHE = table(
    "session_cache", "gold",
    "What a broker's cache of fetch sessions (KIP-227) would do, by lane and interval of 10 s. It is replayed in "
    "closed loop: clients go on from the responses that they would get in the lane. Intervals without a fetch have no "
    "row.",
    ("run_id", "scenario", "broker", "bucket_start"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    bucket_start=C("timestamp", "Start of the interval of 10 s, by the capture's clock", "UTC"),
    live_sessions=C("int", "Sessions at the end of the interval: Kafka's NumIncrementalFetchSessions"),
    follower_sessions=C("int", "How many of the live sessions belong to followers; the others belong to consumers"),
    cached_partitions=C("bigint", "Partitions of the live sessions: Kafka's NumIncrementalFetchPartitionsCached"),
    shard_sessions=C("array<int>", "For each shard of the cache, the most sessions that it holds at the same time"),
    fetches=C("bigint", "Fetches, including those that a client repeats because of a session error"),
    full_fetches=C("bigint", "Fetches that name all their partitions, and those that only close a session"),
    full_fetch_share=C("double", "full_fetches / fetches", nullable=True),
    created=C("bigint", "Sessions that are opened"),
    refused=C("bigint", "Full fetches that get no session because no slot is free; Kafka has no metric of it"),
    refused_despite_room=C("bigint", "Full fetches that are refused a session while another shard has a free slot"),
    refused_share=C("double", "refused / (created + refused)", nullable=True),
    evicted=C("bigint", "Sessions that are evicted for another: what Kafka's IncrementalFetchSessionEvictionsPerSec "
                        "counts"),
    evicted_despite_room=C("bigint", "Sessions that are evicted while another shard has a free slot"),
    evictions_per_s=C("double", "evicted per second of the interval, or of its part within the window. "
                                "By the brokers' clock: the rate of Kafka's IncrementalFetchSessionEvictionsPerSec"),
    not_found=C("bigint", "Fetches whose session is gone: FETCH_SESSION_ID_NOT_FOUND"),
    partitions_reread=C("bigint", "Partitions that full fetches name and read again, which incremental fetches would "
                                  "not need to"),
    request_bytes=C("bigint", "Bytes of Fetch requests on the wire, as captured except for what changes in the lane",
                    "bytes"),
    response_bytes=C("bigint", "Bytes of Fetch responses on the wire, as captured except for what changes in the lane",
                     "bytes"),
    captured_fetches=C("bigint", "Fetches in the capture"),
    captured_created=C("bigint", "Sessions that were opened in the capture"),
    captured_refused=C("bigint", "Full fetches that got no session in the capture"),
    captured_not_found=C("bigint", "Fetches whose session was gone in the capture"),
    captured_request_bytes=C("bigint", "Bytes of Fetch requests in the capture, on the wire", "bytes"),
    captured_response_bytes=C("bigint", "Bytes of Fetch responses in the capture, on the wire", "bytes"),
    unknown_fetches=C("bigint", "Captured fetches in sessions of which not all partitions are known"),
)  # fmt: skip

SESSION_EVICTIONS = table(
    "session_evictions", "gold", "Who evicts whose fetch session (KIP-227).",
    ("run_id", "scenario", "broker", "evictor", "evictor_reader", "victim", "victim_reader"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    evictor=C("string", "client.id of the clients whose new sessions took the slots; empty for none"),
    evictor_reader=C("string", "consumer or follower"),
    victim=C("string", "client.id of the clients that lost their sessions; empty for none"),
    victim_reader=C("string", "consumer or follower"),
    evictions=C("bigint", "Number of evicted sessions"),
)  # fmt: skip

SESSION_SLOTS = table(
    "session_slots", "gold",
    "How many fetch-session slots (KIP-227) a broker needs, and how many it can have had during the capture.",
    ("run_id", "scenario", "broker"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    slots=C("bigint", "Sessions that all shards together can hold: the setting, rounded down to a multiple of the "
                      "shards"),
    shards=C("int", "Number of shards of the cache"),
    most_sessions=C("bigint", "Most sessions that one shard holds at the same time"),
    zero_harm_slots=C("bigint", "max.incremental.fetch.session.cache.slots with which no session is refused or "
                                "evicted: the most sessions that one shard holds at the same time if nothing limits "
                                "them, times the shards"),
    enough_slots=C("bigint", "max.incremental.fetch.session.cache.slots with which no client that still fetches is "
                             "refused a session or loses one. A session that was idle for longer than "
                             "min.incremental.fetch.session.eviction.ms may be evicted, if no client came back to such "
                             "a session; otherwise the same as zero_harm_slots"),
    slots_at_least=C("bigint", "Fewest slots that the captured broker can have had: the most sessions that one shard "
                               "held at the same time, also before a window, times the shards"),
    slots_at_most=C("bigint", "Most slots that the captured broker can have had: with more, the shard that refused a "
                              "session would have had room. Null if no shard is known to have been full",
                    nullable=True),
)  # fmt: skip

SESSION_TABLES = (SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS)
