"""Kafka's own FetchManager and FetchSessionHandler, in closed loop on random fetches, beside the replay of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.steps import SESSION_EVENTS
from tests.unit.replay.sessions import Gold, fetch_row, gold_rows, partition_row, rows_of_events
from udfs.replay.sessions.int_map import roomy
from udfs.replay.sessions.session_cache import ID_NOT_FOUND, CacheSettings
from udfs.replay.sessions.session_clients import Clients, new_clients, tell_clients
from udfs.replay.sessions.session_contents import CONTENTS, larger_memory, measure_all, new_memory
from udfs.replay.sessions.session_events import events_of
from udfs.replay.sessions.session_replay import SessionLanes
from udfs.wire.fetch_sizes import fetch_sizes

KAFKA = "4.3.1"
ARTIFACTS = (
    *(f"org.apache.kafka:{name}:{KAFKA}" for name in ("kafka-server", "kafka-server-common", "kafka-clients")),
    "com.yammer.metrics:metrics-core:2.2.0",
)
EVICTION_MS = 120_000
SLOTS = (8, 24, 40)
BY_RULES, BEGIN_ANEW, NETWORK_ERROR, CLOSE = range(4)
STEPS_MS = (1, 20, 500, 5_000, 30_000, 59_999, 60_000, 60_001, 119_999, 120_000, 120_001)
NOT_LEADER = 6


@dataclass(frozen=True)
class Wanted:
    """What a client wants at a time, and what there is for it."""

    ms: int
    client: int
    act: int
    throttled: int
    partitions: tuple[tuple[str, int, int, int, int, int, int], ...]

    @property
    def version(self) -> int:
        return 12 if self.client % 4 == 1 else 18

    @property
    def privileged(self) -> int:
        return int(self.client % 5 == 0)

    def line(self) -> str:
        parts = (":".join(map(str, part)) for part in self.partitions)
        name = f"client-{self.client}"
        return " ".join([f"{self.ms} {name} {self.privileged} {self.version} {self.act} {self.throttled}", *parts])


@dataclass(frozen=True)
class Request:
    """What Kafka's client sent, and what Kafka's broker said."""

    fetch: int
    session_id: int
    epoch: int
    error: int
    response_session_id: int
    listed: tuple[str, ...]
    forgotten: tuple[str, ...]
    returned: tuple[str, ...]


def random_fetches(seed: int, clients: int, count: int, *, restarts: bool) -> list[Wanted]:
    """Clients with one to three partitions more than the one before, so that no two have equally large sessions."""
    rng = np.random.default_rng(seed)
    ms, found = 1_000_000, []
    state: dict[tuple[int, str, int], list[int]] = {}
    for _ in range(count):
        ms += int(rng.choice(STEPS_MS, p=[0.3, 0.3, 0.2, 0.05, 0.04, 0.02, 0.02, 0.02, 0.02, 0.02, 0.01]))
        client = int(rng.integers(clients))
        act = int(rng.choice(4, p=[0.91, 0.03, 0.03, 0.03])) if restarts else BY_RULES
        names = [("ab"[p % 2], p) for p in range(3 * client + 1 + int(rng.integers(1, 4)))]
        rng.shuffle(names)
        partitions = []
        for topic, number in names:
            now = state.setdefault((client, topic, number), [0, 5, 0])
            error = NOT_LEADER if rng.random() < 0.03 else 0
            records = int(rng.choice([0, 70, 400])) if rng.random() < 0.2 and not error else 0
            now[1] += int(rng.random() < 0.2)
            now[2] += int(rng.random() < 0.02)
            hw, start = (-1, -1) if error else (now[1], now[2])
            partitions.append((topic, number, now[0], hw, start, records, error))
            now[0] += int(records > 0)
        throttled = int(restarts and rng.random() < 0.03)
        found.append(Wanted(ms, client, act, throttled, tuple(partitions)))
    return found


def requests_of(line: str) -> Request:
    fetch, session_id, epoch, error, answer, *lists = line.split()
    told = (tuple(words.split(",")) if words != "-" else () for words in lists)
    return Request(int(fetch), int(session_id), int(epoch), int(error), int(answer), *told)


def captured_rows(fetches: list[Wanted], requests: list[Request]) -> pa.RecordBatch:
    """What a capture shows of Kafka's requests; who begins anew or had a network error has a new connection."""
    rows, connection, attempts = [], Counter[int](), Counter[int]()
    for number, request in enumerate(requests):
        wanted = fetches[request.fetch]
        if attempts[request.fetch] == 0 and wanted.act in (BEGIN_ANEW, NETWORK_ERROR):
            connection[wanted.client] += 1
        us = 1000 * wanted.ms + 2 * attempts[request.fetch]
        attempts[request.fetch] += 1
        key = {
            SESSION_EVENTS.connection_id: 1000 * wanted.client + connection[wanted.client],
            SESSION_EVENTS.exchange_no: number, SESSION_EVENTS.request_time: us,
        }  # fmt: skip
        rows.append(
            fetch_row(
                **key, client_id=f"client-{wanted.client}", response_time=us + 1, api_version=wanted.version,
                session_id=request.session_id, session_epoch=request.epoch, fetch_error=request.error,
                throttle_time_ms=100 * wanted.throttled,
            )
        )  # fmt: skip
        for position, part in enumerate(wanted.partitions if request.error == 0 else ()):
            topic, partition, offset, high_watermark, start, records, error = part
            told = f"{topic}:{partition}"
            rows.append(
                partition_row(
                    **key, position=position, is_follower=bool(wanted.privileged), topic_key=ord(topic),
                    partition=partition, fetch_offset=offset, high_watermark=high_watermark, log_start_offset=start,
                    returned_bytes=records, error_code=error, is_listed=told in request.listed,
                    is_returned=told in request.returned, response_session_id=request.response_session_id,
                    partition_max_bytes=1000,
                )
            )  # fmt: skip
    return rows_of_events(rows)


@dataclass(frozen=True)
class Block:
    """Random fetches under some slots, what Kafka made of them, and the capture of it."""

    slots: int
    fetches: list[Wanted]
    requests: list[Request]

    @property
    def rows(self) -> pa.RecordBatch:
        return captured_rows(self.fetches, self.requests)


@pytest.fixture(scope="module")
def kafka(jar: Callable[[str], Path], run_java: Callable[..., str]) -> Callable[[int, int, bool], Block]:
    """Kafka's own account of random fetches by seed, slots and whether clients restart; one JVM for all."""
    asked = [
        (seed, slots, restarts, random_fetches(seed, 10, 300, restarts=restarts))
        for restarts in (True, False) for seed in range(3) for slots in SLOTS
    ]  # fmt: skip
    lines = [line for _, slots, _, fetches in asked for line in
             (f"{slots} {EVICTION_MS} 8", *(wanted.line() for wanted in fetches))]  # fmt: skip
    told = run_java("FetchSessions.java", *map(jar, ARTIFACTS), stdin="\n".join(lines) + "\n").splitlines()
    blocks: list[list[Request]] = []
    for request in map(requests_of, told):
        if request.fetch == 0 and (not blocks or blocks[-1][-1].fetch > 0):
            blocks.append([])
        blocks[-1].append(request)
    made = {
        (seed, slots, restarts): Block(slots, fetches, requests)
        for (seed, slots, restarts, fetches), requests in zip(asked, blocks, strict=True)
    }
    return lambda seed, slots, restarts: made[seed, slots, restarts]


def lanes_of(*slots: int) -> SessionLanes:
    """Lanes of today's Kafka."""
    n = len(slots)
    settings = CacheSettings(np.array(slots) // 8, np.full(n, 8), np.full(n, EVICTION_MS), np.zeros(n, np.int64))
    return SessionLanes(tuple(f"lane {lane}" for lane in range(n)), settings)


def expected_sums(block: Block) -> dict[str, int]:
    """What Kafka's requests and responses come to."""
    full = [r for r in block.requests if r.epoch == 0]
    placed = [r for r in full if not block.fetches[r.fetch].throttled]
    return {
        SESSION_CACHE.fetches: len(block.requests),
        SESSION_CACHE.full_fetches: len([r for r in block.requests if r.epoch <= 0]),
        SESSION_CACHE.created: len([r for r in placed if r.response_session_id]),
        SESSION_CACHE.refused: len([r for r in placed if not r.response_session_id]),
        SESSION_CACHE.not_found: len([r for r in block.requests if r.error == ID_NOT_FOUND]),
    }


def lane_sums(gold: Gold, lane: int, names: dict[str, int]) -> dict[str, int]:
    """The same of a lane."""
    rows = [row for row in gold[SESSION_CACHE.name] if row[SESSION_CACHE.scenario] == f"lane {lane}"]
    return {name: sum(row[name] for row in rows) for name in names}


@pytest.mark.parametrize("slots", SLOTS)
@pytest.mark.parametrize("seed", range(3))
def test_kafkas_own_sessions_are_what_the_captured_settings_give(
    kafka: Callable[[int, int, bool], Block], seed: int, slots: int
) -> None:
    block = kafka(seed, slots, True)
    gold = gold_rows([block.rows], lanes_of(slots))
    for row in gold[FIDELITY.name]:
        reasons = set(dict(row[FIDELITY.reasons])) - {"response_not_captured"}
        assert (row[FIDELITY.agreed], reasons) == (row[FIDELITY.checked], set()), row
    expected = expected_sums(block)
    assert slots > 8 or expected[SESSION_CACHE.refused] > 0
    assert lane_sums(gold, 0, expected) == expected


@pytest.mark.parametrize("captured", SLOTS)
@pytest.mark.parametrize("seed", range(3))
def test_other_slots_give_what_kafka_does_with_them(
    kafka: Callable[[int, int, bool], Block], seed: int, captured: int
) -> None:
    gold = gold_rows([kafka(seed, captured, False).rows], lanes_of(captured, *SLOTS))
    for lane, slots in enumerate(SLOTS, 1):
        expected = expected_sums(kafka(seed, slots, False))
        assert lane_sums(gold, lane, expected) == expected, f"{slots} slots"


@pytest.mark.parametrize("seed", range(3))
def test_incremental_requests_and_responses_list_what_kafkas_do(
    kafka: Callable[[int, int, bool], Block], seed: int
) -> None:
    block = kafka(seed, 40, True)
    fetches, rows = events_of(block.rows, {}, 0)
    clients, memory = new_clients(), new_memory()._replace(clients=np.zeros(len(fetches), CONTENTS))
    clients = clients._replace(state=np.resize(clients.state, len(fetches)))
    maps = (roomy(of, len(fetches)) for of in (clients.of_connection, clients.of_session))
    tell_clients(fetches, Clients(clients.state, clients.known, *maps))
    done = 0
    while (done := measure_all(fetches, done, rows, memory, fetch_sizes())) < len(fetches):
        memory = larger_memory(memory)
    incremental = [n for n, r in enumerate(block.requests) if r.epoch > 0 and r.error == 0]
    fine = [n for n in incremental if not block.fetches[block.requests[n].fetch].throttled]
    assert len(fine) > 100
    assert [int(fetches["listed"][n]) for n in incremental] == [len(block.requests[n].listed) for n in incremental]
    assert [int(fetches["returned"][n]) for n in fine] == [len(block.requests[n].returned) for n in fine]
    assert (int(fetches["mislisted"].sum()), int(fetches["misreturned"][fine].sum())) == (0, 0)
