"""The kernels grant and refuse what Kafka's own SimpleMemoryPool, GarbageCollectedMemoryPool and BufferPool do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.oracle.conftest import RunJava
from udfs.replay.consumer_memory import pool as memory_pool
from udfs.replay.consumer_memory.pool import POOL
from udfs.replay.consumer_memory.producer import buffer_pool
from udfs.replay.consumer_memory.producer.buffer_pool import BUFFERS, new_waiters
from udfs.replay.consumer_memory.traces import DELAYED_APIS

Step = tuple[str, int, int]  # "+" or "!" to allocate, "-" to release; number of the allocation; size
Example = tuple[tuple[int, ...], list[Step]]
OUTCOMES = {memory_pool.GRANTED: "granted", memory_pool.REFUSED: "refused", memory_pool.ILLEGAL: "illegal"}


@st.composite
def pool_steps(draw: st.DrawFn) -> tuple[tuple[int, int, int], list[Step]]:
    """A pool, and allocations and releases. Only the pool says whether an allocation is granted."""
    size = draw(st.integers(1, 200))
    pool = (size, draw(st.integers(1, size)), draw(st.integers(0, 1)))
    sizes = draw(st.lists(st.integers(0, pool[1] + 3) | st.just(-1), max_size=40))
    return pool, [("-" if size < 0 else "+", number, size) for number, size in enumerate(sizes)]


@st.composite
def buffer_steps(draw: st.DrawFn) -> tuple[tuple[int, int], list[Step]]:
    """A buffer pool, allocations that wait, allocations that do not wait, and releases."""
    poolable = draw(st.integers(1, 60))
    total = draw(st.integers(1, 200))
    sizes = draw(st.lists(st.just(-1) | st.just(poolable) | st.integers(1, total + 3), max_size=40))
    return (total, poolable), [
        ("-" if size < 0 else draw(st.sampled_from("+++!")), number, size) for number, size in enumerate(sizes)
    ]


def gathered(strategy: st.SearchStrategy[Example], count: int) -> list[Example]:
    """Random examples, gathered so that Java is started only once."""
    found: list[Example] = []

    @settings(max_examples=count, phases=[Phase.generate])
    @given(example=strategy)
    def gather(example: Example) -> None:
        found.append(example)

    gather()
    return found


def told_of_pool(pool: tuple[int, ...], steps: list[Step], kinds: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The lines for Java, and the kernel's outcomes. A release gives back the oldest allocation that is still held."""
    row = np.zeros(1, POOL)
    memory_pool.fill_pool(row[0], *pool)
    lines: list[str] = []
    outcomes: list[str] = []
    held: list[tuple[int, int]] = []
    for action, number, size in steps:
        if action == "-":
            if not held:
                continue
            which, size = held.pop(0)
            memory_pool.release_memory(row[0], size, 0)
            lines.append(f"- {which}")
            outcome = "released"
        else:
            code = memory_pool.try_allocate(row[0], size, 0)
            lines.append(f"+ {number} {size}")
            outcome = OUTCOMES[code]
            if code == memory_pool.GRANTED:
                held.append((number, size))
        is_out = str(bool(row["available"][0] <= 0)).lower()  # MemoryPool.isOutOfMemory
        outcomes.append(f"{outcome} {row['available'][0]} {is_out}")
    opened = [f"{kind} {' '.join(map(str, pool))}" for kind in kinds]
    return [line for first in opened for line in (first, *lines)], ["new", *outcomes] * len(kinds)


def told_of_buffers(pool: tuple[int, ...], steps: list[Step]) -> tuple[list[str], list[str]]:
    """As `told_of_pool`, for a buffer pool."""
    row, waiters = np.zeros(1, BUFFERS), new_waiters(len(steps) + 1)
    waiters.allocations["state"] = -1
    buffer_pool.fill_buffers(row[0], *pool)
    lines, outcomes = [f"buffers {pool[0]} {pool[1]}"], ["new"]
    released: set[str] = set()

    def in_state(state: int) -> str:
        found = {str(number) for number in np.flatnonzero(waiters.allocations["state"] == state)}
        return ",".join(sorted(found - released))

    for action, number, size in steps:
        if action == "-":
            free = sorted(set(in_state(buffer_pool.GRANTED).split(",")) - {""}, key=int)
            if not free:
                continue
            released.add(free[0])
            buffer_pool.deallocate(row[0], waiters, int(waiters.allocations["size"][int(free[0])]))
            lines.append(f"- {free[0]}")
        else:
            state = buffer_pool.allocate(row[0], waiters, number, size)
            if state == buffer_pool.WAITING and action == "!":
                buffer_pool.give_up_waiting(row[0], waiters, number)
                buffer_pool.signal_if_any_left(row[0], waiters)
            lines.append(f"{action} {number} {size}")
        outcomes.append(
            f"granted {in_state(buffer_pool.GRANTED)} exhausted {in_state(buffer_pool.EXHAUSTED)} illegal "
            f"{in_state(buffer_pool.ILLEGAL)} queued {row['end'][0] - row['first'][0]} available "
            f"{buffer_pool.available_memory(row[0])} unallocated {row['non_pooled'][0]}"
        )
    return lines, outcomes


def agree(kafka_clients: Path, run_java: RunJava, told: list[tuple[list[str], list[str]]]) -> None:
    lines = [line for some, _ in told for line in some]
    printed = run_java("MemoryPools.java", kafka_clients, stdin="\n".join(lines)).splitlines()
    assert list(zip(lines, printed, strict=True)) == list(
        zip(lines, [o for _, some in told for o in some], strict=True)
    )


def test_pools_grant_and_refuse_what_kafkas_do(kafka_clients: Path, run_java: RunJava) -> None:
    both = ("simple", "collected")
    in_text = ((21, 10, 0), [("+", n, 10) for n in range(3)] + [("+", 3, 1), ("-", 4, 0), ("+", 5, 10), ("+", 6, 1)])
    told = [told_of_pool(pool, steps, both) for pool, steps in [in_text, *gathered(pool_steps(), 80)]]
    outcomes = [outcome.split()[0] for _, some in told for outcome in some]
    assert {"granted", "refused", "illegal", "released"} <= set(outcomes)
    agree(kafka_clients, run_java, told)


def test_buffer_pools_serve_waiters_as_kafkas_do(kafka_clients: Path, run_java: RunJava) -> None:
    told = [told_of_buffers(pool, steps) for pool, steps in gathered(buffer_steps(), 60)]
    queued = [int(outcome.split("queued ")[1].split()[0]) for _, some in told for outcome in some if outcome != "new"]
    assert max(queued) >= 3
    agree(kafka_clients, run_java, told)


def test_a_release_made_twice_counts_twice_but_where_the_pool_keeps_track(
    kafka_clients: Path, run_java: RunJava
) -> None:
    twice = ["{} 100 60 0", "+ 0 50", "- 0", "- 0"]
    lines = [line.format(kind) for kind in ("simple", "collected") for line in twice]
    printed = run_java("MemoryPools.java", kafka_clients, stdin="\n".join(lines)).splitlines()
    row = np.zeros(1, POOL)
    memory_pool.fill_pool(row[0], 100, 60, 0)
    assert memory_pool.try_allocate(row[0], 50, 0) == memory_pool.GRANTED
    memory_pool.release_memory(row[0], 50, 0)
    memory_pool.release_memory(row[0], 50, 0)
    assert [printed[3], printed[7]] == [f"released {row['available'][0]} false", "illegal 100 false"]
    assert row["available"][0] == 150


def test_requests_are_held_until_handled_as_kafka_holds_them(kafka_clients: Path, run_java: RunJava) -> None:
    printed = run_java("DelayedApis.java", kafka_clients).split()
    known = {int(key.rstrip("+")) for key in printed}
    assert {int(key[:-1]) for key in printed if key.endswith("+")} == known & set(DELAYED_APIS)
