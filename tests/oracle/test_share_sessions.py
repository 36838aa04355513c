"""The replay of share sessions beside Kafka's own cache and clients, in closed loop on random events."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_shares import SHARE_LIMITS, SHARE_SESSIONS
from schemas.wire.errors import (
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
)
from tests.oracle.conftest import Jars, RunJava
from tests.oracle.test_fetch_sessions import METRICS_JAR, artifacts
from tests.unit.replay.session_cache.share_rows import Gold, end_row, release_row, request_row, share_gold, share_lanes

JARS = (
    *artifacts(
        "org.apache.kafka", "4.3.1", "kafka_2.13", "kafka-server", "kafka-server-common", "kafka-clients",
        "kafka-storage", "kafka-group-coordinator", "kafka-metadata",
    ),
    METRICS_JAR, "org.scala-lang:scala-library:2.13.18", "com.typesafe.scala-logging:scala-logging_2.13:3.9.5",
)  # fmt: skip
LIMITS = (3, 6, 9, 12)
MEMBERS, EVENTS = 14, 1500
FETCH, ACKNOWLEDGE, ANEW, WRONG, CLOSE, RELEASE, END = (
    "fetch", "acknowledge", "anew", "wrong", "close", "release", "end",
)  # fmt: skip
BEGIN_US = 1_000_000_000


@dataclass(frozen=True)
class Event:
    """A request of a member, the response that closes its session, or the end of a connection."""

    us: int
    act: str
    member: int
    connection: int

    def line(self) -> str:
        if self.act == END:
            return f"end c{self.connection}"
        return f"{self.act} g{self.member % 3} m{self.member} c{self.connection}"


def random_events(seed: int, acknowledge: float) -> list[Event]:
    """Members that fetch, acknowledge, and lose their connections. They come back on other connections, sometimes
    before the old one ends.

    acknowledge: the share of acknowledgements.
    """
    rng = np.random.default_rng(seed)
    connection_of = {member: member for member in range(MEMBERS)}
    used, us, events, lingering = MEMBERS, BEGIN_US, list[Event](), list[tuple[int, int]]()
    acts, lost = (FETCH, ACKNOWLEDGE, ANEW, WRONG, CLOSE, END), set(range(MEMBERS))
    for _ in range(EVENTS):
        us += int(rng.integers(200_000, 2_000_000))  # farther apart than events that may be reordered
        member = int(rng.integers(MEMBERS))
        act = str(rng.choice(acts, p=[0.81 - acknowledge, acknowledge, 0.05, 0.03, 0.05, 0.06]))
        act = ANEW if member in lost else act  # its connection ended, or it closed its session
        lost.discard(member)
        connection = connection_of[member]
        if act in (END, ANEW, CLOSE):
            connection_of[member], used = used, used + 1
        if act in (END, CLOSE):
            lost.add(member)
        if act == ANEW:  # the old connection ends later, or never
            lingering.append((member, connection))
            connection = connection_of[member]
        events.append(Event(us, act, member, connection))
        if act == CLOSE:
            events.append(Event(us + 1000, RELEASE, member, connection))
        if lingering and rng.random() < 0.1:
            us += 500_000
            events.append(Event(us, END, *lingering.pop(0)))
    return events


def kafkas_answers(run_java: RunJava, jars: Jars, events: list[Event]) -> dict[int, list[list[str]]]:
    """By limit: Kafka's answer to each event."""
    lines = [line for limit in LIMITS for line in (f"begin {limit}", *(event.line() for event in events))]
    told = [line.split() for line in run_java("ShareSessions.java", *jars(*JARS), stdin="\n".join(lines)).splitlines()]
    assert len(told) == len(LIMITS) * len(events)
    return {limit: told[i * len(events) : (i + 1) * len(events)] for i, limit in enumerate(LIMITS)}


def captured_rows(events: list[Event], answers: list[list[str]]) -> list[dict[str, object]]:
    """What a capture shows of Kafka's answers. It shows when each connection ended."""
    ends = {event.connection: event.us for event in events if event.act == END}
    rows = []
    for number, (event, answer) in enumerate(zip(events, answers, strict=True)):
        common = {"time": event.us, "connection_id": event.connection, "ended_time": ends.get(event.connection)}
        if event.act == END:
            rows.append(end_row(**common))
        elif len(answer) == 3 or event.act == RELEASE:
            of = {"group_id": f"g{event.member % 3}", "member_id": f"m{event.member}", "exchange_no": number}
            if event.act == RELEASE:
                rows.append(release_row(**common, **of))
                continue
            epoch, error, _ = map(int, answer)
            is_acknowledge = event.act in (ACKNOWLEDGE, CLOSE)
            rows.append(
                request_row(**common, **of, share_session_epoch=epoch, error_code=error, is_acknowledge=is_acknowledge)
            )
    return rows


def kafkas_counts(events: list[Event], answers: list[list[str]]) -> Counter[str]:
    counts, size = Counter[str](), 0
    for event, answer in zip(events, answers, strict=True):
        gone, size = size - int(answer[-1]), int(answer[-1])
        counts["dropped"] += gone if event.act == END else 0
        counts["closed"] += gone if event.act == RELEASE else 0
        if len(answer) == 3:
            epoch, error = int(answer[0]), int(answer[1])
            counts["requests"] += 1
            counts["created"] += epoch == 0 and error == 0
            counts["refused"] += error == SHARE_SESSION_LIMIT_REACHED
            counts["not_found"] += error == SHARE_SESSION_NOT_FOUND and epoch != -1
            counts["wrong_epoch"] += error == INVALID_SHARE_SESSION_EPOCH
    return counts


def sums_of_lanes(gold: Gold) -> dict[str, Counter[str]]:
    sums: dict[str, Counter[str]] = {}
    for row in gold[SHARE_SESSIONS.name]:
        names = ("requests", "created", "refused", "not_found", "wrong_epoch", "closed", "dropped")
        sums.setdefault(row["scenario"], Counter()).update({name: row[name] for name in names})
    return sums


@pytest.mark.parametrize("acknowledge", [0.0, 0.15])
@pytest.mark.parametrize("seed", range(6))
def test_every_limit_gives_what_kafka_gives(run_java: RunJava, jars: Jars, seed: int, acknowledge: float) -> None:
    events = random_events(seed, acknowledge)
    answers = kafkas_answers(run_java, jars, events)
    for captured, of_captured in answers.items():
        limits = (captured, *(limit for limit in LIMITS if limit != captured))
        gold = share_gold(captured_rows(events, of_captured), share_lanes(*limits))
        sums = sums_of_lanes(gold)
        # If the captured client had no session, it left out an acknowledgement, and no lane can know of it.
        for limit in [captured] if acknowledge else LIMITS:
            assert +sums[f"limit={limit}"] == +kafkas_counts(events, answers[limit]), (captured, limit)
        of_fidelity = Counter[str]()
        for row in gold[FIDELITY.name]:
            of_fidelity.update({name: row[name] for name in ("checked", "agreed", "unknown")})
            of_fidelity.update(dict(row["reasons"]))
        wrong = sum(event.act == WRONG for event in events)
        assert of_fidelity["checked"] - of_fidelity["agreed"] == of_fidelity["other_share_epoch"] <= wrong
        assert of_fidelity["unknown"] == 0
        [limit_row] = [row for row in gold[SHARE_LIMITS.name] if row["scenario"] == f"limit={captured}"]
        most = max(int(answer[-1]) for answer in of_captured)
        assert limit_row["sessions_at_least"] == limit_row["most_sessions"] == most
        assert limit_row["sessions_at_most"] == captured
