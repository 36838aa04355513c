"""KIP-126 on a capture of producers that split: the replay compared with brokers' refusals and clients' own counts."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.replay import replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_RANGES, BATCH_SPLIT_TIMELINE
from schemas.tables.silver import RECORD_BATCHES
from schemas.tables.split_reasons import SPLITS
from schemas.wire.errors import MESSAGE_TOO_LARGE
from tests.e2e.conftest import IN_FORCE, RUN_AT, CapturedLake
from udfs.replay.batch_split.fidelity import Metric


@pytest.fixture(scope="module")
def lake(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("split")


@pytest.fixture(scope="module")
def counted(shared_captures: Path) -> dict[str, int]:
    """The metric batch-split-total that each client printed, by client id."""
    clients = [json.loads(line) for line in (shared_captures / "split.clients.jsonl").read_text().splitlines()]
    totals = {}
    for client in clients:
        (told,) = [text for text in client["out"] if "batch-split-total" in text]
        totals[f"split-{client['codec']}"] = int(float(told.split()[-1]))
    return totals


@pytest.fixture(scope="module")
def exact(lake: CapturedLake, tmp_path_factory: pytest.TempPathFactory) -> CapturedLake:
    """The same capture, replayed with the sizes that its records really take, also in codecs that it does not have."""
    home = tmp_path_factory.mktemp("exact")  # other tests read the newest run of the shared lake
    shutil.copytree(f"{lake.path}/silver", home / "silver")
    asked = home / "scenario.yaml"  # for this replay alone
    asked.write_text("replay:\n  batch_split:\n    producer.compression.type: [snappy, zstd]\n")
    scenario = resolve_scenario(str(asked), [], [*IN_FORCE["split"], "recut.sizes=exact", "recompress=all"])
    run = Run(scenario, (lake.capture,), str(home), RUN_AT)
    return replace(lake, path=str(home), run_id=replay(lake.spark, run, lake.capture_id).run_id, _read={})


@pytest.fixture(scope="module")
def unstated(lake: CapturedLake, tmp_path_factory: pytest.TempPathFactory) -> CapturedLake:
    """The same capture, with no settings stated. The lane splits few batches, so that no search for others begins."""
    home = tmp_path_factory.mktemp("unstated")
    shutil.copytree(f"{lake.path}/silver", home / "silver")
    asked = home / "scenario.yaml"
    asked.write_text("replay:\n  batch_split:\n    producer.batch.size: [2KiB]\n")
    run = Run(resolve_scenario(str(asked), [], []), (lake.capture,), str(home), RUN_AT)
    return replace(lake, path=str(home), run_id=replay(lake.spark, run, lake.capture_id).run_id, _read={})


def verdicts(lake: CapturedLake, metric: str) -> dict[str, dict[str, Any]]:
    """A metric's row by client id."""
    f = FIDELITY
    rows = lake.rows(f, where=f"{f.algorithm} = 'batch_split'")
    return {row[f.client_id]: row for row in rows if row[f.metric] == metric}


def replayed_splits(lake: CapturedLake) -> dict[str, int]:
    """Splits of the captured lane by client id."""
    g = BATCH_SPLIT
    return {row[g.client_id]: row[g.splits] for row in lake.rows(g, where=f"{g.scenario} = 'captured'")}


def test_splits_in_the_capture_are_as_many_as_brokers_refused_and_clients_counted(
    lake: CapturedLake, counted: dict[str, int]
) -> None:  # fmt: skip
    b, f = RECORD_BATCHES, FIDELITY
    refused = Counter(row[b.client_id] for row in lake.rows(b) if row[b.error_code] == MESSAGE_TOO_LARGE)
    assert dict(refused) == counted
    splits = verdicts(lake, "splits")
    assert {client: (row[f.checked], row[f.agreed]) for client, row in splits.items()} == {
        client: (n, n) for client, n in counted.items()
    }


def test_the_captured_lane_splits_about_as_often_as_clients_counted(
    lake: CapturedLake, counted: dict[str, int]
) -> None:
    assert replayed_splits(lake) == pytest.approx(counted, rel=0.25)


def test_batches_end_where_the_replay_ends_them(lake: CapturedLake) -> None:
    """A batch is unknown only if its end depends on the order of closes and appends."""
    f = FIDELITY
    rows = verdicts(lake, "batches").values()
    checked, unknown = (sum(row[column] for row in rows) for column in (f.checked, f.unknown))
    assert sum(row[f.agreed] for row in rows) >= 0.95 * checked
    assert checked >= 0.4 * (checked + unknown)
    unknown_for = SPLITS.counted_as("unknown")
    for row in rows:
        reasons = dict(row[f.reasons])
        assert sum(reasons.values()) == row[f.checked] - row[f.agreed] + row[f.unknown]
        assert {reason for reason in reasons if reason in unknown_for} == {"close_append_order"}


def test_a_batch_size_that_nobody_states_is_inferred_from_the_batches(unstated: CapturedLake) -> None:
    f, g, r = FIDELITY, BATCH_SPLIT, RUNS
    captured = unstated.rows(g, where=f"{g.scenario} = 'captured'")
    assert {(row[g.client_id], row[g.batch_size], row[g.is_batch_size_told]) for row in captured} == {
        ("split-gzip", 38_000, True), ("split-lz4", 38_000, True),
    }  # fmt: skip
    batches = verdicts(unstated, "batches").values()
    assert sum(row[f.agreed] for row in batches) >= 0.95 * sum(row[f.checked] for row in batches)
    (run,) = unstated.rows(r)
    told = "inferred from each producer's batches; outside batch_split, Kafka's default for those that compress"
    assert f"producer.batch.size: {told}" in run[r.assumed]


def test_predicted_sizes_of_split_batches_are_within_the_stated_error(lake: CapturedLake) -> None:
    f, g = FIDELITY, BATCH_SPLIT
    for metric in (Metric.RECUT_BY_PARTS, Metric.RECUT_FITTED):
        rows = verdicts(lake, metric).values()
        assert sum(row[f.agreed] for row in rows) >= 0.8 * sum(row[f.checked] for row in rows) > 0
    assert all(row[g.size_error] < 0.05 for row in lake.rows(g))


def test_records_that_are_compressed_again_take_as_many_bytes_as_captured(exact: CapturedLake) -> None:
    """This holds within half a per cent for every batch of the capture: those sent first, and those made by splits."""
    f = FIDELITY
    for metric in (Metric.FIRST_EXACT, Metric.RECUT_EXACT):
        rows = verdicts(exact, metric)
        assert set(rows) == {"split-gzip", "split-lz4"}
        assert all(row[f.agreed] == row[f.checked] > 0 for row in rows.values())


def test_every_batch_of_a_lane_is_measured_in_any_codec_and_compared_with_the_model(exact: CapturedLake) -> None:
    g = BATCH_SPLIT
    sent: dict[str, int] = {}
    for row in exact.rows(g):
        assert row[g.measured_batches] == row[g.batches] + row[g.split_batches]
        assert 0 < row[g.size_error] < 1
        sent[row[g.scenario]] = sent.get(row[g.scenario], 0) + row[g.bytes_sent]
    codec = "producer.compression.type"
    assert sent[f"{codec}=snappy"] > sent["captured"] > 0.9 * sent[f"{codec}=zstd"]


def test_with_measured_sizes_the_captured_lane_splits_as_often_as_clients_counted(
    exact: CapturedLake, counted: dict[str, int]
) -> None:
    assert replayed_splits(exact) == pytest.approx(counted, rel=0.1, abs=1)


def test_smaller_batches_split_less(lake: CapturedLake) -> None:
    g = BATCH_SPLIT
    rates: dict[str, float] = {}
    for row in lake.rows(g):
        rates[row[g.scenario]] = max(rates.get(row[g.scenario], 0.0), row[g.split_rate])
    sizes = ["producer.batch.size=16KiB", "producer.batch.size=30kB", "captured", "producer.batch.size=64KiB"]
    assert [rates[size] for size in sizes] == sorted(rates[size] for size in sizes)
    assert rates["producer.batch.size=16KiB"] < 0.01
    assert rates["captured"] == rates["producer.batch.size=38kB"]


def test_each_figure_of_a_lane_has_a_range_and_all_lanes_have_the_same_draws(lake: CapturedLake) -> None:
    g, r = BATCH_SPLIT, BATCH_SPLIT_RANGES
    ranges = {(row[r.scenario], row[r.client_id], row[r.metric]): row for row in lake.rows(r)}
    for row in lake.rows(g):
        for metric in (g.splits, g.split_rate, g.batches, g.bytes_resent):
            assert ranges[row[g.scenario], row[g.client_id], metric][r.value] == row[metric]
    assert len(ranges) == 4 * len(lake.rows(g))
    assert all(row[r.p10] <= row[r.p50] <= row[r.p90] and row[r.replications] == 20 for row in ranges.values())
    assert not ranges["captured", "split-lz4", g.splits][r.is_exact]
    for (lane, client, metric), row in ranges.items():
        if lane == "captured":
            same = ranges["producer.batch.size=38kB", client, metric]
            assert [row[end] for end in (r.p10, r.p50, r.p90)] == [same[end] for end in (r.p10, r.p50, r.p90)]


def test_the_timeline_has_every_batch(lake: CapturedLake) -> None:
    g, line = BATCH_SPLIT, BATCH_SPLIT_TIMELINE
    spans: Counter[tuple[str, str]] = Counter()
    for row in lake.rows(line):
        spans[row[line.scenario], row[line.client_id]] += row[line.batches]
    sent = {(row[g.scenario], row[g.client_id]): row[g.batches] + row[g.split_batches] for row in lake.rows(g)}
    assert dict(spans) == sent


def test_only_sizes_and_times_of_records_are_kept(lake: CapturedLake) -> None:
    b = RECORD_BATCHES
    for row in lake.rows(b, where=f"{b.source} = 'produce'"):
        assert len(row[b.record_sizes]) == len(row[b.create_times]) == row[b.record_count]
        assert sum(row[b.record_sizes]) < row[b.uncompressed_bytes]
        assert max(row[b.create_times]) == row[b.max_timestamp]
