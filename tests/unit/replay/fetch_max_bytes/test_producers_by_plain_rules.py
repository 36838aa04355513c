"""Producers under quotas are replayed, and their throttle times judged, as plain rules say, one request at a time."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
import pytest

from schemas.tables.quota_reasons import THROTTLES
from tests.unit.replay.fetch_max_bytes.sent_requests import BEGIN, MS, PLENTY, SECOND, Sent, lanes_of, rows_of
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS
from udfs.replay.fetch_max_bytes.producer_quota.events import producers_of
from udfs.replay.fetch_max_bytes.producer_quota.fidelity import NEAR_MS
from udfs.replay.fetch_max_bytes.producer_quota.replay import throttled
from udfs.replay.fetch_max_bytes.producer_quota.rows import Throttled, producers_at_brokers, throttle_rows
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.fetch_max_bytes.producer_quota.state import METER_RULES
from udfs.replay.fetch_max_bytes.quota_meter import excess_ms, measured, new_meters, record_in_meter
from udfs.replay.shared.fidelity_rows import AGREED
from udfs.replay.shared.window import Window

WINDOWS, DELIVERY_TIMEOUT_US = 2, 120 * SECOND
CODES = THROTTLES.codes


@dataclass(frozen=True)
class Case:
    sent: list[Sent]
    lanes: ProducerLanes


def drawn(seed: int) -> Case:
    """Requests of one or two producers to one or two brokers, with whatever times and throttle times."""
    rng = np.random.default_rng(seed)
    captured, other = rng.choice([50, 100, 300, 1000], 2).tolist()
    sent, rates = list[Sent](), (None if seed % 4 == 0 else captured, other, None)
    for connection in range(int(rng.integers(1, 4))):
        at, client = int(rng.integers(0, 20)) * 100, f"app-{rng.integers(0, 2)}"
        one = Sent(
            0, 0, client=client, connection=connection, broker=str(rng.integers(1, 3)),
            version=int(rng.choice([5, 6, 13])), is_answered=bool(rng.random() < 0.9),
            began_before=bool(rng.random() < 0.3), batches=int(rng.integers(1, 3)),
        )  # fmt: skip
        for _ in range(int(rng.integers(1, 9))):
            throttle = int(rng.choice([0, 0, 0, 200, 1000, 1001, 2500]))
            made = at - int(rng.integers(0, 12)) * 100 if rng.random() < 0.7 else None
            took, size = int(rng.choice([0, 2, 150, 3000])), int(rng.choice([20, 100, 700]))
            sent.append(replace(one, at=at, size=size, took=took, throttle=throttle, made=made))
            at += int(rng.choice([0, 1, 100, 700, 60_000], p=[0.2, 0.2, 0.3, 0.28, 0.02]))
    window = Window(BEGIN + int(rng.integers(-5, 3)) * SECOND, BEGIN + 10_000 * SECOND)
    lanes = lanes_of(*rates, buffer_bytes=int(rng.choice([150, 800, PLENTY])), window=window)
    return Case(sent, replace(lanes, windows=np.full(3, WINDOWS)))


@dataclass
class Request:
    """A captured request, in us. in_place_of: the request after whose answer there is room for this one. gate: the
    request whose throttling it may have waited for.
    """

    sent: Sent
    arrived: int
    recorded: int
    throttle: int
    ready: int = 0
    service: int = 0
    idle: int = 0
    lingers: bool = False
    in_place_of: Request | None = None
    gate: Request | None = None
    made: int = 0
    open: int = 0

    @property
    def unmuted(self) -> int:
        return self.recorded + max(self.throttle, 0) * MS


@dataclass
class Connection:
    requests: list[Request]
    waits: bool
    most: int = 0
    usual: int = 1
    saved: int = 0
    muted_client: int | None = None
    turnaround: int = 0
    unmuted: int = 0
    made: list[Request] = field(default_factory=list)
    answered: int = 0
    is_due: bool = False

    def may_send(self, request: Request) -> int:
        return request.unmuted if self.waits else request.recorded


def request_of(sent: Sent) -> Request:
    arrived = BEGIN + sent.at * MS
    answered = arrived + sent.took * MS if sent.is_answered else arrived
    throttle = (sent.throttle or 0) if sent.is_answered else NONE
    held = max(throttle, 0) * MS
    return Request(
        sent, arrived, answered - held if sent.version < 6 and held <= answered - arrived else answered, throttle
    )


def connection_of(sent: list[Sent]) -> Connection:
    """What a connection's requests show: how many were under way at once, what each of them waited for, and how large
    they get.
    """
    requests = [request_of(one) for one in sent]
    of = Connection(requests, sent[0].version >= 6)
    batches = [0 if one.made is None else one.batches for one in sent]
    if max(batches) > 1:
        did_not_wait = [one.size for i, one in enumerate(sent) if i == 0 or requests[i - 1].throttle <= 0]
        of.most, of.usual = max(one.size for one in sent), max(int(median(did_not_wait)), 1)
        of.saved = 50 + round(70 * sum(batches) / len(batches))
    under_way = [
        i + 1 - sum(max(r.recorded for r in requests[: k + 1]) <= one.arrived for k in range(len(requests)))
        for i, one in enumerate(requests)
    ]
    in_flight = max(*under_way, 1) if sent[0].is_answered else len(requests)
    pairs = list(zip(requests, requests[in_flight:], strict=False))
    of.turnaround = min((after.arrived - of.may_send(before) for before, after in pairs), default=0)
    for before, after in pairs:
        after.in_place_of = before
    for i, one in enumerate(requests):
        earlier = requests[:i]
        muted = max((r.unmuted for r in earlier), default=ALWAYS)
        one.service = max(one.recorded - max(one.arrived, muted), 0)
        made = one.arrived if one.sent.made is None else BEGIN + one.sent.made * MS
        one.ready = max([min(made, one.arrived), *(r.ready for r in earlier[-1:])])
        throttling = [r for r in earlier if r.throttle > 0]
        over = [r for k, r in enumerate(throttling) if max(t.unmuted for t in throttling[: k + 1]) <= one.arrived]
        one.gate = over[-1] if over else None
        turn = of.may_send(one.in_place_of) + of.turnaround if one.in_place_of else ALWAYS
        turn = max(turn, of.may_send(one.gate) if one.gate else ALWAYS)
        one.idle, one.lingers = max(one.arrived - max(one.ready, turn), 0), one.ready >= turn
    return of


class Meter:
    """A quota's meter. rate: bytes/s, 0 for none."""

    def __init__(self, rate: int) -> None:
        self.rules = new_records(METER_RULES, 1, byte_rate=rate, quota_windows=WINDOWS, quota_window_ms=1000)[0]
        self.rate, self.meters = rate, new_meters(1, WINDOWS)

    def record(self, size: int, time: int) -> tuple[int, int, int]:
        """(throttle_time_ms, bytes that count, over how many ms). time: ms."""
        record_in_meter(self.meters, 0, self.rules, size, time)
        counted = measured(self.meters, 0, self.rules, time)
        return excess_ms(self.meters, 0, self.rules, time) if self.rate else 0, *counted


@dataclass
class Process:
    to_make: list[tuple[Request, Connection]]
    held: int = 0
    late: int = 0
    blocked: int = 0


@dataclass
class Lane:
    """All requests, sent once more. outcomes: of each connection."""

    connections: list[Connection]
    buffer_bytes: int
    meter_of: Callable[[Sent], Meter | None]
    window: Window
    is_captured: bool
    events: list[tuple[int, int]] = field(default_factory=list)
    outcomes: list[dict[str, int]] = field(default_factory=list)
    blocked: dict[str, int] = field(default_factory=dict)

    def make(self, process: Process, now: int) -> None:
        """The application makes requests for as long as there is memory."""
        while process.to_make:
            request, connection = process.to_make[0]
            if process.held and process.held + request.sent.size > self.buffer_bytes:
                return
            due = request.ready + process.late
            process.blocked += max(now - due, 0)
            process.late += max(now - due, 0)
            request.made = max(due, now)
            process.held += request.sent.size
            connection.made.append(process.to_make.pop(0)[0])
            self.go_on(connection)

    def go_on(self, of: Connection) -> None:
        """The broker answers the next request of a connection, if that is made."""
        if of.is_due or of.answered == len(of.made):
            return
        request = of.requests[of.answered]
        turn = request.in_place_of.open + of.turnaround if request.in_place_of else ALWAYS
        sent = max(request.made, turn, request.gate.open if request.gate else ALWAYS)
        came = max(sent, request.made + request.idle) if request.lingers else sent + request.idle
        taken = max(came, of.unmuted)
        of.is_due = True
        heapq.heappush(self.events, (taken + request.service, self.connections.index(of)))

    def counts(self, request: Request) -> bool:
        return self.window.begin <= request.arrived < self.window.end

    def sent_as_one(self, of: Connection) -> tuple[list[Request], int]:
        """The next requests of a connection that its client sends as one, and their bytes."""
        first, *others = of.made[of.answered :]
        size, joined = first.sent.size, [first]
        if self.is_captured:
            return joined, size
        if of.answered and of.requests[of.answered - 1].throttle > 0:
            more = max(size // of.usual - 1, 0) * of.saved if of.muted_client is None else 0
            return joined, size + more
        for other in others:
            together = size + max(other.sent.size - of.saved, 0)
            was_made = of.muted_client is not None and other.made <= of.muted_client
            if not was_made or together > of.most or self.counts(other) != self.counts(first):
                break
            joined.append(other)
            size = together
        return joined, size

    def answer(self, number: int, time: int, process: Process) -> None:
        of, outcome = self.connections[number], self.outcomes[number]
        joined, size = self.sent_as_one(of)
        meter = self.meter_of(joined[0].sent)
        throttle = meter.record(size, time // MS)[0] if meter else 0
        of.unmuted = time + throttle * MS
        of.muted_client = of.unmuted if of.waits and throttle > 0 else None
        if self.counts(joined[0]):
            outcome.setdefault("first_us", joined[0].arrived)
            for name, more in (
                ("requests", 1), ("bytes", size), ("throttled", throttle > 0), ("throttle_ms", throttle)
            ):  # fmt: skip
                outcome[name] = outcome.get(name, 0) + int(more)
            outcome["throttle_ms_max"] = max(outcome.get("throttle_ms_max", 0), throttle)
        for request in joined:
            if self.counts(request):
                outcome["expired"] = outcome.get("expired", 0) + int(time - request.made > DELIVERY_TIMEOUT_US)
                for name, most in (("last_us", time), ("behind_us", time - request.recorded)):
                    outcome[name] = max(outcome.get(name, 0), most)
            of.answered += 1
            request.open = of.unmuted if of.waits else time
            process.held -= request.sent.size
        of.is_due = False
        self.go_on(of)
        self.make(process, time)

    def play(self) -> None:
        self.outcomes = [{} for _ in self.connections]
        processes: dict[str, Process] = {}
        for of in self.connections:
            made = processes.setdefault(of.requests[0].sent.client, Process([])).to_make
            made += [(request, of) for request in of.requests]
        for process in processes.values():
            process.to_make.sort(key=lambda pair: pair[0].ready)
        for name in dict.fromkeys(of.requests[0].sent.client for of in self.connections):
            self.make(processes[name], ALWAYS)
        while self.events:
            time, number = heapq.heappop(self.events)
            self.answer(number, time, processes[self.connections[number].requests[0].sent.client])
        self.blocked = {name: process.blocked for name, process in processes.items()}


def connections_of(case: Case) -> list[Connection]:
    by_number: dict[int, list[Sent]] = defaultdict(list)
    for one in case.sent:
        by_number[one.connection].append(one)
    return [connection_of(by_number[number]) for number in sorted(by_number)]


def rate_in(case: Case, lane: int) -> int | None:
    return next(iter(case.lanes.quotas[lane].values()), None)


def played(case: Case, lane: int) -> Lane:
    rate = rate_in(case, lane)
    meters: dict[tuple[str, str], Meter] = defaultdict(lambda: Meter(rate or 0))
    of = Lane(
        connections_of(case), case.lanes.buffer_bytes,
        lambda sent: meters[sent.client, sent.broker] if rate else None, case.lanes.window, lane == 0,
    )  # fmt: skip
    of.play()
    return of


def judged(case: Case) -> list[tuple[int, int, int]]:
    """(throttle time under the captured quota, the quota that the captured one shows, the verdict) of each request."""
    connections, rate = connections_of(case), rate_in(case, 0) or 0
    requests = [request for of in connections for request in of.requests]
    meters: dict[tuple[str, str], Meter] = defaultdict(lambda: Meter(rate))
    warm: dict[tuple[str, str], int] = defaultdict(lambda: ALWAYS)
    for key in {(one.client, one.broker) for one in case.sent}:
        own = [of.requests[0] for of in connections if (of.requests[0].sent.client, of.requests[0].sent.broker) == key]
        if any(first.sent.began_before for first in own):
            warm[key] = min(first.recorded for first in own) + WINDOWS * SECOND
    found = {}
    for i in sorted(range(len(requests)), key=lambda number: requests[number].recorded):
        request, key = requests[i], (requests[i].sent.client, requests[i].sent.broker)
        replayed, total, elapsed = meters[key].record(request.sent.size, request.recorded // MS)
        is_warm = request.recorded >= warm[key]
        shows = is_warm and request.throttle > 1000
        quota = round(total * 1000 / (elapsed + request.throttle)) if shows else NONE
        found[i] = replayed, quota, verdict_on(request.throttle, replayed, rate, is_warm=is_warm)
    return [found[i] for i in range(len(requests))]


def verdict_on(captured: int, replayed: int, rate: int, *, is_warm: bool) -> int:
    verdicts = {
        THROTTLES.no_response: captured == NONE,
        THROTTLES.quota_not_stated: not rate and captured > 0,
        "agreed": abs(captured - replayed) <= NEAR_MS,
        THROTTLES.sent_before: not is_warm,
        THROTTLES.another_quota: replayed == 0 and captured <= 1000,
        THROTTLES.throttled_longer: captured > replayed,
        THROTTLES.throttled_less: True,
    }
    first = next(word for word, holds in verdicts.items() if holds)
    return AGREED if first == "agreed" else CODES[first]


def replayed(case: Case) -> Throttled:
    captured = producers_of(rows_of(case.sent), case.lanes.window)
    assert captured is not None
    return throttled(captured, case.lanes)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_producers_are_replayed_as_plain_rules_say(first: int) -> None:
    for seed in range(first, first + 20):
        case = drawn(seed)
        found = replayed(case)
        for lane in range(3):
            plain = played(case, lane)
            names = found.outcomes.dtype.names or ()
            outcomes = [dict(zip(names, row.tolist(), strict=True)) for row in found.outcomes[lane]]
            assert (seed, outcomes) == (seed, [{name: of.get(name, 0) for name in names} for of in plain.outcomes])
            clients = [client for client, _ in found.captured.clients]
            assert dict(zip(clients, found.blocked_us[lane].tolist(), strict=True)) == plain.blocked


@pytest.mark.parametrize("first", range(200, 320, 40))
def test_throttle_times_are_judged_as_plain_rules_say(first: int) -> None:
    verdicts = set[int]()
    for seed in range(first, first + 40):
        case = drawn(seed)
        found = replayed(case)
        columns = found.replayed_ms, found.shown, found.verdicts
        assert (seed, list(zip(*(c.tolist() for c in columns), strict=True))) == (seed, judged(case))
        verdicts |= set(found.verdicts.tolist())
    assert verdicts == {AGREED, *CODES.values()}


@pytest.mark.parametrize("first", range(400, 460, 20))
def test_rows_add_up_the_connections_of_a_producer_to_a_broker(first: int) -> None:
    for seed in range(first, first + 20):
        case = drawn(seed)
        found = replayed(case)
        pairs = list(producers_at_brokers(found.captured))
        rows = throttle_rows(found, pairs, case.lanes, "run").to_pylist() if pairs else []
        lanes = [played(case, lane) for lane in range(3)]
        keys = {(one.client, one.broker) for one in case.sent if BEGIN + one.at * MS >= case.lanes.window.begin}
        assert len(rows) == 3 * len(keys)
        for row in rows:
            lane = lanes[case.lanes.names.index(row["scenario"])]
            own = [(of, outcome) for of, outcome in zip(lane.connections, lane.outcomes, strict=True)
                   if outcome and (of.requests[0].sent.client, of.requests[0].sent.broker)
                   == (row["client_id"], row["broker"])]  # fmt: skip
            outcomes = [outcome for _, outcome in own]
            counting = [r for of, _ in own for r in of.requests if r.arrived >= case.lanes.window.begin]
            throttles = [max(r.throttle, 0) for r in counting]
            expected = {
                "byte_rate": rate_in(case, case.lanes.names.index(row["scenario"])),
                "requests": sum(of["requests"] for of in outcomes),
                "bytes": sum(of["bytes"] for of in outcomes),
                "throttled_requests": sum(of["throttled"] for of in outcomes),
                "throttle_time_ms": sum(of["throttle_ms"] for of in outcomes),
                "throttle_time_max_ms": max(of["throttle_ms_max"] for of in outcomes),
                "expired_requests": sum(of["expired"] for of in outcomes),
                "sending_ms": (max(of["last_us"] for of in outcomes) - min(of["first_us"] for of in outcomes)) / MS,
                "behind_ms_max": max(of["behind_us"] for of in outcomes) / MS,
                "blocked_ms": lane.blocked[row["client_id"]] / MS,
                "captured_throttled_requests": sum(of > 0 for of in throttles),
                "captured_throttle_time_ms": sum(throttles),
                "captured_throttle_time_max_ms": max(throttles),
                "captured_sending_ms": (max(r.recorded for r in counting) - min(r.arrived for r in counting)) / MS,
            }
            assert (seed, {name: row[name] for name in expected}) == (seed, expected)
