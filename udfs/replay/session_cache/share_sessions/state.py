"""The records that the replay of share sessions works on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records

RELEASE, END, BEGAN_BEFORE, REQUEST = range(4)
"""Kinds of events: the response to a request that closes a session, a connection's end, a connection that began before
the capture, and a request. Events at the same time come in this order.
"""
INITIAL_EPOCH, FINAL_EPOCH, GREATEST_EPOCH = 0, -1, (1 << 31) - 1
"""org.apache.kafka.common.requests.ShareRequestMetadata: the epochs that open and close a session; the greatest
epoch."""
NO_ANSWER, EPOCH_UNKNOWN = -2, -2
"""The error of a request whose response is not captured; and the epoch of a member whose next epoch is not known."""
BY_RULES, BEGIN_ANEW, CLOSE, WRONG_EPOCH, FROM_BEFORE = range(5)
"""Why a member sends its request with this epoch: the session's rules give it; the member begins anew, as after the end
of a connection; it closes the session; no rule gives it; or the session is from before the capture.
"""
NEVER_CLOSED = -(1 << 62)
"""Stands for the time at which a session was closed last, if none was."""

SHARE_EVENT = np.dtype(
    [
        (name, np.int64)
        for name in (
            "us",  # when it happens
            "kind",  # RELEASE, END, BEGAN_BEFORE or REQUEST
            "life",  # of the broker
            "connection",  # its number
            "ended_us",  # when the connection ends, or NEVER
            "is_logged",  # a request log has it
            "member",  # the number of group and member
            "client",  # the number of the client id
            "epoch",
            "is_acknowledge",
            "error",  # of the response, or NO_ANSWER
        )
    ]
)
"""An event. Events of connections have no member."""

SHARE_SETTINGS = np.dtype([("limit", np.int64), ("marks_stale", np.int64)])
"""The settings of a lane for its cache. marks_stale: the end of a connection does not end a session that another
connection has opened since (Kafka 4.2).
"""
SHARE_SESSION = np.dtype([("epoch", np.int64), ("connection", np.int64), ("is_closing", np.int64)])
"""A member's session: the epoch of its next request, 0 if there is no session; the connection that opened it."""
OPENED = np.dtype([("member", np.int64), ("is_stale", np.int64)])
"""The session that a connection opened last: its member, NONE for no session; and whether it has gone since."""


class ShareCache(NamedTuple):
    """The caches of share sessions of all lanes."""

    settings: Records  # SHARE_SETTINGS[lanes]
    live: Ints  # int64[lanes]: sessions
    fullest: Ints  # int64[lanes]: the most sessions at once
    sessions: Records  # SHARE_SESSION[members, lanes]
    opened: Records  # OPENED[connections, lanes]


SHARE_SUMS = ("requests", "created", "refused", "not_found", "wrong_epoch", "closed", "dropped")
SHARE_OUTCOME = np.dtype([(name, np.int64) for name in (*SHARE_SUMS, "live_sessions")])
"""What a lane did in a bucket of time, and how many sessions it held at the end of the bucket."""
CAPTURED_SHARE_SUMS = ("requests", "created", "refused", "not_found", "wrong_epoch")
CAPTURED_SHARES = np.dtype([(name, np.int64) for name in CAPTURED_SHARE_SUMS])
"""What the capture shows in a bucket of time."""
LANE_MEMBER = np.dtype(
    [(name, np.int64) for name in ("epoch", "requests", "created", "refused", "waits_since_us", "last_us", "waited_us")]
)
"""A member in a lane. epoch: of its next request. waits_since_us: the first refusal since it last had a session."""


class ShareSim(NamedTuple):
    """A broker's share sessions in every lane."""

    cache: ShareCache
    members: Records  # LANE_MEMBER[members, lanes]
    outcomes: Records  # SHARE_OUTCOME[buckets, lanes]


SHOWN_MEMBER = np.dtype(
    [
        ("expected", np.int64),  # the epoch of its next request, or EPOCH_UNKNOWN
        ("is_certain", np.int64),  # the last response is captured
        ("ended_us", np.int64),  # when the connection of its session ends, or NEVER
        ("client", np.int64),  # the number of its client id
        ("connection", np.int64),  # of its last request
    ]
)
"""The state of a member after its captured requests so far."""
SHOWN = np.dtype(
    [
        (name, np.int64)
        for name in (
            "closed_us",  # when a session was closed last, or its connection ended
            "closing",  # sessions whose close has been requested and not yet answered
            "unseen",  # connections from before the capture that may have a session that no request has shown
            "at_least",  # the most sessions that the capture shows at once
            "at_most",  # the fewest sessions with which one was refused, or NEVER
        )
    ]
)
"""What the capture shows of the broker."""


class CapturedShareSessions(NamedTuple):
    """The captured broker, and how its rules agree with what it did."""

    cache: ShareCache  # of one lane; it follows the capture
    members: Records  # SHOWN_MEMBER[members]
    shown: Records  # SHOWN[1]
    unseen: Ints  # int64[connections]: 1 for a connection from before the capture that has shown no session
    counts: Records  # CAPTURED_SHARES[buckets]
    verdicts: Ints  # int64[members, metrics, verdicts]
