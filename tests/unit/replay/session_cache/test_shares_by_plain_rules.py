"""Share sessions of a captured broker are judged as plain rules say, one event at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_shares import SHARE_LIMITS, SHARE_SESSIONS
from schemas.tables.session_reasons import SHARES
from schemas.wire.errors import (
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
    UNSUPPORTED_VERSION,
)
from tests.unit.replay.session_cache.share_rows import (
    Row,
    began_row,
    end_row,
    release_row,
    request_row,
    share_gold,
    share_lanes,
)
from udfs.replay.session_cache.order import OVERLAP_US
from udfs.replay.session_cache.share_sessions.state import BEGAN_BEFORE, END, GREATEST_EPOCH, REQUEST

STEP = OVERLAP_US // 2
LAST = 40 * STEP
BEFORE_SESSION = (UNSUPPORTED_VERSION, INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED)
OF_SESSION = (SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED)
NOT_SHOWN = -2
ERRORS: list[int] = [0, NOT_SHOWN, *OF_SESSION, *BEFORE_SESSION]


def drawn(seed: int) -> list[Row]:
    """Events of three members on five connections. Their errors are those of a broker that follows no rules."""
    rng = np.random.default_rng(seed)
    ends = {number: int(rng.integers(5, 40)) * STEP for number in range(5) if rng.random() < 0.5}
    rows = [end_row(time=time, connection_id=number) for number, time in ends.items()]
    rows += [began_row(time=0, connection_id=number) for number in range(5) if rng.random() < 0.15]
    epochs = dict.fromkeys("abc", 0)
    for time in np.sort(rng.integers(1, 40, int(rng.integers(4, 25)))).tolist():
        member = str(rng.choice(["a", "b", "c"]))
        connection = "abc".index(member) if rng.random() < 0.85 else int(rng.integers(3, 5))
        if ends.get(connection, LAST) <= time * STEP:
            continue
        epoch = int(rng.choice([epochs[member], 0, -1, int(rng.integers(1, 5))], p=[0.5, 0.15, 0.25, 0.1]))
        error = int(rng.choice(ERRORS, p=[0.6, 0.08, 0.09, 0.06, 0.11, *[0.02] * 3]))
        of = {"time": time * STEP, "member_id": member, "client_id": f"app-{member}", "connection_id": connection}
        rows.append(
            request_row(
                **of, share_session_epoch=epoch, error_code=None if error == NOT_SHOWN else error,
                ended_time=ends.get(connection), is_acknowledge=bool(rng.random() < 0.1),
                is_logged=seed % 3 == 0,
            )
        )  # fmt: skip
        if epoch == -1 and rng.random() < 0.8:
            rows.append(release_row(**of | {"time": (time + int(rng.integers(0, 3))) * STEP}))
        epochs[member] = 0 if epoch < 0 or error in OF_SESSION else min(epoch + 1, GREATEST_EPOCH)
    return sorted(rows, key=lambda row: (row["time"], row["kind"]))


@dataclass
class Member:
    """What is known of a member. expected: the epoch of its next request, None if that is not known."""

    expected: int | None = None
    is_certain: bool = True
    connection: int | None = None
    ends_at: int = 1 << 60


@dataclass
class Session:
    connection: int
    epoch: int
    is_closing: bool = False


@dataclass
class Broker:
    """The captured broker. opened: by connection, the member whose session it opened last, and whether that is gone."""

    limit: int
    marks_stale: bool
    members: dict[str, Member] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    opened: dict[int, tuple[str, bool]] = field(default_factory=dict)
    unseen: set[int] = field(default_factory=set)
    verdicts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    closed_at: int = -(1 << 60)
    at_least: int = 0
    at_most: int | None = None

    def judge(self, event: Row, metric: str, word: str) -> None:
        self.verdicts[event["client_id"], metric, word] += 1

    def remove(self, member: str) -> None:
        session = self.sessions.pop(member)
        if self.marks_stale and session.connection in self.opened:
            self.opened[session.connection] = self.opened[session.connection][0], True

    def put(self, event: Row, epoch: int) -> None:
        self.sessions[event["member_id"]] = Session(event["connection_id"], epoch)
        self.opened[event["connection_id"]] = event["member_id"], False
        ends_at = event["ended_time"]
        self.members[event["member_id"]].ends_at = 1 << 60 if ends_at is None else ends_at
        self.unseen.discard(event["connection_id"])

    def closes_soon(self, now: int) -> bool:
        return any(session.is_closing or self.members[name].ends_at - now <= OVERLAP_US
                   for name, session in self.sessions.items())  # fmt: skip

    def note_most(self, now: int) -> None:
        if not self.closes_soon(now):
            self.at_least = max(self.at_least, len(self.sessions))

    def open(self, event: Row) -> None:
        """A request for a session."""
        now, error = event["time"], event["error_code"]
        if event["member_id"] in self.sessions:
            self.remove(event["member_id"])
        has_room = len(self.sessions) < self.limit
        if error is None:
            if has_room:
                self.put(event, 1)
            return
        is_shown = error != SHARE_SESSION_LIMIT_REACHED
        just_closed = now - self.closed_at <= OVERLAP_US
        if has_room == is_shown:
            word = "agreed"
        elif is_shown:
            word = SHARES.share_close_order if self.closes_soon(now) else SHARES.share_granted
        elif self.unseen:
            word = SHARES.share_session_from_before
        elif just_closed:
            word = SHARES.share_close_order
        else:
            word = SHARES.connection_end_not_captured if event["is_logged"] else SHARES.share_refused
        self.judge(event, "share_grants", word)
        self.unseen.discard(event["connection_id"])
        self.counts["created"] += is_shown
        if is_shown:
            self.put(event, 1)
            self.note_most(now)
        elif not self.unseen and not just_closed:
            self.at_most = min([len(self.sessions), *([] if self.at_most is None else [self.at_most])])

    def go_on(self, event: Row, *, is_from_before: bool) -> None:
        """A request in a session, or one that closes it."""
        now, error, epoch, name = event["time"], event["error_code"], event["share_session_epoch"], event["member_id"]
        if is_from_before and error != SHARE_SESSION_NOT_FOUND:
            self.put(event, epoch)
            self.note_most(now)
        session, member = self.sessions.get(name), self.members[name]
        by_rules = 0 if session else SHARE_SESSION_NOT_FOUND
        if session and epoch >= 0 and session.epoch != epoch:
            by_rules = INVALID_SHARE_SESSION_EPOCH
        shown = error if error in OF_SESSION else 0
        if error is not None:
            reasons = {
                SHARES.share_session_from_before: is_from_before,
                "agreed": by_rules == shown,
                SHARES.share_session_from_before + " ": member.expected is None,
                SHARES.share_response_not_captured: not member.is_certain,
                SHARES.share_close_order: now - self.closed_at <= OVERLAP_US,
                SHARES.other_share_error: True,
            }
            self.judge(event, "share_errors", next(word for word, holds in reasons.items() if holds).strip())
        follows = by_rules if error is None else shown
        if follows == SHARE_SESSION_NOT_FOUND and session:
            self.remove(name)
        if follows:
            return
        if epoch < 0 and session:
            session.is_closing = True
            if error is None:
                self.remove(name)
                self.closed_at = now
        elif epoch > 0 and session:
            session.epoch = epoch + 1
        elif epoch > 0:
            self.put(event, epoch + 1)

    def request(self, event: Row) -> None:
        error, epoch = event["error_code"], event["share_session_epoch"]
        member = self.members.setdefault(event["member_id"], Member())
        self.counts["requests"] += 1
        self.counts["refused"] += error == SHARE_SESSION_LIMIT_REACHED
        self.counts["not_found"] += error == SHARE_SESSION_NOT_FOUND and epoch >= 0
        self.counts["wrong_epoch"] += error == INVALID_SHARE_SESSION_EPOCH
        is_from_before = epoch > 0 and member.expected is None
        word = "agreed"
        if is_from_before:
            word = SHARES.share_session_from_before
        elif epoch > 0 and epoch != member.expected:
            word = SHARES.other_share_epoch if member.is_certain else SHARES.share_response_not_captured
        self.judge(event, "share_requests", word)
        if error not in BEFORE_SESSION:
            if epoch == 0 and not event["is_acknowledge"]:
                self.open(event)
            elif epoch != 0:
                self.go_on(event, is_from_before=is_from_before)
        member.expected = 0 if error in OF_SESSION else epoch if epoch < 0 else epoch + 1
        member.is_certain = error is not None

    def end(self, event: Row) -> None:
        """A connection ends, and with it the session that it opened last."""
        connection = event["connection_id"]
        was_unseen = connection in self.unseen
        self.unseen.discard(connection)
        member, is_stale = self.opened.pop(connection, ("", True))
        is_dropped = not is_stale and member in self.sessions
        if is_dropped:
            self.remove(member)
        if is_dropped or was_unseen:
            self.closed_at = event["time"]

    def happen(self, event: Row) -> None:
        if event["kind"] == REQUEST:
            self.request(event)
        elif event["kind"] == END:
            self.end(event)
        elif event["kind"] == BEGAN_BEFORE:
            self.unseen.add(event["connection_id"])
        elif event["member_id"] in self.sessions and self.sessions[event["member_id"]].is_closing:
            self.remove(event["member_id"])
            self.closed_at = event["time"]


@pytest.mark.parametrize("marks_stale", [0, 1])
@pytest.mark.parametrize("first", range(0, 120, 60))
def test_a_captured_broker_is_judged_as_plain_rules_say(first: int, marks_stale: int) -> None:
    words = set[str]()
    for seed in range(first, first + 60):
        events, plain = drawn(seed), Broker(1 + seed % 2, bool(marks_stale))
        for event in events:
            plain.happen(event)
        gold = share_gold(events, share_lanes(plain.limit, marks_stale=marks_stale))
        found = Counter[tuple[str, str, str]]()
        for row in gold[FIDELITY.name]:
            words_of = {"agreed": row["agreed"], **dict(row["reasons"])}
            found.update({(row["client_id"], row["metric"], word): count for word, count in words_of.items()})
        assert (seed, +found) == (seed, plain.verdicts)
        rows = gold[SHARE_SESSIONS.name]
        counted = Counter({name: sum(row[f"captured_{name}"] for row in rows) for name in plain.counts})
        assert (seed, +counted) == (seed, +plain.counts)
        limits = [(row["sessions_at_least"], row["sessions_at_most"]) for row in gold[SHARE_LIMITS.name]]
        assert (seed, limits) == (seed, [(plain.at_least, plain.at_most)] if plain.counts else [])
        words |= {word for _, _, word in plain.verdicts}
    assert words == {"agreed", *SHARES.words}
