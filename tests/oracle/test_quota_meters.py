"""The kernel makes clients wait as long as a broker's own ClientQuotaManager does."""

from __future__ import annotations

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.oracle.conftest import Jars, RunJava
from udfs.columns.records import new_records
from udfs.replay.fetch_max_bytes import quota_meter as quota
from udfs.replay.fetch_max_bytes.closed_loop.settings import RULES
from udfs.replay.fetch_max_bytes.settings import quota_bytes

KAFKA = "4.3.1"
BEGIN_MS = 1_764_000_000_000
Quota = tuple[int, int, int]
Responses = list[tuple[int, int]]


@st.composite
def fetched(draw: st.DrawFn) -> tuple[Quota, Responses]:
    """A quota, and responses as (bytes, ms after the one before). Half of the quotas have the default windows. Gaps are
    shorter than a window, some windows long, or about as long as all windows.
    """
    windows, seconds = draw(st.just((11, 1)) | st.tuples(st.integers(1, 12), st.integers(1, 3)))
    rate = draw(st.integers(1, 5_000_000))
    most = rate * windows * seconds * 1.2
    gaps = st.integers(0, 300) | st.integers(0, 5_000) | st.integers(windows * seconds * 900, windows * seconds * 1_100)
    responses = draw(st.lists(st.tuples(st.integers(16, round(most) + 16), gaps), min_size=1, max_size=40))
    return (rate, windows, seconds), responses


def gathered(count: int) -> list[tuple[Quota, Responses]]:
    """Random examples, gathered so that Java is started only once."""
    found: list[tuple[Quota, Responses]] = []

    @settings(max_examples=count, phases=[Phase.generate])
    @given(example=fetched())
    def gather(example: tuple[Quota, Responses]) -> None:
        found.append(example)

    gather()
    return found


def told(of: Quota, responses: Responses) -> tuple[list[str], list[int]]:
    """The lines for Java, and the kernel's answers. A client that must wait comes again after it has waited."""
    rate, windows, seconds = of
    rules = new_records(RULES, 1, byte_rate=rate, quota_windows=windows, quota_window_ms=1000 * seconds)[0]
    meters, time = quota.new_meters(1, windows), BEGIN_MS
    lines, waits = [f"quota {rate} {windows} {seconds}"], [int(quota_bytes(*(np.array([of]) for of in of))[0])]
    for size, gap in responses:
        time += gap
        for _ in range(2):
            lines.append(f"{size} {time}")
            waits.append(int(quota.throttle_ms(meters, 0, rules, size, time)))
            if waits[-1] == 0:
                break
            time += waits[-1]
    return lines, waits


def said_by_kafka(run_java: RunJava, jars: Jars, of_all: list[tuple[list[str], list[int]]]) -> list[str]:
    """The answers of the broker's own class to the lines of all examples."""
    names = ("kafka-server", "kafka-server-common", "kafka-clients")
    lines = "\n".join(line for of, _ in of_all for line in of)
    return run_java(
        "QuotaMeters.java", *jars(*(f"org.apache.kafka:{name}:{KAFKA}" for name in names)), stdin=lines
    ).split()


def test_a_client_waits_as_long_as_the_brokers_quota_manager_says(run_java: RunJava, jars: Jars) -> None:
    of_all = [told(*example) for example in gathered(300)]
    waits = [wait for _, of in of_all for wait in of]
    assert [int(word) for word in said_by_kafka(run_java, jars, of_all)] == waits
    assert sum(wait > 0 for wait in waits) > len(waits) // 4


def told_of_producer(of: Quota, requests: Responses) -> tuple[list[str], list[int]]:
    """The lines for Java, and the kernel's answers. The producer has two connections, and each sends again when the
    broker takes its next request.
    """
    rate, windows, seconds = of
    rules = new_records(RULES, 1, byte_rate=rate, quota_windows=windows, quota_window_ms=1000 * seconds)[0]
    meters, time, free = quota.new_meters(1, windows), BEGIN_MS, [BEGIN_MS, BEGIN_MS]
    lines, waits = [f"quota {rate} {windows} {seconds}"], list[int]()
    for number, (size, gap) in enumerate(requests):
        time = max(time + gap, min(free)) if number % 3 else time + gap
        lines.append(f"produce {size} {time}")
        waits.append(int(quota.produce_throttle_ms(meters, 0, rules, size, time)))
        free[free.index(min(free))] = time + waits[-1]
    return lines, waits


def test_a_producer_waits_as_long_as_the_brokers_quota_manager_says(run_java: RunJava, jars: Jars) -> None:
    of_all = [told_of_producer(*example) for example in gathered(300)]
    kafkas = said_by_kafka(run_java, jars, of_all)
    of_quotas = [line.startswith("quota") for of, _ in of_all for line in of]
    waits = [wait for _, of in of_all for wait in of]
    assert [int(word) for word, is_quota in zip(kafkas, of_quotas, strict=True) if not is_quota] == waits
    assert sum(wait > 0 for wait in waits) > len(waits) // 4


def test_a_response_is_as_large_as_the_broker_counts_it(run_java: RunJava, jars: Jars) -> None:
    """The partitions are of one topic, and each has records of 20 KiB."""
    said = run_java("FetchResponseSizes.java", *jars(f"org.apache.kafka:kafka-clients:{KAFKA}"))
    sizes = {int(count): int(size) for count, size in (line.split() for line in said.splitlines())}
    assert sizes == {
        count: quota.RESPONSE_BYTES + bool(count) * quota.TOPIC_BYTES + count * (quota.PARTITION_BYTES + 20 * 1024)
        for count in (0, 1, 2, 7)
    }
