"""The replay of KIP-126 does what Kafka's own RecordAccumulator, ProducerBatch and CompressionRatioEstimator do."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from schemas.tables.gold_splits import BATCH_SPLIT
from schemas.tables.steps import SENT
from tests.oracle.conftest import Jars, RunJava
from tests.unit.replay.batch_split.producers import (
    Produced,
    Producer,
    Row,
    content_of,
    gold_rows,
    lanes_of,
    replayed,
    sent,
    settings_of,
)
from udfs.replay.batch_split.estimate import record_bytes, updated_estimate
from udfs.replay.batch_split.state import SizeModel

CODECS = ("org.xerial.snappy:snappy-java:1.1.10.7", "at.yawk.lz4:lz4-java:1.10.1", "com.github.luben:zstd-jni:1.5.6-10")
RELEASES = {"4.1.1": False, "4.3.1": True}
"""By release: whether a split batch that is refused again is split in halves."""


@dataclass
class Case:
    """Records for a producer, and the batches that Kafka's made of them: (records, bytes), in the order of sending."""

    batch_size: int
    limit: int
    linger: int
    codec: str
    records: list[tuple[int, str, int]]  # (ms after the record before, kind, bytes of the value)
    seed: int
    sent: list[tuple[int, int]] = field(default_factory=list)
    is_refused: list[bool] = field(default_factory=list)
    estimate_bits: int = 0

    def text(self, halves: bool) -> str:
        head = f"accumulate {self.batch_size} {self.limit} {self.linger} {self.codec} {self.seed} {halves}"
        return "\n".join([head, *(f"{wait} {kind} {size}" for wait, kind, size in self.records), "end"])


def random_case(seed: int) -> Case:
    """Stretches of records that compress well or badly, in batches near the limit."""
    source = random.Random(seed)  # noqa: S311  (no secret depends on it)
    batch_size = source.choice([512, 1024, 4096, 16384])
    records: list[tuple[int, str, int]] = []
    while len(records) < 200:
        kind, stretch = source.choice("gpz"), source.randint(1, 120)
        for _ in range(stretch):
            size = source.choice([0, 10, 100, 100, 400, source.randint(0, batch_size * 2)])
            records.append((source.choice([0, 0, 0, 1, 3, 20]), kind, size))
    limit = source.choice([batch_size // 2, batch_size + 61, batch_size * 2])
    return Case(
        batch_size, limit, source.choice([0, 5, 20]), source.choice(["gzip", "snappy", "lz4", "zstd"]), records, seed
    )


def frequency_case(share: int) -> Case:
    """RecordAccumulatorTest.testSplitFrequency: 1000 records, of which `share` per cent compress well."""
    source = random.Random(share)  # noqa: S311  (no secret depends on it)
    records = [(0, "g" if source.randrange(100) < share else "p", 100) for _ in range(1000)]
    return Case(1024, 1024 + 61, 10, "gzip", records, share)


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


RATIOS = np.random.default_rng(7).uniform(0, 1.2, 4000).astype(np.float32)


@dataclass
class Told:
    """What Kafka's classes of one release said."""

    estimates: list[int]
    frequency: list[Case]
    random: list[Case]


@pytest.fixture(scope="module")
def told(release: str, jars: Jars, run_java: RunJava) -> Told:
    frequency = [frequency_case(share) for share in range(1, 100, 7)]
    cases = [random_case(seed) for seed in range(40)]
    classpath = jars(f"org.apache.kafka:kafka-clients:{release}", *CODECS)
    asked = "estimate " + " ".join(map(str, RATIOS.view(np.int32).tolist()))
    text = "\n".join([asked, *(case.text(RELEASES[release]) for case in (*frequency, *cases)), ""])
    lines = run_java("AccumulatorOfRecords.java", *classpath, stdin=text).split("\n")
    rest = iter(lines[len(RATIOS) :])
    for case in (*frequency, *cases):
        for line in rest:
            words = line.split()
            if words[0] == "end":
                case.estimate_bits = int(words[1])
                break
            if words[0] == "split":
                case.is_refused[-1] = True
            else:
                case.sent.append((int(words[1]), int(words[2])))
                case.is_refused.append(False)
    return Told([int(line) for line in lines[: len(RATIOS)]], frequency, cases)


def spans_of(case: Case) -> list[tuple[int, int]]:
    """(first record, last record + 1) of every batch. Batches made by a split have the records of the split batch."""
    spans, waiting, at = [], [0], 0
    for (records, _), refused in zip(case.sent, case.is_refused, strict=True):
        at = waiting.pop()
        spans.append((at, at + records))
        if refused:
            waiting += [at + records, at] if not waiting or waiting[-1] != at + records else [at]
        elif not waiting or waiting[-1] != at + records:
            waiting.append(at + records)
    return spans


def sizes_of(case: Case, codec: int) -> SizeModel:
    """Kafka's batch sizes in the form that the replay takes: a part by first record, and a running sum over records."""
    n, spans = len(case.records), spans_of(case)
    system = np.zeros((len(spans), 2 * n + 1))
    for row, (first, end) in enumerate(spans):
        system[row, first] += 1
        system[row, n + end] += 1
        system[row, n + first] -= 1
    inside = np.array([size - 61 for _, size in case.sent], np.float64)
    solved = np.linalg.lstsq(system, inside, rcond=None)[0]
    assert np.abs(system @ solved - inside).max() < 0.01
    fixed, cost = np.zeros((5, n)), np.zeros((5, n + 1))
    fixed[codec], cost[codec] = solved[:n], solved[n:]
    return SizeModel(fixed, np.stack([cost, cost]))


def check(case: Case, halves: bool) -> None:
    producer = Producer(case.batch_size, case.limit, case.linger, case.codec, halves=halves)
    ms = np.cumsum([wait for wait, _, _ in case.records]).tolist()
    records = Produced(ms, [size for _, _, size in case.records])
    found = replayed(producer, records, sizes_of(case, producer.codec_number))
    assert found.of("batches") + found.of("split_batches") == len(case.sent)
    assert found.of("splits") == sum(case.is_refused)
    assert found.of("bytes_sent") == sum(size for _, size in case.sent)
    assert int(found.estimates[0].view(np.int32)) == case.estimate_bits


def test_the_estimate_is_the_estimators_to_the_last_bit(told: Told) -> None:
    estimate, found = np.float32(1), []
    (settings,) = settings_of(Producer(1024, 1024, 0, "gzip"))
    for ratio in RATIOS:
        estimate = np.float32(updated_estimate(settings, estimate, ratio))
        found.append(int(estimate.view(np.int32)))
    assert found == told.estimates


def test_batches_and_splits_of_random_records_are_the_accumulators(told: Told, release: str) -> None:
    for case in told.random:
        check(case, RELEASES[release])
    assert sum(sum(case.is_refused) for case in told.random) > 50, "the cases have splits"


def test_mixed_ratios_split_well_under_a_tenth_of_the_batches_as_kip_126_says(told: Told, release: str) -> None:
    for case in told.frequency:
        check(case, RELEASES[release])
        assert sum(case.is_refused) < 0.1 * len(case.sent)


def rows_of(lines: list[str]) -> list[Row]:
    """The rows of SENT for the batches that BusyProducer sent."""
    made: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
    for words in (line.split() for line in lines if line.startswith("record ")):
        partition, ms, size = map(int, words[1:])
        made[partition].append((ms, int(content_of([size])[0])))
    rows = []
    for words in (line.split() for line in lines if line.startswith("batch ")):
        partition, first, records, size, request, response, error = map(int, words[1:])
        times, contents = zip(*made[partition][first : first + records], strict=True)
        uncompressed = sum(record_bytes(contents[at], at, times[at] - times[0]) for at in range(records))
        columns = {
            SENT.partition: partition, SENT.connection_id: partition, SENT.base_sequence: first,
            SENT.exchange_no: request, SENT.append_from: times[0] * 1000, SENT.request_time: request,
            SENT.response_time: response, SENT.record_sizes: list(contents), SENT.create_times: list(times),
            SENT.uncompressed_bytes: uncompressed,
        }  # fmt: skip
        rows.append(sent(0, records, size, 0, error, **columns))
    return sorted(rows, key=lambda row: (row[SENT.append_from], row[SENT.request_time]))


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_the_captured_lane_splits_as_a_producer_did_whose_sender_and_application_had_to_wait(
    seed: int, jars: Jars, run_java: RunJava
) -> None:
    """Kafka's classes decide what waits behind the parts of a split batch, and when a close changes the estimate."""
    producer = Producer(2048, 2200, linger=100)
    arguments = [str(producer.batch_size), str(producer.limit), str(producer.linger), "gzip", "12000", str(seed)]
    classpath = jars("org.apache.kafka:kafka-clients:4.3.1", *CODECS)
    lines = run_java("BusyProducer.java", *classpath, arguments=arguments).splitlines()
    splits, rows = int(lines[-1].split()[1]), rows_of(lines)
    (lane,) = gold_rows(rows, lanes_of(producer, names=["captured"]))[BATCH_SPLIT.name]
    assert splits >= 20
    assert (lane[BATCH_SPLIT.splits], lane[BATCH_SPLIT.bytes_sent]) == (
        splits,
        sum(row[SENT.size_bytes] for row in rows),
    )
