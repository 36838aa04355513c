"""The gold tables of the replay of share sessions (KIP-932)."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

BROKER = C("string", "The broker's node id, otherwise its address and port")

SHARE_SESSIONS = table(
    "share_sessions", "gold",
    "What a broker's cache of share sessions would do, by lane and 10 s (KIP-932). It is in closed loop: members "
    "follow the responses they would have got. Buckets in which nothing happens to share sessions have no row.",
    ("run_id", "scenario", "broker", "bucket_start"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    bucket_start=C("timestamp", "When the 10 s begin", "UTC"),
    live_sessions=C("int", "Sessions at the end: Kafka's ShareSessionsCount"),
    requests=C("bigint", "ShareFetch and ShareAcknowledge requests"),
    created=C("bigint", "Sessions opened"),
    refused=C("bigint", "ShareFetches that got no session: SHARE_SESSION_LIMIT_REACHED, which Kafka has no metric of"),
    not_found=C("bigint", "Requests within a session that was gone: SHARE_SESSION_NOT_FOUND. Those that close one "
                          "do not count"),
    wrong_epoch=C("bigint", "Requests with an epoch that is not the session's: INVALID_SHARE_SESSION_EPOCH"),
    closed=C("bigint", "Sessions that their member closed"),
    dropped=C("bigint", "Sessions that went because their connection ended: the count of Kafka's "
                        "ShareSessionEvictionsPerSec"),
    captured_requests=C("bigint", "Captured: requests"),
    captured_created=C("bigint", "Captured: sessions opened"),
    captured_refused=C("bigint", "Captured: ShareFetches that got none"),
    captured_not_found=C("bigint", "Captured: requests within a session that was gone"),
    captured_wrong_epoch=C("bigint", "Captured: requests with a wrong epoch"),
)  # fmt: skip

SHARE_MEMBERS = table(
    "share_members", "gold", "Who gets a share session, who is refused one, and who waits for one (KIP-932).",
    ("run_id", "scenario", "broker", "group_id", "client_id", "member_id"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    group_id=C("string", "The share group; empty for none"),
    client_id=C("string", "client.id of the member; empty for none"),
    member_id=C("string", "The member; empty for none"),
    requests=C("bigint", "Requests"),
    created=C("bigint", "Sessions opened"),
    refused=C("bigint", "ShareFetches that got no session"),
    waited_ms=C("bigint", "Time from a first refusal until a session is opened, or until the member's last request",
                "ms"),
)  # fmt: skip

SHARE_LIMITS = table(
    "share_limits", "gold", "How many share sessions a broker needs, and how many it can have had (KIP-932).",
    ("run_id", "scenario", "broker"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    max_share_sessions=C("bigint", "group.share.max.share.sessions"),
    most_sessions=C("bigint", "Most sessions at a time"),
    needed_sessions=C("bigint", "group.share.max.share.sessions with which nobody is refused: most sessions at a time "
                                "without a limit"),
    sessions_at_least=C("bigint", "The captured broker's limit: no lower, because this many sessions existed at once"),
    sessions_at_most=C("bigint", "... and no higher, because it refused one with this many; null if it refused none",
                       nullable=True),
)  # fmt: skip

SHARE_TABLES = (SHARE_SESSIONS, SHARE_MEMBERS, SHARE_LIMITS)
