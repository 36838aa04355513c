"""More members and more traffic: predictions of lanes with `traffic.`, compared with groups and topics that grew so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jobs.scenarios.scenario import CAPTURED_LANE
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_RANGES
from schemas.tables.gold_memory import CONSUMER_MEMORY
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.silver import FETCH_PARTITIONS
from tests.backtest.byte_rates import predicted_range
from tests.backtest.coverage import Case, coverage_row
from tests.backtest.fetches import captured_catch_up
from tests.backtest.figures import Figures
from tests.backtest.growth_traffic import MEMBERS, SPEEDS, backlog_run, group_of, speed_run
from tests.backtest.replays import Replayed, replayed
from udfs.replay.fetch_max_bytes.rows import CLOSED_LOOP
from udfs.replay.shared.lanes import TRAFFIC_CONSUMERS, TRAFFIC_SPEED

CATCH_UP, LAG, SESSIONS = "catch-up ms", "unread at the end, bytes", "sessions opened"
HELD = "most held by a member, bytes"
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Growth:
    """A way to grow: the model's setting, the factors, and the capture of each run.

    metric: the metric with a range, or None; figure: its name here. seen, predicted: functions for the outcome of a
    run's group as captured, and in a lane.
    """

    title: str
    setting: str
    times: Sequence[int]
    run: Callable[[Path, int, int], Path]
    metric: str | None
    figure: str
    seen: Callable[[Path], Outcome]
    predicted: Callable[[Path, str], Outcome]


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """For each prediction, made from runs without growth, its subject and its figures."""
    for growth in GROWTHS:
        for times in growth.times:
            yield f"{growth.title} 1 -> {times}", figures_of(growth, times, work, repeats)


def covered(work: Path, repeats: int) -> Iterator[Sequence[str]]:
    """How often seen values lie in the predicted range."""
    for growth in GROWTHS:
        if metric := growth.metric:
            cases = [case_of(growth, metric, times, work, repeats) for times in growth.times if times > 1]
            yield coverage_row(growth.title, growth.figure, cases)


def case_of(growth: Growth, metric: str, times: int, work: Path, repeats: int) -> Case:
    """One growth, predicted from the runs without it."""
    figures, lane = figures_of(growth, times, work, repeats), lane_of(growth, times)
    runs = [growth.run(work, 1, again) for again in range(repeats)]
    return Case(
        [predicted_range(replay_of(run), client_of(run), lane, metric) for run in runs],
        [run[growth.figure] for run in figures.captured],
        [run[growth.figure] for run in figures.seen],
    )


def figures_of(growth: Growth, times: int, work: Path, repeats: int) -> Figures:
    """What was seen without growth, what is predicted from that, and what was seen with it."""
    before, grown = ([growth.run(work, n, again) for again in range(repeats)] for n in (1, times))
    return Figures(
        [growth.seen(run) for run in before],
        [growth.predicted(run, lane_of(growth, times)) for run in before],
        [growth.seen(run) for run in grown],
    )


def lane_of(growth: Growth, times: int) -> str:
    """The name of a lane; without growth it is the captured lane."""
    return f"{growth.setting}={times}" if times > 1 else CAPTURED_LANE


@cache
def replay_of(path: Path, algorithm: str = algorithms.FETCH_MAX_BYTES) -> Replayed:
    """A capture; one without growth is replayed with other traffic."""
    lanes = [f"{TRAFFIC_CONSUMERS}={','.join(map(str, MEMBERS))}"] if "members-1" in path.stem else []
    lanes += [f"{TRAFFIC_SPEED}={','.join(map(str, SPEEDS))}"] if "speed-1" in path.stem else []
    return replayed(algorithm, path, lanes)


def client_of(path: Path) -> str:
    """The client.id of the only member of a run's group."""
    return f"{group_of(path)}-0"


def predicted_of_group(path: Path, lane: str) -> Outcome:
    """The outcome of a group of one member in a lane."""
    c = FETCH_CONSUMERS
    whose = f"{c.client_id} = '{client_of(path)}' and {c.mode} = '{CLOSED_LOOP}' and {c.scenario} = '{lane}'"
    (reader,) = replay_of(path).rows(c, whose)
    return {CATCH_UP: reader[c.catch_up_ms], "requests": reader[c.requests], "record bytes": reader[c.bytes]}


def seen_of_group(path: Path) -> Outcome:
    """The captured outcome of all members of a run's group together, until each had its last records."""
    of, f = replay_of(path), FETCH_PARTITIONS
    rows = of.rows(f, f"{f.client_id} like '{group_of(path)}-%'")
    clients = sorted({row[f.client_id] for row in rows})
    return {
        CATCH_UP: max(captured_catch_up(of, client) for client in clients),
        "requests": len({(row[f.connection_id], row[f.exchange_no]) for row in rows}),
        "record bytes": sum(row[f.returned_bytes] or 0 for row in rows),
    }


def predicted_lag(path: Path, lane: str) -> Outcome:
    """What is not read in a lane when the capture ends."""
    t = FETCH_RANGES
    whose = f"{t.client_id} = '{client_of(path)}' and {t.metric} = 'end_lag_bytes' and {t.scenario} = '{lane}'"
    (row,) = replay_of(path).rows(t, whose)
    return {LAG: row[t.value]}


def unread_by_group(path: Path) -> Outcome:
    """What a group had not fetched from its topic at the end of a capture, by the last high watermarks that it saw."""
    f, of = FETCH_PARTITIONS, replay_of(path)
    rows = of.rows(f, f"{f.client_id} = '{client_of(path)}' and {f.high_watermark} >= 0")
    ends, reached = largest(rows, f.high_watermark), largest(rows, f.fetch_offset)
    records = sum(ends[key] - reached[key] for key in ends)
    return {LAG: records * sum(row[f.returned_bytes] or 0 for row in rows) / max(sum(reached.values()), 1)}


def sessions_of_group(path: Path, lane: str = CAPTURED_LANE) -> Outcome:
    """The outcomes of fetch sessions in a lane; for the captured lane those that the capture itself shows."""
    c = SESSION_CACHE
    rows = replay_of(path, algorithms.SESSION_CACHE).rows(c, f"{c.scenario} = '{lane}'")
    of = "captured_" if lane == CAPTURED_LANE else ""
    names = {SESSIONS: "created", "fetches": "fetches", "bytes of requests": "request_bytes"}
    return {figure: sum(row[f"{of}{name}"] for row in rows) for figure, name in names.items()}


def memory_of_group(path: Path, lane: str = CAPTURED_LANE) -> Outcome:
    """The most that a member of a run's group holds in a lane, and what it holds 99 % of the time; for the captured
    lane by captured times.
    """
    c = CONSUMER_MEMORY
    whose = f"{c.client_id} like '{group_of(path)}-%' and {c.scenario} = '{lane}'"
    rows = replay_of(path, algorithms.CONSUMER_MEMORY).rows(c, whose)
    return {
        HELD: max(row[c.used_bytes_max] for row in rows),
        "held 99 % of the time, bytes": max(row[c.used_bytes_p99] for row in rows),
    }


def largest(rows: Sequence[Mapping[str, Any]], column: str) -> dict[int, int]:
    """The largest value of each partition."""
    found: dict[int, int] = {}
    for row in rows:
        found[row["partition"]] = max(found.get(row["partition"], 0), row[column] or 0)
    return found


GROWTHS = (
    Growth(
        "members", TRAFFIC_CONSUMERS, MEMBERS, backlog_run, "catch_up_ms", CATCH_UP, seen_of_group, predicted_of_group
    ),
    Growth(
        "sessions of members",
        TRAFFIC_CONSUMERS,
        MEMBERS,
        backlog_run,
        None,
        SESSIONS,
        sessions_of_group,
        sessions_of_group,
    ),
    *(
        Growth(f"memory at more {what}", setting, times, run, None, HELD, memory_of_group, memory_of_group)
        for what, setting, times, run in (
            ("members", TRAFFIC_CONSUMERS, MEMBERS, backlog_run),
            ("speed", TRAFFIC_SPEED, SPEEDS, speed_run),
        )
    ),
    Growth("speed", TRAFFIC_SPEED, SPEEDS, speed_run, "end_lag_bytes", LAG, unread_by_group, predicted_lag),
)
"""Groups with more members, and topics to which more is produced."""
