"""The gold tables of the replay of share sessions (KIP-932)."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

BROKER = C("string", "The broker's node id, otherwise its address and port")

SHARE_SESSIONS = table(
    "share_sessions", "gold",
    "What a broker's cache of share sessions (KIP-932) would do, by lane and interval of 10 s. It is replayed in "
    "closed loop: members go on from the responses that they would get in the lane. Intervals in which nothing happens "
    "to share sessions have no row.",
    ("run_id", "scenario", "broker", "bucket_start"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    bucket_start=C("timestamp", "Start of the interval of 10 s", "UTC"),
    live_sessions=C("int", "Sessions at the end of the interval: Kafka's ShareSessionsCount"),
    requests=C("bigint", "ShareFetch and ShareAcknowledge requests"),
    created=C("bigint", "Sessions that are opened"),
    refused=C("bigint", "ShareFetches that get no session: SHARE_SESSION_LIMIT_REACHED. Kafka has no metric of it"),
    not_found=C("bigint", "Requests whose session is gone: SHARE_SESSION_NOT_FOUND. Requests that close a session do "
                          "not count"),
    wrong_epoch=C("bigint", "Requests whose epoch is not that of the session: INVALID_SHARE_SESSION_EPOCH"),
    closed=C("bigint", "Sessions that are closed by their member"),
    dropped=C("bigint", "Sessions that end because their connection ends: what Kafka's ShareSessionEvictionsPerSec "
                        "counts"),
    captured_requests=C("bigint", "ShareFetch and ShareAcknowledge requests in the capture"),
    captured_created=C("bigint", "Sessions that were opened in the capture"),
    captured_refused=C("bigint", "ShareFetches that got no session in the capture"),
    captured_not_found=C("bigint", "Requests whose session was gone in the capture"),
    captured_wrong_epoch=C("bigint", "Requests with a wrong epoch in the capture"),
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
    requests=C("bigint", "Requests of the member"),
    created=C("bigint", "Sessions that are opened"),
    refused=C("bigint", "ShareFetches that get no session"),
    waited_ms=C("bigint", "Time that the member waits for a session: from the first refusal until a session is opened, "
                          "or until the member's last request", "ms"),
)  # fmt: skip

SHARE_LIMITS = table(
    "share_limits", "gold",
    "How many share sessions (KIP-932) a broker needs room for, and which limits it can have had during the capture.",
    ("run_id", "scenario", "broker"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=BROKER,
    max_share_sessions=C("bigint", "group.share.max.share.sessions in the lane"),
    most_sessions=C("bigint", "Most sessions that exist at the same time"),
    needed_sessions=C("bigint", "group.share.max.share.sessions with which no member is refused: the most sessions "
                                "that exist at the same time if nothing limits them"),
    sessions_at_least=C("bigint", "Lowest limit that the captured broker can have had: the most sessions that existed "
                                  "at the same time"),
    sessions_at_most=C("bigint", "Highest limit that the captured broker can have had: with a higher one, it would "
                                 "have had room for a session that it refused. Null if it refused none", nullable=True),
)  # fmt: skip

SHARE_TABLES = (SHARE_SESSIONS, SHARE_MEMBERS, SHARE_LIMITS)
