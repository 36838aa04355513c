"""Fetch limits (KIP-74): what the closed loop predicts for other limits, compared with readers that had them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.replays.algorithm import Source
from jobs.replays.consumer_memory.job import dealt_responses
from jobs.replays.lane_settings import lane_settings
from jobs.session.one_shuffle import shard_count
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_RANGES
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from schemas.tables.steps_memory import CLOSED_RESPONSES, MEMORY_EVENTS
from tests.backtest.coverage import Case, Range, coverage_row
from tests.backtest.fetch_traffic import BASE, BROKER, LIMITS, WAITS
from tests.backtest.figures import Figures
from tests.backtest.follow_traffic import FOLLOWERS
from tests.backtest.replays import Replayed, replayed
from udfs.facts.arrow_tables import unpack_rows
from udfs.replay.fetch_max_bytes.settings import fetch_lanes
from udfs.replay.shared.dealt_rows import ROWS

STATED = ("consumer.max.poll.records", "broker.fetch.max.bytes")
"""Settings of a capture that packets do not show."""
UNCHANGED = {"consumer.max.poll.records": 500, "broker.fetch.max.bytes": 57_671_680}
SHOWN = {
    "consumer.fetch.max.bytes": FETCH_PARTITIONS.max_bytes,
    "consumer.max.partition.fetch.bytes": FETCH_PARTITIONS.partition_max_bytes,
    "consumer.fetch.min.bytes": FETCH_PARTITIONS.min_bytes,
    "consumer.fetch.max.wait.ms": FETCH_PARTITIONS.max_wait_ms,
    "replica.fetch.response.max.bytes": FETCH_PARTITIONS.max_bytes,
    "replica.fetch.max.bytes": FETCH_PARTITIONS.partition_max_bytes,
}
"""The column in which a capture shows a setting."""
Response = tuple[int, int]
"""A response: its record bytes, and from how many partitions they are."""


@dataclass(frozen=True)
class Group:
    """Runs with one group of settings. runs: the capture and the client.id of each run."""

    settings: Mapping[str, object]
    runs: tuple[tuple[Path, str], ...]
    reader: str = "consumer"

    @property
    def stated(self) -> list[str]:
        """The settings to state for its captures."""
        return [f"{key}={self.settings[key]}" for key in STATED if key in self.settings]


def groups(work: Path, repeats: int) -> Mapping[str, Group]:
    """Every recorded group, by name."""
    asked = {name: {f"consumer.{key}": value for key, value in limits.items()} for name, limits in
             {**LIMITS, **WAITS, "broker": BASE}.items()}  # fmt: skip
    asked["broker"] |= {f"broker.{key}": value for key, value in BROKER.items()}
    found = {
        f"{kind} {name}": Group(
            settings, tuple((work / f"fetch-{name}.pcap", f"{kind}-{name}-{again}") for again in range(repeats))
        )
        for kind in ("java", "librdkafka")
        for name, settings in asked.items()
        if kind == "java" or "consumer.max.poll.records" not in settings
    }
    for broker, (name, settings) in FOLLOWERS.items():
        files = [work / f"follow-{name}-{again}.pcap" for again in range(repeats)]
        runs = tuple((file, f"broker-{broker}-fetcher-0") for file in files)
        found[f"follower {name}"] = Group(settings, runs, "follower")
    return found


PAIRS = (("base", "small"), ("base", "many"), ("base", "polls"), ("base", "broker"), ("eager", "patient"))
"""Groups that are predicted from each other."""


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction, in both directions, its subject and its figures."""
    found = groups(work, repeats)
    for kind in ("java", "librdkafka", "follower"):
        for pair in PAIRS:
            names = [f"{kind} {name}" for name in pair]
            if all(name in found and found[name].runs[-1][0].exists() for name in names):
                for a, b in (names, names[::-1]):
                    yield f"{a} -> {b}", figures(found[a], found[b])


RANGED = {"catch_up_ms": "catch-up ms", "longest_wait_ms": "longest wait ms", "requests": "requests"}
"""The figures that have a range, and what they are called here."""
OF_BACKLOG, OF_LIVE = ("catch_up_ms", "longest_wait_ms"), ("requests",)
"""The figures that are compared for pairs that read a backlog, and for pairs that read records as they come, which have
no backlog."""


def covered(work: Path, repeats: int) -> Iterator[Sequence[str]]:
    """How often seen values lie in the predicted range, for each kind of reader and each figure."""
    found = groups(work, repeats)
    for kind in ("java", "librdkafka", "follower"):
        cases: dict[str, list[Case]] = {metric: [] for metric in RANGED}
        for pair in PAIRS:
            names = [f"{kind} {name}" for name in pair]
            if all(name in found and found[name].runs[-1][0].exists() for name in names):
                for a, b in (names, names[::-1]):
                    for metric in OF_LIVE if set(pair) <= set(WAITS) else OF_BACKLOG:
                        cases[metric].append(case_of(metric, found[a], found[b]))
        yield from (coverage_row(kind, RANGED[metric], of) for metric, of in cases.items() if of)


def case_of(metric: str, a: Group, b: Group) -> Case:
    """One group of settings, predicted from the runs of another.

    How long a run waits for its first records depends on the lab. So only requests from the first records on count.
    """
    seen = figures(a, b)
    of_a = [(replay_of(path, changes(a, b), tuple(a.stated)), client) for path, client in a.runs]
    of_b = [(replay_of(path, changes(b, a), tuple(b.stated)), client) for path, client in b.runs]
    idle_a, idle_b = (
        [requests_before_records(of, client) if metric == "requests" else 0 for of, client in runs]
        for runs in (of_a, of_b)
    )
    # Before the first records, each fetch waits its full time.
    waits = [int(str(group.settings.get("consumer.fetch.max.wait.ms", 1))) for group in (a, b)]
    ranges = []
    for (of, client), idle in zip(of_a, idle_a, strict=True):
        predicted, before = predicted_range(of, a, client, metric), idle * waits[0] / waits[1]
        ranges.append(Range(predicted.low - before, predicted.high - before))
    return Case(
        ranges,
        [run[RANGED[metric]] - idle for run, idle in zip(seen.captured, idle_a, strict=True)],
        [run[RANGED[metric]] - idle for run, idle in zip(seen.seen, idle_b, strict=True)],
    )


def requests_before_records(of: Replayed, client: str) -> int:
    """How many of a captured reader's fetches were answered before the first records came."""
    t = FETCH_PARTITIONS
    rows = of.rows(t, f"{t.client_id} = '{client}' and {t.returned_bytes} is not null")
    first = min(row[t.response_time] for row in rows if row[t.returned_bytes])
    return len({(row[t.connection_id], row[t.exchange_no]) for row in rows if row[t.response_time] < first})


def predicted_range(of: Replayed, group: Group, client: str, metric: str) -> Range:
    """The range of a reader's figure in the requested lane."""
    t = FETCH_RANGES
    whose = f"{t.client_id} = '{client}' and {t.reader} = '{group.reader}' and {t.metric} = '{metric}'"
    (row,) = of.rows(t, f"{whose} and {t.scenario} = '{of.lanes[1]}'")
    low, high = (inf if row[end] is None else row[end] for end in (t.p10, t.p90))
    return Range(low, high)


def figures(a: Group, b: Group) -> Figures:
    """What was seen under A, what is predicted from it for B, and what was seen under B, run by run.

    The open loop's responses under the captured settings are the captured ones, so they show what was seen.
    """
    of_a = [(replay_of(path, changes(a, b), tuple(a.stated)), client) for path, client in a.runs]
    of_b = [(replay_of(path, changes(b, a), tuple(b.stated)), client) for path, client in b.runs]
    return Figures(
        [told(of, a, client, None) for of, client in of_a],
        [told(of, a, client, 1) for of, client in of_a],
        [told(of, b, client, None) for of, client in of_b],
    )


def changes(a: Group, b: Group) -> tuple[str, ...]:
    """The settings for B in a replay of A's captures."""
    had, wanted = {**UNCHANGED, **a.settings}, {**UNCHANGED, **b.settings}
    return tuple(f"{key}={wanted[key]}" for key in wanted if wanted[key] != had.get(key))


@cache
def replay_of(path: Path, changes: tuple[str, ...], stated: tuple[str, ...]) -> Replayed:
    """A capture, replayed with these changed settings."""
    return replayed(algorithms.FETCH_MAX_BYTES, path, changes, stated)


def told(of: Replayed, group: Group, client: str, lane: int | None) -> dict[str, Any]:
    """The figures of a reader in a lane of the closed loop, or as captured."""
    if lane is None:
        check_settings(of, group, client)
    mode = "open" if lane is None else "closed"
    whose = f"client_id = '{client}' and reader = '{group.reader}' and mode = '{mode}'"
    whose += f" and scenario = '{of.lanes[lane or 0]}'"
    (reader,) = of.rows(FETCH_CONSUMERS, whose)
    parts = of.rows(FETCH_FAIRNESS, f"{whose} and bytes > 0")
    waits = {row["partition"]: row["longest_wait_ms"] for row in parts}
    by_broker = captured_responses(of, client) if lane is None else lane_responses(of, client, lane)
    took = captured_catch_up(of, client) if lane is None else reader["catch_up_ms"]
    found = {
        "record bytes": reader["bytes"],
        "of cut batches": reader["cut_tail_bytes"],
        "bytes by partition": {row["partition"]: row["bytes"] for row in parts},
        "requests": reader["requests"],
        "responses with records": sum(map(len, by_broker.values())),
        "responses in order": by_broker,
        "p99 response": reader["response_bytes_p99"],
        "largest response": reader["response_bytes_max"],
        "reads left empty": reader["empty_though_available"],
        "partitions that waited": {name: 1 for name, wait in waits.items() if wait > 0},
        "waits longest": f"partition {max(waits, key=waits.__getitem__)}" if any(waits.values()) else "nobody",
        "longest wait ms": max(waits.values(), default=0),
        "catch-up ms": took,
    }
    return {name: value for name, value in found.items() if name not in not_told(group)}


def not_told(group: Group) -> tuple[str, ...]:
    """The figures that a prediction lacks: only consumers have responses of the closed loop; live reads have no
    backlog.
    """
    if group.reader == "follower":
        return "responses with records", "responses in order"
    return ("catch-up ms",) if "consumer.fetch.min.bytes" in group.settings else ()


def check_settings(of: Replayed, group: Group, client: str) -> None:
    """Raises ValueError if a reader's requests have other limits than those declared for its group."""
    rows = of.rows(FETCH_PARTITIONS, f"client_id = '{client}'")
    for key, column in SHOWN.items():
        shown = {row[column] for row in rows} - {None}
        if key in group.settings and shown != {group.settings[key]}:
            raise ValueError(f"{client}: {key} is declared as {group.settings[key]}, its requests have {sorted(shown)}")


def captured_responses(of: Replayed, client: str) -> Mapping[str, Sequence[Response]]:
    """The captured responses with records, for each broker in order."""
    t = FETCH_PARTITIONS
    rows = of.rows(t, f"{t.client_id} = '{client}' and {t.returned_bytes} > 0")
    rows.sort(key=lambda row: (row[t.broker], row[t.request_time], row[t.exchange_no]))
    responses = groupby(rows, key=lambda row: (row[t.broker], row[t.connection_id], row[t.exchange_no]))
    found: dict[str, list[Response]] = {}
    for (broker, _, _), parts in responses:
        sizes = [row[t.returned_bytes] for row in parts]
        found.setdefault(broker, []).append((sum(sizes), len(sizes)))
    return found


@cache
def all_lane_responses(of: Replayed) -> list[dict[str, Any]]:
    """Every response with records from the closed loop, in its order."""
    lanes = fetch_lanes(lane_settings(of.run.scenario, algorithms.FETCH_MAX_BYTES, of.run.scenario.captured))
    source = Source(of.spark, of.run, of.capture_id, of.run_id, {})
    parts = dealt_responses(source, lanes, shard_count(of.spark)).select(ROWS).toArrow()[ROWS]
    t = MEMORY_EVENTS
    rows = (row for part in parts for events in unpack_rows(part) for row in events.to_pylist())
    return [
        {**response, t.unit: row[t.unit], t.lane: row[t.lane]}
        for row in rows
        if row[t.responses] is not None
        for responses in unpack_rows(pa.scalar(row[t.responses], pa.binary()))
        for response in responses.to_pylist()
        if response[CLOSED_RESPONSES.returned_bytes] > 0
    ]


def lane_responses(of: Replayed, client: str, lane: int) -> Mapping[str, Sequence[Response]]:
    """The responses with records in a lane, for each broker in order; only for consumers."""
    t, r, x = MEMORY_EVENTS, CLOSED_RESPONSES, EXCHANGES
    brokers = {row[x.connection_id]: row[x.broker] for row in of.rows(x, f"{x.client_id} = '{client}'")}
    rows = [row for row in all_lane_responses(of) if row[t.unit] == client and row[t.lane] == lane]
    found: dict[str, list[Response]] = {}
    for row in sorted(rows, key=lambda row: (row[r.connection_id], row[r.number])):
        found.setdefault(brokers[row[r.connection_id]], []).append((row[r.returned_bytes], row[r.partitions]))
    return found


def captured_catch_up(of: Replayed, client: str) -> float:
    """How long the slowest partition took, from its first request until its last records came (ms)."""
    t = FETCH_PARTITIONS
    first: dict[tuple[str, int], Any] = {}
    last: dict[tuple[str, int], Any] = {}
    for row in of.rows(t, f"{t.client_id} = '{client}' and {t.returned_bytes} is not null"):
        key = row[t.topic], row[t.partition]
        if row[t.read_position] is not None:
            first[key] = min(first.get(key, row[t.request_time]), row[t.request_time])
        if row[t.returned_bytes]:
            last[key] = max(last.get(key, row[t.response_time]), row[t.response_time])
    return max(((last[key] - first[key]).total_seconds() * 1000 for key in last), default=0.0)
