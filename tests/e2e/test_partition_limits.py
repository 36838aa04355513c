"""Partition limits (KIP-578, a proposal) on a real cluster's administration, and on a cluster that a file describes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.lake.delta_tables import stored_rows
from jobs.report_page.findings import known_run, look_up_run
from jobs.report_page.summary import run_summary as summary_of_captures
from jobs.run import Run
from jobs.scenarios.cluster_file import read_cluster
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.size import ALGORITHM, replay_described_cluster, size_summary
from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import (
    PARTITION_LIMIT_CURVE,
    PARTITION_LIMIT_HEADROOM,
    PARTITION_LIMIT_REFUSALS,
    PARTITION_LIMITS,
    PARTITIONS_PER_BROKER,
)
from tests.e2e.conftest import RUN_AT, CapturedLake

PAPER = """\
brokers: {count: 5}
topics: [{name: old, count: 10, partitions: 5, replication.factor: 3}]
growth: {days: 30, topics: [{name: new, partitions: 5, replication.factor: 3, topics.per.day: 1}]}
"""


@pytest.fixture(scope="module")
def admin(captured: Callable[[str], CapturedLake]) -> CapturedLake:
    return captured("admin")


def test_the_replay_derives_every_answer_of_the_cluster(admin: CapturedLake, shared_captures: Path) -> None:
    f = FIDELITY
    rows = [row for row in admin.rows(f) if row[f.algorithm] == ALGORITHM]
    changes = {row[f.metric]: row for row in rows if row[f.metric] != "placements"}
    lines = map(json.loads, (shared_captures / "admin.clients.jsonl").read_text().splitlines())
    named = [name for line in lines for name in line.get("result", {})]  # a topic that grew has a plus
    grown = sum(name.endswith("+") for name in named)
    assert {metric: row[f.checked] for metric, row in changes.items()} == {
        "create_topic": len(named) - grown, "create_partitions": grown, "auto_create": 1, "reassign_partition": 1,
    }  # fmt: skip
    assert all(row[f.agreed] == row[f.checked] and row[f.unknown] == 0 for row in changes.values())


def test_the_placements_in_metadata_are_among_those_that_the_placer_can_draw(admin: CapturedLake) -> None:
    f = FIDELITY
    rows = [row for row in admin.rows(f) if row[f.metric] == "placements"]
    assert sum(row[f.agreed] for row in rows) == sum(row[f.checked] for row in rows) > 0
    assert {reason for row in rows for reason, _ in row[f.reasons]} == {"not_in_metadata"}


def test_lanes_refuse_changes_and_stay_within_their_limits(admin: CapturedLake) -> None:
    t, b = PARTITION_LIMITS, PARTITIONS_PER_BROKER
    by_lane: dict[str, int] = {}
    for row in admin.rows(t):
        by_lane[row[t.scenario]] = by_lane.get(row[t.scenario], 0) + row[t.tried] - row[t.done]
    assert by_lane["captured"] == 0
    assert all(count > 0 for lane, count in by_lane.items() if lane not in ("captured",))
    limited = [row for row in admin.rows(b) if "max.broker.partitions=200" in row[b.scenario]]
    assert max(row[b.partitions] for row in limited) <= 200
    assert all(row[b.headroom] == 200 - row[b.partitions] for row in limited)


def test_a_refusal_names_its_limit_the_present_number_and_the_number_asked_for(admin: CapturedLake) -> None:
    r = PARTITION_LIMIT_REFUSALS
    told = [row for row in admin.rows(r) if row[r.refused_by] in ("max.partitions", "max.broker.partitions")]
    assert told
    for row in told:
        assert row[r.error_code] == 44
        assert "KIP-578, a proposal" in row[r.message]
        assert f"limit {row[r.limit_value]}, present {row[r.present]}, asked {row[r.asked]}" in row[r.message]


def test_the_curve_begins_with_the_first_creation_and_ends_where_nothing_fails(admin: CapturedLake) -> None:
    c = PARTITION_LIMIT_CURVE
    steps = sorted(
        (row for row in admin.rows(c) if row[c.refused_by] == "max.partitions"), key=lambda row: row[c.limit_from]
    )
    assert (steps[0][c.topic], steps[0][c.limit_from], steps[0][c.limit_to]) == ("t1-0-0", 1, 47)
    assert (steps[-1][c.topic], steps[-1][c.limit_to]) == (None, None)


def test_the_summary_says_that_it_is_a_proposal_and_what_each_lane_refuses(admin: CapturedLake) -> None:
    run = known_run(admin.spark, admin.path, admin.run_id)
    text = summary_of_captures(admin.path, run, look_up_run(admin.spark, admin.path, run))
    part = text[text.index("Partition limits (KIP-578, a proposal)") :]
    assert "max.broker.partitions=200  max.partitions=300" in part
    assert "From max.broker.partitions=" in part


def test_a_cluster_on_paper_is_sized_without_a_capture(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(PAPER)
    scenario = resolve_scenario(None, ["max.partitions=400"], [])
    scenario = replace(scenario, replay={ALGORITHM: scenario.replay[ALGORITHM]})
    run = Run(scenario, (), str(tmp_path / "lake"), RUN_AT, cluster=str(path))
    run_name = replay_described_cluster(spark, run, read_cluster(str(path)), "paper")
    t, h = PARTITION_LIMITS, PARTITION_LIMIT_HEADROOM
    limits = {row[t.scenario]: row for row in stored_rows(spark, run.lake, t, run_name).collect()}
    # The cluster has 150 replicas and each new topic has 15, so 16 topics fit below 400 and 14 do not.
    assert (limits["max.partitions=400"][t.done], limits["max.partitions=400"][t.refused_by_cluster_limit]) == (16, 14)
    assert limits["captured"][t.done] == 30
    (room,) = stored_rows(spark, run.lake, h, run_name).collect()
    assert (room[h.partitions], room[h.headroom]) == (390, 10)
    assert room[h.growth_per_day] == pytest.approx(15, rel=0.05)
    assert "max.partitions=400" in size_summary(spark, run, "paper", run_name)
