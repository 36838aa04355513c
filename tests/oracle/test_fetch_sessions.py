"""The replay of sessions beside Kafka's own FetchManager and FetchSessionHandler, in closed loop on random fetches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.steps import SESSION_EVENTS
from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND, FETCH_SESSION_TOPIC_ID_ERROR, INVALID_FETCH_SESSION_EPOCH
from tests.oracle.conftest import Jars, RunJava
from tests.unit.replay.session_cache.event_rows import Gold, fetch_row, gold_rows, partition_row, rows_of_events
from udfs.columns.arrays import Records, read_only
from udfs.replay.session_cache.cache import next_epoch
from udfs.replay.session_cache.clients import larger_clients, new_clients, note_clients
from udfs.replay.session_cache.contents.measure import measure_all
from udfs.replay.session_cache.contents.state import new_contents, with_entries, with_stretches
from udfs.replay.session_cache.events import Keys, parts_by_life
from udfs.replay.session_cache.settings import SessionLanes, cache_settings, eviction_rules, shards_of_release
from udfs.replay.session_cache.state import GREATEST_ID

METRICS_JAR = "com.yammer.metrics:metrics-core:2.2.0"
EVICTION_MS = 120_000
SLOTS = (8, 24, 40)
BY_RULES, BEGIN_ANEW, NETWORK_ERROR, CLOSE, WRONG_EPOCH, LATER = range(6)
STEPS_MS = (1, 20, 500, 5_000, 30_000, 59_999, 60_000, 60_001, 119_999, 120_000, 120_001)
NOT_LEADER = 6
WITHOUT_TOPIC_IDS = 12


@dataclass(frozen=True)
class Release:
    """A release whose own classes are run, the profile that replays it, and what its clients can do."""

    profile: str
    source: str
    artifacts: tuple[str, ...]
    newest_fetch: int
    has_topic_ids: bool = True

    @property
    def shards(self) -> int:
        return shards_of_release(self.profile)

    @property
    def rules(self) -> int:
        return eviction_rules(self.profile)


def artifacts(group: str, version: str, *names: str) -> tuple[str, ...]:
    """Maven artifacts of one version."""
    return tuple(f"{group}:{name}:{version}" for name in names)


KAFKA_4_3 = Release(
    "4.3", "FetchSessions.java",
    (*artifacts("org.apache.kafka", "4.3.1", "kafka-server", "kafka-server-common", "kafka-clients"), METRICS_JAR), 18,
)  # fmt: skip
KAFKA_3_7 = Release(
    "3.7", "FetchSessionsOf37.java",
    (
        *artifacts("org.apache.kafka", "3.7.2", "kafka_2.13", "kafka-server-common", "kafka-clients"), METRICS_JAR,
        "org.scala-lang:scala-library:2.13.12", "com.typesafe.scala-logging:scala-logging_2.13:3.9.5",
        "commons-validator:commons-validator:1.7",
    ), 16,
)  # fmt: skip
KAFKA_2_4 = Release(
    "2.4", "FetchSessionsOf24.java",
    (
        *artifacts("org.apache.kafka", "2.4.1", "kafka_2.12", "kafka-clients"), METRICS_JAR,
        "org.scala-lang:scala-library:2.12.8", "com.typesafe.scala-logging:scala-logging_2.12:3.9.2",
    ), 11, has_topic_ids=False,
)  # fmt: skip
RELEASES = (KAFKA_4_3, KAFKA_3_7, KAFKA_2_4)


@dataclass(frozen=True)
class Wanted:
    """A fetch that a client wants to make at a time, and what the broker has for it."""

    ms: int
    client: int
    version: int
    again: int  # the version of the request after a session error
    act: int
    throttled: int
    partitions: tuple[tuple[str, int, int, int, int, int, int], ...]

    @property
    def privileged(self) -> int:
        return int(self.client % 5 == 0)

    def line(self) -> str:
        parts = (":".join(map(str, part)) for part in self.partitions)
        name = f"client-{self.client}"
        return " ".join(
            [f"{self.ms} {name} {self.privileged} {self.version} {self.again} {self.act} {self.throttled}", *parts]
        )


@dataclass(frozen=True)
class Request:
    """What Kafka's client sent, what Kafka's broker answered, and the partitions in the order in which it read them."""

    fetch: int
    session_id: int
    epoch: int
    error: int
    response_session_id: int
    request_bytes: int
    response_bytes: int
    listed: tuple[str, ...]
    forgotten: tuple[str, ...]
    returned: tuple[str, ...]
    read: tuple[str, ...]


def random_act(rng: np.random.Generator, release: Release) -> int:
    """What a client does: mostly what its rules say. Clients of 2.4 cannot close their session."""
    act = int(rng.choice(6, p=[0.85, 0.03, 0.03, 0.03, 0.03, 0.03]))
    return BY_RULES if act == CLOSE and not release.has_topic_ids else act


def random_version(rng: np.random.Generator, release: Release, client: int, change: float) -> int:
    """Some clients fetch without topic ids. With the probability `change` a client does the other, as it would for a
    topic without an id.
    """
    without = (client % 4 == 1) != (rng.random() < change)
    return min(WITHOUT_TOPIC_IDS, release.newest_fetch) if without else release.newest_fetch


def random_fetches(release: Release, seed: int, clients: int, count: int, *, restarts: bool) -> list[Wanted]:
    """Client n has 3n + 2 to 3n + 4 partitions, so that no two clients have sessions of the same size."""
    rng = np.random.default_rng(seed)
    ms = 1_000_000
    fetches: list[Wanted] = []
    state: dict[tuple[int, str, int], list[int]] = {}
    for _ in range(count):
        ms += int(rng.choice(STEPS_MS, p=[0.3, 0.3, 0.2, 0.05, 0.04, 0.02, 0.02, 0.02, 0.02, 0.02, 0.01]))
        client = int(rng.integers(clients))
        act = random_act(rng, release) if restarts else BY_RULES
        names = [("abc"[p % 3], p) for p in range(3 * client + 1 + int(rng.integers(1, 4)))]
        rng.shuffle(names)
        if restarts and fetches and rng.random() < 0.02:
            names = []
        partitions = []
        for topic, number in names:
            offsets = state.setdefault((client, topic, number), [0, 5, 0])
            error = NOT_LEADER if rng.random() < 0.03 else 0
            records = int(rng.choice([0, 70, 400])) if rng.random() < 0.2 and not error else 0
            offsets[1] += int(rng.random() < 0.2)
            offsets[2] += int(rng.random() < 0.02)
            hw, start = (-1, -1) if error else (offsets[1], offsets[2])
            partitions.append((topic, number, offsets[0], hw, start, records, error))
            offsets[0] += int(records > 0)
        throttled = int(restarts and act != WRONG_EPOCH and rng.random() < 0.03)
        version = random_version(rng, release, client, 0.03)
        again = random_version(rng, release, client, 0.3) if restarts else version
        fetches.append(Wanted(ms, client, version, again, act, throttled, tuple(partitions)))
    return fetches


def requests_of(line: str) -> Request:
    words = line.split()
    fetch, session_id, epoch, error, response_session_id, request_bytes, response_bytes = map(int, words[:7])
    listed, forgotten, returned, read = (tuple(names.split(",")) if names != "-" else () for names in words[7:])
    return Request(
        fetch,
        session_id,
        epoch,
        error,
        response_session_id,
        request_bytes,
        response_bytes,
        listed,
        forgotten,
        returned,
        read,
    )


def captured_rows(fetches: list[Wanted], requests: list[Request]) -> pa.RecordBatch:
    """What a capture shows of Kafka's requests. A client that begins anew or had a network error connects anew."""
    rows, connection, attempts = [], Counter[int](), Counter[int]()
    for number, request in enumerate(requests):
        wanted = fetches[request.fetch]
        if attempts[request.fetch] == 0 and wanted.act in (BEGIN_ANEW, NETWORK_ERROR):
            connection[wanted.client] += 1
        us = 1000 * wanted.ms + 2 * attempts[request.fetch]
        version = wanted.again if attempts[request.fetch] else wanted.version
        attempts[request.fetch] += 1
        key = {
            SESSION_EVENTS.connection_id: 1000 * wanted.client + connection[wanted.client],
            SESSION_EVENTS.exchange_no: number, SESSION_EVENTS.request_time: us,
        }  # fmt: skip
        rows.append(
            fetch_row(
                **key, client_id=f"client-{wanted.client}", response_time=us + 1, api_version=version,
                session_id=request.session_id, session_epoch=request.epoch, fetch_error=request.error,
                throttle_time_ms=100 * wanted.throttled, is_follower=bool(wanted.privileged),
            )
        )  # fmt: skip
        answers = {f"{topic}:{partition}": rest for topic, partition, *rest in wanted.partitions}
        is_refused = request.error != 0
        for position, name in enumerate(request.listed if is_refused else request.read):
            topic, partition = name.split(":")
            offset, high_watermark, start, records, error = answers[name]
            rows.append(
                partition_row(
                    **key, position=position,
                    topic_key=ord(topic) + (version > WITHOUT_TOPIC_IDS) * 1000, partition=int(partition),
                    fetch_offset=offset, high_watermark=high_watermark, log_start_offset=start, returned_bytes=records,
                    error_code=error, is_wanted=not is_refused, is_listed=name in request.listed,
                    is_returned=name in request.returned,
                    response_session_id=request.response_session_id, partition_max_bytes=1000,
                )
            )  # fmt: skip
    return rows_of_events(rows)


@dataclass(frozen=True)
class Block:
    """Random fetches with this number of slots, Kafka's requests for them, and what a capture shows."""

    release: Release
    slots: int
    fetches: list[Wanted]
    requests: list[Request]

    @property
    def rows(self) -> pa.RecordBatch:
        return captured_rows(self.fetches, self.requests)

    def lanes(self, *slots: int) -> SessionLanes:
        """The captured lane, and lanes with other slots of the same release."""
        settings = cache_settings([self.slots, *slots], self.release.shards, EVICTION_MS, self.release.rules)
        return SessionLanes(tuple(f"lane {lane}" for lane in range(len(settings))), settings)


Blocks = Callable[[int, int, bool], Block]


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.profile)
def kafka(request: pytest.FixtureRequest, jars: Jars, run_java: RunJava) -> Blocks:
    """What a release's classes do with random fetches, by seed, slots and whether clients restart. One JVM starts."""
    release: Release = request.param
    cases = [
        (seed, slots, restarts, random_fetches(release, seed, 10, 300, restarts=restarts))
        for restarts in (True, False) for seed in range(3) for slots in SLOTS
    ]  # fmt: skip
    lines = [line for _, slots, _, fetches in cases for line in
             (f"{slots} {EVICTION_MS} {release.shards}", *(wanted.line() for wanted in fetches))]  # fmt: skip
    answers = run_java(release.source, *jars(*release.artifacts), stdin="\n".join(lines) + "\n").splitlines()
    blocks: list[list[Request]] = []
    for request_of_case in map(requests_of, answers):
        if request_of_case.fetch == 0 and (not blocks or blocks[-1][-1].fetch > 0):
            blocks.append([])
        blocks[-1].append(request_of_case)
    made = {
        (seed, slots, restarts): Block(release, slots, fetches, requests)
        for (seed, slots, restarts, fetches), requests in zip(cases, blocks, strict=True)
    }
    return lambda seed, slots, restarts: made[seed, slots, restarts]


def expected_sums(block: Block) -> dict[str, int]:
    """The sums over Kafka's requests and responses."""
    full = [r for r in block.requests if r.epoch == 0]
    placed = [r for r in full if not block.fetches[r.fetch].throttled]
    return {
        SESSION_CACHE.fetches: len(block.requests),
        SESSION_CACHE.full_fetches: len([r for r in block.requests if r.epoch <= 0]),
        SESSION_CACHE.created: len([r for r in placed if r.response_session_id]),
        SESSION_CACHE.refused: len([r for r in placed if not r.response_session_id]),
        SESSION_CACHE.not_found: len([r for r in block.requests if r.error == FETCH_SESSION_ID_NOT_FOUND]),
    }


def lane_sums(gold: Gold, lane: int, names: dict[str, int]) -> dict[str, int]:
    """The same sums in a lane."""
    rows = [row for row in gold[SESSION_CACHE.name] if row[SESSION_CACHE.scenario] == f"lane {lane}"]
    return {name: sum(row[name] for row in rows) for name in names}


@pytest.mark.parametrize("slots", SLOTS)
@pytest.mark.parametrize("seed", range(3))
def test_kafkas_own_sessions_are_what_the_captured_settings_give(kafka: Blocks, seed: int, slots: int) -> None:
    block = kafka(seed, slots, True)
    gold = gold_rows([block.rows], block.lanes())
    out_of_turn = 0
    for row in gold[FIDELITY.name]:
        reasons = dict(row[FIDELITY.reasons])
        reasons.pop("response_not_captured", None)
        if row[FIDELITY.metric] == "session_requests":
            wrong = reasons.pop("other_request", 0)
            out_of_turn += wrong
        else:
            wrong = 0
        assert (row[FIDELITY.agreed], reasons) == (row[FIDELITY.checked] - wrong, {}), row
    wrong_epochs = [r for r in block.requests if block.fetches[r.fetch].act == WRONG_EPOCH and r.epoch > 0]
    assert out_of_turn == len(wrong_epochs)
    expected = expected_sums(block)
    assert slots > 8 or expected[SESSION_CACHE.refused] + expected[SESSION_CACHE.not_found] > 0
    assert lane_sums(gold, 0, expected) == expected


@pytest.mark.parametrize("captured", SLOTS)
@pytest.mark.parametrize("seed", range(3))
def test_other_slots_give_what_kafka_does_with_them(kafka: Blocks, seed: int, captured: int) -> None:
    block = kafka(seed, captured, False)
    gold = gold_rows([block.rows], block.lanes(*SLOTS))
    for lane, slots in enumerate(SLOTS, 1):
        expected = expected_sums(kafka(seed, slots, False))
        assert lane_sums(gold, lane, expected) == expected, f"{slots} slots"


def test_each_error_of_a_session_is_among_them(kafka: Blocks) -> None:
    requests = [(block, r) for seed in range(3) for slots in SLOTS for block in [kafka(seed, slots, True)]
                for r in block.requests]  # fmt: skip
    errors = {r.error for _, r in requests}
    has_ids = requests[0][0].release.has_topic_ids
    assert errors == {
        0,
        FETCH_SESSION_ID_NOT_FOUND,
        INVALID_FETCH_SESSION_EPOCH,
        *((FETCH_SESSION_TOPIC_ID_ERROR,) if has_ids else ()),
    }
    emptied = [r for block, r in requests if r.epoch > 0 and not block.fetches[r.fetch].partitions and not r.error]
    assert emptied
    assert {r.response_session_id for r in emptied} == {0}
    assert any(r.forgotten for _, r in requests)


def measured(block: Block) -> Records:
    """Every fetch with its measured content."""
    ((fetches, rows),) = parts_by_life([block.rows], Keys())
    fetches["number"] = np.arange(len(fetches))
    clients, done = new_clients(), 0
    while (done := note_clients(fetches, done, read_only(rows), clients)) < len(fetches):
        clients = larger_clients(clients)
    contents, done = with_stretches(new_contents(), len(clients.state)), 0
    while (done := measure_all(fetches, done, read_only(rows), contents)) < len(fetches):
        contents = with_entries(contents)
    return fetches


@pytest.mark.parametrize("seed", range(3))
def test_incremental_requests_and_responses_list_what_kafkas_do(kafka: Blocks, seed: int) -> None:
    block = kafka(seed, 40, True)
    fetches = measured(block)
    incremental = [n for n, r in enumerate(block.requests) if r.epoch > 0 and r.error == 0]
    fine = [n for n in incremental if not block.fetches[block.requests[n].fetch].throttled]
    assert len(fine) > 80
    assert [int(fetches["listed"][n]) for n in incremental] == [len(block.requests[n].listed) for n in incremental]
    assert [int(fetches["returned"][n]) for n in fine] == [len(block.requests[n].returned) for n in fine]
    assert (int(fetches["mislisted"].sum()), int(fetches["misreturned"][fine].sum())) == (0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_bodies_are_as_long_as_kafkas(kafka: Blocks, seed: int) -> None:
    block = kafka(seed, 40, True)
    fetches = measured(block)
    sizes = {"request": "request_bytes", "response": "response_bytes"}
    for n, request in enumerate(block.requests):
        if request.error or request.request_bytes < 0 or block.fetches[request.fetch].throttled:
            continue
        kind = "full" if request.epoch <= 0 else "incremental"
        ours = {name: int(fetches[f"{name}_{kind}"][n]) for name in sizes}
        assert ours == {name: getattr(request, field) for name, field in sizes.items()}, (n, request)


@pytest.mark.parametrize("seed", range(3))
def test_what_kafka_refuses_is_as_long_as_kafkas_but_for_what_it_forgets(kafka: Blocks, seed: int) -> None:
    block = kafka(seed, 24, True)
    fetches = measured(block)
    refused = [(n, r) for n, r in enumerate(block.requests) if r.error and not r.forgotten and r.request_bytes >= 0]
    ours = [(int(fetches["request_incremental"][n]), int(fetches["response_empty"][n])) for n, _ in refused]
    assert ours == [(r.request_bytes, r.response_bytes) for _, r in refused]
    assert any(r.listed for _, r in refused) == block.release.has_topic_ids


def test_an_epoch_follows_another_as_in_kafka(jars: Jars, run_java: RunJava) -> None:
    epochs = [-2, -1, 0, 1, 2, GREATEST_ID - 1, GREATEST_ID]
    answer = run_java("NextEpochs.java", *jars(KAFKA_4_3.artifacts[2]), stdin=" ".join(map(str, epochs)))
    assert [next_epoch(epoch) for epoch in epochs] == [int(word) for word in answer.split()]
