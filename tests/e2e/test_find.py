"""--find on a sample capture: the chosen lane is the best of a dense grid, and the tables of the run have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.find.judgement import meets_constraints
from jobs.find.lane_outcomes import LaneOutcomes
from jobs.ingest import ingest
from jobs.lake.table_address import table_path
from jobs.replay import conclude_run, replay
from jobs.replays.algorithm import Source
from jobs.replays.algorithms import ALGORITHMS
from jobs.run import Run
from jobs.scenarios.scenario import make_lane
from jobs.scenarios.scenario_file import resolve_scenario
from schemas.tables.gold import FETCH_RANGES, RUNS
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.values import OF_CLUSTER
from tests.e2e.conftest import RUN_AT
from tests.lakes import plant, queried, rows_by_key
from udfs.facts.arrow_tables import arrow_schema

KiB = 1 << 10
FETCH, PARTITION = "consumer.fetch.max.bytes", "consumer.max.partition.fetch.bytes"
SIZES = tuple(int(size) // KiB for size in np.geomspace(64 * KiB, 4096 * KiB, 24))
OVER = ",".join(f"{size}KiB" for size in SIZES)
AIM = f"fetch_max_bytes: least catch_up where held <= 700KiB and longest_wait <= 50ms over {FETCH}={OVER}"
A, T = AIM_SETTINGS, TRADE_OFF
FOR_ALL = f"scope_kind = '{OF_CLUSTER}'"


@dataclass(frozen=True)
class Searched:
    """A run with an aim."""

    run: Run
    capture_id: str
    run_id: str


@pytest.fixture(scope="module")
def searched(spark: SparkSession, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    scenario = resolve_scenario(None, (), (), [f"{AIM} and {PARTITION}={OVER}"])
    scenario = replace(scenario, replay={"fetch_max_bytes": {}})
    capture = repository / "tests/captures/starve.pcap.zst"
    run = Run(scenario, (capture,), str(tmp_path_factory.mktemp("find") / "lake"), RUN_AT)
    capture_id = ingest(spark, run)
    done = replay(spark, run, capture_id)
    conclude_run(spark, run, capture_id, done)
    return Searched(run, capture_id, done.run_id)


def test_the_chosen_lane_is_the_best_of_a_dense_grid(spark: SparkSession, searched: Searched) -> None:
    aim = searched.run.scenario.aims["fetch_max_bytes"]
    lanes = [make_lane({FETCH: f * KiB, PARTITION: p * KiB}) for f, p in product(SIZES, SIZES)]
    source = Source(spark, searched.run, searched.capture_id, "dense", {})
    dense = LaneOutcomes(source, ALGORITHMS["fetch_max_bytes"], aim)(lanes)
    best = min(of["catch_up"].value for of in dense.values() if meets_constraints(aim.where, of))
    row = queried(searched.run.lake, A, where=FOR_ALL)[0]
    assert row[A.is_met]
    assert dict(row[A.outcomes])["catch_up"] <= best * (1 + aim.step)


def test_the_tables_of_the_run_have_every_lane_of_the_trade_off(searched: Searched) -> None:
    lake, r = searched.run.lake, FETCH_RANGES
    lanes = {row[T.scenario] for row in queried(lake, T)}
    of_clients_alone = {row[A.scenario] for row in queried(lake, A)}
    assert set(queried(lake, RUNS)[0][RUNS.lanes]) == lanes | of_clients_alone
    (chosen,) = queried(lake, T, where=f"{T.is_chosen}")
    held = [row[r.p90] for row in queried(lake, r, where=f"{r.scenario} = '{chosen[T.scenario]}'")
            if row[r.metric] == "held_bytes" and row[r.reader] == "consumer"]  # fmt: skip
    assert max(held) == dict(chosen[T.outcomes])["held_p90"] <= 700 * KiB


def test_what_is_recommended_is_the_chosen_setting(searched: Searched) -> None:
    lake = searched.run.lake
    rows = queried(lake, RECOMMENDATIONS, where=FOR_ALL)
    advised = {row[RECOMMENDATIONS.setting]: row[RECOMMENDATIONS.recommended] for row in rows}
    values = by_setting(searched)
    assert values
    assert {key: f"{int(text.removesuffix('KiB')) * KiB}" for key, text in values.items()}.items() <= advised.items()


def by_setting(searched: Searched) -> Mapping[str, str]:
    """The settings of the lane that is chosen for all clients, with their values."""
    rows = queried(searched.run.lake, A, where=FOR_ALL)
    return {row[A.setting]: row[A.value] for row in rows if row[A.value] is not None}


def test_the_same_run_again_is_kept_with_its_lanes(spark: SparkSession, searched: Searched) -> None:
    kept = replay(spark, searched.run, searched.capture_id, keep=True)
    assert (kept.run_id, kept.counts) == (searched.run_id, None)
    conclude_run(spark, searched.run, searched.capture_id, kept)


def test_the_gate_checks_the_same_tables_of_a_run_that_is_kept(spark: SparkSession, searched: Searched) -> None:
    lake = searched.run.lake
    own = f"{GATE_RESULTS.checked_id} = '{searched.run_id}'"
    of_replay = rows_by_key(GATE_RESULTS, queried(lake, GATE_RESULTS, where=own))
    DeltaTable(table_path(lake, GATE_RESULTS)).delete(own)
    plant(lake, SESSION_CACHE, arrow_schema(SESSION_CACHE).empty_table())  # as after a run of other replays
    kept = replay(spark, searched.run, searched.capture_id, keep=True)
    conclude_run(spark, searched.run, searched.capture_id, kept)
    assert rows_by_key(GATE_RESULTS, queried(lake, GATE_RESULTS, where=own)) == of_replay


def test_a_grid_in_which_consumers_wait_is_followed_by_a_search_for_limits(
    spark: SparkSession, searched: Searched, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = replace(resolve_scenario(None), replay={"fetch_max_bytes": {FETCH: (64 * KiB,)}})
    run = replace(searched.run, scenario=scenario)
    done = replay(spark, run, searched.capture_id)
    assert "no lane meets `fetch_max_bytes: least catch_up where longest_wait <= 10ms`" in capsys.readouterr().err
    conclude_run(spark, run, searched.capture_id, done)
    of_run = f"run_id = '{done.run_id}'"
    assert not queried(searched.run.lake, A, where=of_run), "nobody gave an aim"
    (advised,) = [
        row for row in queried(searched.run.lake, RECOMMENDATIONS, where=f"{of_run} and verdict = 'change'")
        if (row[RECOMMENDATIONS.scope], row[RECOMMENDATIONS.setting]) == ("perf-consumer-client", FETCH)
    ]  # fmt: skip
    assert advised[RECOMMENDATIONS.gain_after] == 0
