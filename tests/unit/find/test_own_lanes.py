"""Which clients get a lane of their own, compared with a dense grid for each client, which has its best lane."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np
import pytest

from jobs.find.axes import axes_of_aim
from jobs.find.conclusions import Settled, settle_search
from jobs.find.judgement import Outcomes, meets_constraints
from jobs.find.own_lanes import MOST_ALONE
from jobs.find.rows import rows_of_aims
from jobs.find.scopes import Scope, scope_kinds
from jobs.find.search import run_search
from jobs.replays.ranged import Ranged
from jobs.scenarios.aims import Aim, Constraint, Span
from jobs.scenarios.scenario import Lane
from jobs.scenarios.settings import Value
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF
from schemas.tables.outcomes import outcomes_of
from schemas.tables.values import OF_CLIENT, OF_CLUSTER, OF_LIMIT, OF_TOPIC
from tests.unit.find.test_search import FETCH, PARTITION, READER, SLOTS, Made, MiB, aim, outcome_of
from tests.unit.replay.fetch_max_bytes.closed_units import Client, Part, Times, replayed
from udfs.replay.fetch_max_bytes.closed_loop.drawn_pace import figures_of_lanes

BATCH, BUFFER = "producer.batch.size", "producer.buffer.memory"
SMALL = [Part([90] * 40), Part([700, 90] * 6), Part([60] * 30, node=1)]
"""A backlog of small batches, for which other limits are better."""
A = AIM_SETTINGS


def together(algorithm: str, each: Sequence[Outcomes]) -> Outcomes:
    """The outcomes of all clients together, each combined as it is declared."""
    combined: Mapping[str, Callable[[Sequence[float]], float]] = {"most": max, "least": min, "total": sum, "rows": sum}
    return {
        name: Ranged(*(combined[of.aggregate]([own[name][end] for own in each]) for end in range(3)))
        for name, of in outcomes_of(algorithm).items()
    }


def found(wanted: Aim, clients: Mapping[Scope, Made]) -> tuple[Settled, Mapping[Scope, Mapping[str, Outcomes]]]:
    """(the search over the outcomes of these clients, the outcomes of each client in the lanes that were replayed)."""
    own: dict[Scope, dict[str, Outcomes]] = {scope: {} for scope in clients}

    def outcomes(lanes: Sequence[Lane]) -> Mapping[str, Outcomes]:
        for lane, (scope, made) in itertools.product(lanes, clients.items()):
            own[scope][lane.name] = outcome_of(wanted.algorithm, made(lane.settings))
        some = [scope for scope in clients if scope.kind == OF_CLIENT] or list(clients)
        return {lane.name: together(wanted.algorithm, [own[scope][lane.name] for scope in some]) for lane in lanes}

    done = run_search(wanted, axes_of_aim(wanted, {}), {}, outcomes)
    return settle_search(done, (), outcomes, own), own


def client(name: str) -> Scope:
    return Scope(OF_CLIENT, name)


def chosen(done: Settled) -> dict[str, Mapping[str, Value]]:
    """The settings of the lane that each client or topic has of its own."""
    return {one.scope.name: one.search.lane(one.search.best).settings for one in done.alone}


SIZES = tuple(sorted({int(size) for size in np.geomspace(100, 30_000, 24)}))
GRID = list(itertools.product(SIZES, SIZES))


def dense(parts: Sequence[Part]) -> Mapping[tuple[int, int], Mapping[str, float]]:
    """The outcomes of a reader in closed loop, by pair of limits."""
    clients = [Client(size, partition_max_bytes=of_partition) for size, of_partition in GRID]
    outcome = replayed(parts, clients, pace=Times(gap=9e4, answer=4e4, byte=70.0, taking=((500, 3e6),)))
    figures = figures_of_lanes(outcome, np.zeros(len(parts), bool))
    names = {"catch_up": figures.catch_up_ms, "held": figures.held_bytes, "longest_wait": figures.longest_wait_ms}
    return {pair: {name: float(of[lane]) for name, of in names.items()} for lane, pair in enumerate(GRID)}


@pytest.fixture(scope="module")
def readers() -> Mapping[Scope, Mapping[tuple[int, int], Mapping[str, float]]]:
    return {client("uneven"): dense(READER), client("small"): dense(SMALL)}


@pytest.mark.parametrize(
    ("held", "longest_wait", "own_lanes"),
    [(6000, 2e3, ["small"]), (3000, 2e4, ["small"]), (20_000, 800.0, []), (1500, 1e5, ["small"])],
)
def test_each_client_has_the_best_lane_that_was_replayed_for_it(
    readers: Mapping[Scope, Mapping[tuple[int, int], Mapping[str, float]]],
    held: int,
    longest_wait: float,
    own_lanes: Sequence[str],
) -> None:
    where = (Constraint("held", "<=", held), Constraint("longest_wait", "<=", longest_wait))
    wanted = aim("fetch_max_bytes", "catch_up", {FETCH: SIZES, PARTITION: SIZES}, *where)
    unknown = {"catch_up": 1e9, "held": 1e9}

    def made(scope: Scope) -> Made:
        return lambda lane: readers[scope].get((int(lane.get(FETCH, 0)), int(lane.get(PARTITION, 0))), unknown)

    done, own = found(wanted, {scope: made(scope) for scope in readers})
    search_of = {one.scope: one.search for one in done.alone}
    for scope, lanes in own.items():
        least = min((of["catch_up"].value for of in lanes.values() if meets_constraints(where, of)), default=inf)
        mine = search_of.get(scope, done.search)
        came_to = lanes[mine.lane(mine.best).name]
        assert scope in search_of or came_to["catch_up"].value <= least + 10.0 or least == inf
        assert scope not in search_of or (meets_constraints(where, came_to) and came_to["catch_up"].value == least)
    assert [scope.name for scope in search_of] == own_lanes


def in_proportion(most: float, *, waits_above: int = 1 << 40) -> Made:
    """A client is faster the more it may hold, up to `most` bytes, and waits if the limit is above `waits_above`."""

    def made(lane: Mapping[str, Value]) -> Mapping[str, float]:
        size = min(int(lane.get(FETCH, 2 * MiB)), most)
        waits = int(lane.get(FETCH, 2 * MiB)) > waits_above
        return {"catch_up": 1e9 / size, "held": size, "longest_wait": 5000.0 * waits, "requests": 64 * MiB // size}

    return made


OVER = {FETCH: Span(MiB, 64 * MiB)}
HELD, WAIT = Constraint("held", "<=", 8 * MiB), Constraint("longest_wait", "<=", 1000)


def one_held_back() -> Settled:
    """A search for two clients. With limits that suit one of them, the other one waits."""
    wanted = aim("fetch_max_bytes", "catch_up", OVER, HELD, WAIT, step=0.01)
    clients = {
        client("waits"): in_proportion(64 * MiB, waits_above=4 * MiB),
        client("does not"): in_proportion(64 * MiB),
    }
    return found(wanted, clients)[0]


def test_a_client_that_others_hold_back_may_get_a_larger_limit() -> None:
    done = one_held_back()
    assert int(done.search.lane(done.search.best).settings[FETCH]) <= 4 * MiB
    # What is worst for all is as good as it can be, so `waits` has nothing of its own.
    assert [*chosen(done)] == ["does not"]
    assert 0.99 * 8 * MiB <= int(chosen(done)["does not"][FETCH]) <= 8 * MiB


def test_if_one_lane_is_best_for_all_nobody_gets_a_lane_of_their_own() -> None:
    wanted = aim("fetch_max_bytes", "catch_up", OVER, HELD, step=0.01)
    done, _ = found(wanted, {client(name): in_proportion(64 * MiB) for name in "ab"})
    assert done.alone == ()


def test_lanes_whose_ranges_meet_do_not_differ() -> None:
    def unsure(lane: Mapping[str, Value]) -> Mapping[str, float | Ranged]:
        came_to = in_proportion(64 * MiB)(lane)
        took = float(came_to["catch_up"])  # type: ignore[arg-type]
        return {**came_to, "catch_up": Ranged(took, took / 3, took * 3)}

    wanted = aim("fetch_max_bytes", "catch_up", OVER, HELD, WAIT, step=0.01)
    slow = in_proportion(64 * MiB, waits_above=4 * MiB)
    assert found(wanted, {client("waits"): slow, client("does not"): unsure})[0].alone == ()


def test_if_no_lane_suits_all_it_says_whom_a_lane_suits() -> None:
    wanted = aim("fetch_max_bytes", "catch_up", OVER, Constraint("held", "<=", MiB), step=0.01)
    clients = {client("large"): lambda _: {"catch_up": 5.0, "held": 2 * MiB}, client("small"): in_proportion(64 * MiB)}
    done, _ = found(wanted, clients)
    assert not done.search.is_met(done.search.best)
    assert {name: int(of[FETCH]) for name, of in chosen(done).items()} == {"small": MiB}


def prefers_small(lane: Mapping[str, Value]) -> Mapping[str, float]:
    """A client is faster the less it may fetch, but sends more requests."""
    size = int(lane.get(FETCH, 2 * MiB))
    return {"catch_up": size / 1e5, "requests": 64 * MiB // size}


def test_a_bound_on_a_sum_holds_whoever_takes_a_lane_of_their_own() -> None:
    wanted = aim("fetch_max_bytes", "catch_up", OVER, WAIT, Constraint("requests", "<=", 60), step=0.01)
    waits, free = in_proportion(64 * MiB, waits_above=4 * MiB), in_proportion(64 * MiB)
    clients = {client("waits"): waits, client("does not"): free, client("small"): prefers_small}
    done, own = found(wanted, clients)
    lanes = {scope: done.search.lane(done.search.best).name for scope in clients}
    lanes |= {one.scope: one.search.lane(one.search.best).name for one in done.alone}
    assert [one.scope.name for one in done.alone] == ["does not"]
    assert sum(own[scope][lane]["requests"].value for scope, lane in lanes.items()) <= 60


def splits_above(size: int) -> Made:
    return lambda lane: {"split_rate": 0.05 if int(lane.get(BATCH, 16384)) > size else 0.0, "batches": size}


def test_the_largest_batches_are_given_by_client_and_by_limit_but_only_once_for_a_limit_with_one_client() -> None:
    over = {BATCH: Span(1024, MiB)}
    few = Constraint("split_rate", "<=", 0.01)
    wanted = aim("batch_split", BATCH, over, few, step=0.01, is_least=False)
    makers = {
        client("a"): splits_above(20_000), client("b"): splits_above(300_000),
        Scope(OF_LIMIT, "1048588"): splits_above(300_000), Scope(OF_LIMIT, "400000"): splits_above(100_000),
    }  # fmt: skip
    done, own = found(wanted, makers)
    sizes = {name: int(of[BATCH]) for name, of in chosen(done).items()}
    assert list(sizes) == ["b", "400000"]
    assert 250_000 < sizes["b"] <= 300_000
    tried = [int(of.removeprefix(f"{BATCH}=").removesuffix("KiB")) for of in own[client("b")] if of.endswith("KiB")]
    assert max(size << 10 for size in tried if size << 10 <= 300_000) <= sizes["b"]


def test_only_the_ten_clients_that_gain_most_are_given() -> None:
    wanted = aim("batch_split", BATCH, {BATCH: tuple(range(10_000, 30_000, 1000))},
                 Constraint("split_rate", "<=", 0.01), is_least=False)  # fmt: skip
    done, _ = found(wanted, {client(f"{size}"): splits_above(size) for size in range(12_000, 28_000, 1000)})
    assert list(chosen(done)) == [f"{size}" for size in range(27_000, 17_000, -1000)]
    assert len(done.alone) == MOST_ALONE


def test_rows_have_the_outcomes_of_a_clients_own_lane_and_of_the_lane_for_all() -> None:
    done = one_held_back()
    rows = rows_of_aims("run", [done])
    every, own = rows[A].to_pylist()
    assert (every[A.scope_kind], every[A.scope], every[A.for_all]) == (OF_CLUSTER, "", [])
    assert (own[A.scope_kind], own[A.scope], own[A.value]) == (OF_CLIENT, "does not", "8128KiB")
    assert dict(own[A.outcomes])["held"] == 8128 * 1024
    assert dict(own[A.for_all])["held"] == int(done.search.lane(done.search.best).settings[FETCH])
    assert own[A.scenario] in {lane.name for lane in done.lanes}
    assert own[A.scenario] not in {row[TRADE_OFF.scenario] for row in rows[TRADE_OFF].to_pylist()}


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        (aim("fetch_max_bytes", "catch_up", OVER), [OF_CLIENT]),
        (aim("fetch_max_bytes", "catch_up", {"replica.fetch.max.bytes": Span(1, 9)}), []),
        (aim("fetch_max_bytes", "catch_up", OVER, Constraint("requests", "=", 40)), []),
        (aim("fetch_max_bytes", "catch_up", OVER, Constraint("waiting", "=", 0)), [OF_CLIENT]),
        (aim("consumer_memory", BUFFER, {BUFFER: Span(1, 9)}, Constraint("producer_waits", "=", 0)), [OF_CLIENT]),
        (aim("consumer_memory", BUFFER, {BUFFER: Span(1, 9)}, Constraint("broker_waits", "=", 0)), []),
        (aim("session_cache", SLOTS, {SLOTS: Span(1, 9)}, Constraint("harmed", "=", 0)), []),
        (aim("batch_split", BATCH, {BATCH: Span(1, 9)}, Constraint("split_rate", "<=", 0.01)), [OF_CLIENT, OF_LIMIT]),
        (aim("batch_split", "split_rate", {"topic.max.message.bytes": Span(1, 9)}), [OF_TOPIC]),
    ],
)
def test_for_whom_an_aim_can_be_judged_separately(wanted: Aim, kinds: Sequence[str]) -> None:
    assert list(scope_kinds(wanted)) == kinds
