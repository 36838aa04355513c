"""--find judges clients one by one: on sample captures each of them gets the best of the replayed lanes. If no lane of
a grid solves a problem, the run goes on searching.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.replay import conclude_run, replay
from jobs.run import Run
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import setting_of
from schemas.tables.gold_aims import AIM_SETTINGS
from schemas.tables.gold_memory import PRODUCER_MEMORY
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_RANGES
from schemas.tables.values import OF_CLIENT, OF_CLUSTER, OF_LIMIT
from tests.e2e.conftest import RUN_AT
from tests.lakes import queried
from udfs.errors import ArgumentError

BATCH, BUFFER = "producer.batch.size", "producer.buffer.memory"

A, R = AIM_SETTINGS, RECOMMENDATIONS
FEW = 0.01


@dataclass(frozen=True)
class Searched:
    """A run with one aim and only the replay of that aim."""

    run: Run
    capture_id: str

    def rows(self, table: Any, where: str = "true") -> list[dict[str, Any]]:
        return queried(self.run.lake, table, where=where)


def searched(spark: SparkSession, capture: Path, lake: Path, algorithm: str, aim: str) -> Searched:
    scenario = replace(resolve_scenario(None, (), (), [aim]), replay={algorithm: {}})
    run = Run(scenario, (capture,), str(lake), RUN_AT)
    capture_id = ingest(spark, run)
    conclude_run(spark, run, capture_id, replay(spark, run, capture_id))
    return Searched(run, capture_id)


@pytest.fixture(scope="module")
def splits(spark: SparkSession, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    aim = f"batch_split: largest batch.size where split_rate <= 1% over {BATCH}=2KiB..256KiB"
    lake = tmp_path_factory.mktemp("splits") / "lake"
    return searched(spark, repository / "tests/captures/split.pcap.zst", lake, "batch_split", aim)


@pytest.fixture(scope="module")
def two_limits(spark: SparkSession, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    aim = f"batch_split: largest batch.size where split_rate <= 1% over {BATCH}=512B..4KiB"
    lake = tmp_path_factory.mktemp("two-limits") / "lake"
    capture = repository / "tests/captures/limits/two_limits.pcap.zst"
    return searched(spark, capture, lake, "batch_split", aim)


def few_split(of: Searched, column: str, names: Collection[str]) -> Iterator[int]:
    """The batch.size of each lane in which few batches of these clients or topics are split, at any pace.

    column: what `names` are values of, such as the client id.
    """
    r, worst = BATCH_SPLIT_RANGES, dict[str, float]()
    for row in of.rows(r):
        if row[r.metric] == "split_rate" and row[column] in names:
            worst[row[r.scenario]] = max(row[r.p90], worst.get(row[r.scenario], 0.0))
    for lane, rate in worst.items():
        if rate <= FEW and lane.startswith(f"{BATCH}="):
            yield int(setting_of(BATCH).parse(lane.removeprefix(f"{BATCH}=")))


def test_producers_and_limits_have_the_largest_batch_size_that_suits_them_alone(splits: Searched) -> None:
    r, b = BATCH_SPLIT_RANGES, BATCH_SPLIT
    own = splits.rows(R, f"{R.scope_kind} <> 'cluster' and {R.setting} = '{BATCH}'")
    assert own
    assert {row[R.scope_kind] for row in own} <= {OF_CLIENT, OF_LIMIT}
    for row in own:
        column, names = str(r.client_id), {row[R.scope]}
        if row[R.scope_kind] == OF_LIMIT:
            same = splits.rows(b, f"{b.scenario} = 'captured' and {b.max_message_bytes} = {row[R.scope]}")
            column, names = str(r.topic), {topic[b.topic] for topic in same}
        assert int(row[R.recommended]) == max(few_split(splits, column, names))
    (every,) = splits.rows(A, f"{A.scope_kind} = 'cluster'")
    assert all(int(row[R.recommended]) > int(setting_of(BATCH).parse(every[A.value])) for row in own)


def test_topics_of_the_larger_of_two_limits_have_a_larger_batch_size(two_limits: Searched) -> None:
    b, r = BATCH_SPLIT, BATCH_SPLIT_RANGES
    captured = two_limits.rows(b, f"{b.scenario} = 'captured'")
    split_by_limit = {row[b.max_message_bytes]: 0 for row in captured}
    for row in captured:
        split_by_limit[row[b.max_message_bytes]] += row[b.splits]
    assert split_by_limit.keys() == {2100, 2500}
    assert all(split_by_limit.values())

    topics = {limit: {row[b.topic] for row in captured if row[b.max_message_bytes] == limit} for limit in (2100, 2500)}
    best = {limit: max(few_split(two_limits, str(r.topic), of)) for limit, of in topics.items()}
    own = {(row[R.scope_kind], row[R.scope]): row for row in two_limits.rows(R, f"{R.setting} = '{BATCH}'")}
    assert int(own[OF_LIMIT, "2500"][R.recommended]) == best[2500] > best[2100]
    assert (OF_LIMIT, "2100") not in own, "the lane for all is best for the smaller limit"
    assert int(own[OF_CLUSTER, ""][R.recommended]) == best[2100]

    clients = {scope: int(row[R.recommended]) for (kind, scope), row in own.items() if kind == OF_CLIENT}
    assert clients["scan-writer"] == max(few_split(two_limits, str(r.client_id), {"scan-writer"}))
    assert clients.get("relay", best[2100]) < clients["scan-writer"], "it writes to the topic of the smaller limit, too"


@pytest.mark.parametrize(
    ("key", "stated", "asked_for", "goes_on"),
    [
        (BATCH, (), "16KiB,64KiB", True),
        (BATCH, (), "8KiB,64KiB", False),
        (BUFFER, (f"{BUFFER}=48KiB",), "64KiB", True),
        (BUFFER, (f"{BUFFER}=48KiB",), "32MiB", False),
    ],
)
def test_only_a_grid_that_does_not_solve_the_problem_is_followed_by_a_search(
    spark: SparkSession, splits: Searched, key: str, stated: tuple[str, ...], asked_for: str, goes_on: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    algorithm, table = ("batch_split", BATCH_SPLIT) if key == BATCH else ("consumer_memory", PRODUCER_MEMORY)
    values = tuple(setting_of(key).parse(value) for value in asked_for.split(","))
    scenario = replace(resolve_scenario(None, (), stated), replay={algorithm: {key: values}})
    run = replace(splits.run, scenario=scenario)
    of_run = f"run_id = '{replay(spark, run, splits.capture_id).run_id}'"
    found = splits.rows(A, f"{of_run} and {A.scope_kind} = 'cluster'")
    lanes = {row["scenario"] for row in splits.rows(table, of_run)}
    assert ("so one is looked for" in capsys.readouterr().err) == goes_on
    assert [row[A.is_met] for row in found] == [True] * goes_on
    assert {f"{key}={value}" for value in asked_for.split(",")} | {row[A.scenario] for row in found} <= lanes


def test_an_aim_for_one_producer_has_the_largest_batch_size_that_suits_it(
    spark: SparkSession, splits: Searched
) -> None:
    aim = (
        f"batch_split: largest batch.size for client=split-z* where split_rate <= 1% over {BATCH}=4KiB,8KiB,12KiB,64KiB"
    )
    run = replace(splits.run, scenario=replace(resolve_scenario(None, (), (), [aim]), replay={"batch_split": {}}))
    done = replay(spark, run, splits.capture_id)
    conclude_run(spark, run, splits.capture_id, done)
    of_run, r = f"run_id = '{done.run_id}'", BATCH_SPLIT_RANGES
    (found,) = splits.rows(A, of_run)
    rates = [
        row[r.p90] for row in splits.rows(r, f"{of_run} and {r.scenario} = '{found[A.scenario]}'")
        if (row[r.client_id], row[r.metric]) == ("split-zstd", "split_rate")
    ]  # fmt: skip
    assert dict(found[A.outcomes])["split_rate_p90"] == max(rates) <= FEW
    advised = {row[R.scope]: row[R.reason] for row in splits.rows(R, f"{of_run} and {R.setting} = '{BATCH}'")}
    assert "for client=split-z*" in advised.pop("split-zstd")
    assert not [reason for reason in advised.values() if "for client" in reason]


def test_an_aim_for_an_unknown_client_is_refused_with_the_known_names(spark: SparkSession, splits: Searched) -> None:
    aim = "batch_split: largest batch.size for client=billing where split_rate <= 1%"
    run = replace(splits.run, scenario=replace(resolve_scenario(None, (), (), [aim]), replay={"batch_split": {}}))
    with pytest.raises(ArgumentError, match="no client in this replay is `billing`; there are split-lz4, split-zstd"):
        replay(spark, run, splits.capture_id)
