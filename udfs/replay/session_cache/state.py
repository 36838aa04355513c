"""The records that the replay of a broker's fetch sessions works on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records
from udfs.kernels.kernel import kernel
from udfs.replay.shared.int_map import IntMap
from udfs.wire.fetch_sizes import FIRST_WITH_TOPIC_IDS

NO_TIME = -1
SIZE_UNKNOWN = -1
EPOCH_UNKNOWN = -2
GREATEST_ID = (1 << 31) - 1
"""Java's Integer.MAX_VALUE, the greatest session id and the greatest epoch."""

UNSEEN = 0
"""The number of the client that stands for those whose sessions the capture does not show."""

BY_RULES, BEGIN_ANEW, RENEW, WITHOUT_SESSION, FROM_BEFORE, WRONG_EPOCH = range(6)
"""The acts of a client: what its rules say; a full fetch without a session; a full fetch that closes the session; a
fetch that wants no session; the first captured fetch of a session that was opened before the capture began; a fetch
with a wrong epoch, which the broker refuses."""
AS_EXPECTED, AFTER_LOSS, UNEXPECTED = range(3)
"""Whether the client's rules explain a fetch. AFTER_LOSS: that cannot be told, because a message before it was not
captured, or because it is the first fetch of a new connection."""

SESSION_FETCH = np.dtype(
    [
        # As captured.
        ("number", np.int64),  # its index among the broker's fetches
        ("connection", np.int64),
        ("request_us", np.int64),  # us since 1970
        ("response_us", np.int64),  # or NO_TIME
        ("request_bytes", np.int64),  # or SIZE_UNKNOWN
        ("response_bytes", np.int64),  # or SIZE_UNKNOWN
        ("first", np.int32),  # its partitions are rows [first, end)
        ("end", np.int32),
        ("broker", np.int32),  # the broker's and the client's numbers in Keys
        ("client", np.int32),
        ("life", np.int32),  # how often all connections to the broker had ended before
        ("session_id", np.int32),
        ("epoch", np.int32),  # or EPOCH_UNKNOWN, if the request is cut off before it
        ("response_session_id", np.int32),
        ("version", np.int16),
        ("error", np.int16),  # of the session, or 0
        ("privileged", np.int8),  # a follower sends it
        ("is_cut", np.int8),  # of the request only its times are known, and maybe its session and epoch
        ("is_throttled", np.int8),
        ("is_known", np.int8),  # all partitions that it wants are known
        # When the broker works on it, which client sent it, and why (clients.py).
        ("handled_us", np.int64),  # the broker answers a connection's requests one by one
        ("answered_us", np.int64),
        ("owner", np.int32),  # the client, by its number among the broker's
        ("name", np.int32),  # the client's id and address, and whether it is a follower, by number
        ("act", np.int8),  # the client's act: BY_RULES, or one of the acts after it
        ("expected", np.int8),  # AS_EXPECTED, AFTER_LOSS or UNEXPECTED
        ("is_lost", np.int8),  # the capture lacks the fetch that opened its session, or a later one
        ("is_handled", np.int8),  # its request has been replayed
        ("is_answered", np.int8),  # its response has been replayed
        # Its contents (contents/).
        ("size", np.int32),  # partitions wanted
        ("listed", np.int32),  # partitions that an incremental request names
        ("mislisted", np.int32),  # partitions of `listed` that the captured incremental request does not name
        ("returned", np.int32),  # partitions that an incremental response has
        ("misreturned", np.int32),  # partitions that only one of that and the captured incremental response has
        ("strayed", np.int32),  # partitions of a response that are not in the session, or that a full response lacks
        ("request_full", np.int64),  # bytes on the wire
        ("request_empty", np.int64),  # bytes without any partition
        ("request_incremental", np.int64),
        ("response_full", np.int64),
        ("response_incremental", np.int64),
        ("response_empty", np.int64),
    ],
    align=True,
)
"""A captured fetch."""

LISTED_PARTITION = np.dtype(
    [
        ("topic", np.int64),  # hash of its id or name
        ("fetch_offset", np.int64),
        ("high_watermark", np.int64),  # or NONE
        ("log_start_offset", np.int64),  # or NONE
        ("reader_log_start_offset", np.int64),
        ("records_bytes", np.int64),
        ("partition", np.int32),
        ("partition_max_bytes", np.int32),
        ("current_leader_epoch", np.int32),
        ("last_fetched_epoch", np.int32),
        ("diverging_epoch", np.int32),  # or NONE
        ("preferred_read_replica", np.int32),  # or NONE
        ("name_length", np.int32),  # bytes of the topic's name
        ("max_wait_ms", np.int32),  # the same for all partitions of a fetch, as are the next two
        ("response_session_id", np.int32),
        ("session_known", np.int8),
        ("is_wanted", np.int8),  # the broker reads it for the fetch
        ("is_listed", np.int8),  # the captured request names it
        ("is_returned", np.int8),  # the captured response has it
        ("error", np.int16),
    ],
    align=True,
)
"""A partition of a fetch, in the order in which the broker reads them."""

EVENT = np.dtype(
    [
        ("us", np.int64),
        ("fetch", np.int32),  # which of the fetches
        ("expected_shard", np.int32),  # the shard that the counter picks for a full response, or NONE
        ("is_response", np.int8),
        ("is_inferred", np.int8),  # its order follows from ids, not from packets
        ("is_certain", np.int8),  # the capture has all full responses since the last id for sure
    ],
    align=True,
)
"""An event: the broker handles a request, or answers it."""

SESSION_CLIENT = np.dtype(
    [
        ("id", np.int64),  # session id of the next request
        ("epoch", np.int64),
        ("connection", np.int64),
        ("answered_us", np.int64),  # when its last fetch was answered, or NO_TIME
        ("is_certain", np.int64),  # the last response was captured
        ("is_lost", np.int64),  # the capture lacks the fetch that opened its session, or a later one
    ]
)
"""The state of a client after its captured fetches so far."""

SESSION = np.dtype(
    [
        ("created_ms", np.int64),
        ("last_used_ms", np.int64),
        ("id", np.int32),
        ("owner", np.int32),  # the client
        ("epoch", np.int32),  # of the next request
        ("size", np.int32),  # partitions at the last touch
        ("uses_topic_ids", np.int8),
        ("privileged", np.int8),  # a follower's
        ("by_privileged", np.int8),  # in evictableByPrivileged
        ("by_all", np.int8),  # in evictableByAll
        ("is_partial", np.int8),  # opened before the capture began
    ],
    align=True,
)
"""A fetch session in a cache."""

FULL, INCREMENTAL, SESSIONLESS = range(3)
"""How a fetch is answered."""
LANE_CLIENT = np.dtype(
    [
        ("place", np.int32),  # place of the session that it opened last, or NONE
        ("id", np.int32),  # session id of the next request
        ("epoch", np.int32),
        ("answer", np.int32),  # to the current fetch: FULL, INCREMENTAL or SESSIONLESS
    ]
)
"""The state of a client in a lane."""

TOTALS = np.dtype(
    [
        ("partitions", np.int64),  # of all sessions
        ("followers", np.int64),  # sessions of followers
        ("placed", np.int64),  # how many full responses there were: the counter that picks the shard
        ("random_state", np.int64),  # state of the random ids
        ("fullest", np.int64),  # the most sessions that a shard has had
        ("not_found", np.int64),  # fetches whose session was gone
        ("room", np.int64),  # for how many sessions of a shard there is memory
    ]
)
"""Counts and state of a lane's whole cache."""


class Cache(NamedTuple):
    """The caches of all lanes. A shard's sessions are next to each other, in no order: shard s of a lane has the places
    from s * room on, of which the first `live` are taken.
    """

    settings: Records  # CACHE_SETTINGS[lanes]
    totals: Records  # TOTALS[lanes]
    sessions: Records  # SESSION[lanes, places]
    live: Ints  # int64[lanes, shards]: sessions of each shard
    clients: Records  # LANE_CLIENT[clients, lanes]
    headroom: Ints  # int64[1]: for how many more sessions there is memory in every shard


CACHE_SUMS = (
    "fetches",
    "full_fetches",
    "created",
    "refused",
    "refused_despite_room",
    "evicted",
    "evicted_despite_room",
    "not_found",
    "partitions_reread",
    "request_bytes",
    "response_bytes",
)
HOLDINGS = ("live_sessions", "follower_sessions", "cached_partitions")
CACHE_OUTCOME = np.dtype([(name, np.int64) for name in (*CACHE_SUMS, *HOLDINGS)])
"""What a lane did in a bucket of time, and what it held at the end of it: columns of the table SESSION_CACHE."""
CAPTURED_SUMS = ("fetches", "created", "refused", "not_found", "request_bytes", "response_bytes")
"""The sums that the capture shows as well."""
BUCKET = np.dtype([(name, np.int64) for name in ("number", *CAPTURED_SUMS, "unknown_fetches")])
"""A bucket of time, and what the capture shows in it. number: its begin, in lengths of a bucket since 1970."""
EVICTION = np.dtype([("lane", np.int64), ("evictor", np.int64), ("victim", np.int64)])
"""An eviction of a session for another one. evictor, victim: the numbers of the clients' names."""


class Buckets(NamedTuple):
    """The buckets of time that have not been written yet."""

    captured: Records  # BUCKET[room]
    outcomes: Records  # CACHE_OUTCOME[room, lanes]
    occupied: Ints  # int64[room, lanes, shards]: the most sessions of each shard at once
    used: Ints  # int64[1]: how many buckets there are


class BrokerSim(NamedTuple):
    """A broker in every lane, in closed loop. If a lane has more consumers (more_consumers.py), each is a client."""

    cache: Cache
    first_share: Ints  # int64[lanes]: the column of `shares_of_fetches` with the first consumer of each lane
    awaited: Ints  # int64[clients]: the number of the fetch whose response the client waits for, or NONE
    names: Ints  # int64[clients]: the name of each client's last fetch, by its number
    buckets: Buckets
    evictions: Records  # EVICTION[room]
    evicted: Ints  # int64[1]: how many evictions have been noted


SESSION_SPAN = np.dtype([("shard", np.int64), ("opened_us", np.int64), ("served_us", np.int64), ("gone_us", np.int64)])
"""A captured session: when a response opened it, when the last fetch found it, and the latest time of its end."""
REFUSAL = np.dtype([("shard", np.int64), ("us", np.int64)])
"""A full response without a session."""


class SessionSpans(NamedTuple):
    """The captured sessions of a broker, and the refusals."""

    spans: Records  # SESSION_SPAN[room]
    by_id: IntMap  # the span of each session id
    refusals: Records  # REFUSAL[room]
    used: Ints  # int64[2]: spans and refusals


class CapturedSessions(NamedTuple):
    """The captured broker, and how its rules agree with what it did."""

    cache: Cache  # of one lane; it follows the capture
    verdicts: Ints  # int64[names, metrics, verdicts]
    closed_us: Ints  # int64[shards]: when a session of the shard was closed last
    unseen: Records  # SESSION_FETCH[1]: a fetch of the client UNSEEN, handled when the first captured fetch was
    spans: SessionSpans


class Clients(NamedTuple):
    """A broker's clients, and the client of each connection and session."""

    state: Records  # SESSION_CLIENT[room]
    known: Ints  # int64[1]: how many clients there are
    by_connection: IntMap
    by_session: IntMap


@kernel
def uses_topic_ids(fetch: Record) -> int:
    """Whether a request names topics by their ids; in a session all requests do, or none (KIP-516)."""
    return 1 if fetch.version >= FIRST_WITH_TOPIC_IDS else 0


@kernel
def is_incremental(fetch: Record) -> bool:
    """Whether the captured request is in a session."""
    return bool(fetch.epoch > 0)


@kernel
def is_answer_known(fetch: Record) -> bool:
    """Whether the response is captured, and no quota emptied it."""
    return bool(fetch.response_us != NO_TIME and fetch.is_throttled == 0)
