"""The table `runs`: what was replayed, from which captures, and by which code."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.lake.delta_tables import has_table, read_table, stored_rows, table_to_read
from jobs.lake.target import Target
from jobs.replays.algorithm import Algorithm
from jobs.run import Run
from jobs.scenarios.scenario import Scenario
from jobs.version import VERSION
from schemas.tables.algorithms import BATCH_SPLIT
from schemas.tables.gold import RUNS
from schemas.tables.silver import CAPTURES
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.batch_split.settings import BATCH_SIZE, BROKER_LIMIT
from udfs.replay.shared.lanes import KAFKA_RELEASE

TOLD_BY_BATCHES = {
    BATCH_SIZE: "inferred from each producer's batches; "
    f"outside {BATCH_SPLIT}, Kafka's default for those that compress",
    BROKER_LIMIT: f"in {BATCH_SPLIT} inferred from brokers' responses for a topic, else Kafka's default",
}
"""For each setting that nobody states, the value that the replay of producers takes for it, in words."""


def make_run_id(capture_id: str, scenario: Scenario, cluster_id: str | None = None) -> str:
    """The identity of a run, 16 hex digits. cluster_id: None if the capture set has only one cluster."""
    of_cluster = "" if cluster_id is None else f":{cluster_id}"
    return hashlib.sha256(f"{capture_id}:{scenario.scenario_id}{of_cluster}".encode()).hexdigest()[:16]


class RunRows(NamedTuple):
    """What the rows of a run in `runs` say about it besides its scenario.

    replayed_by: from `jobs.version.replayer_version`. kafka: the release that the capture shows, and how it is known.
    refused: the reason for each algorithm that was not replayed, by its name.
    """

    run_id: str
    capture_id: str
    replayed_by: str
    kafka: str | None = None
    refused: Mapping[str, str] = MappingProxyType({})


def run_rows(run: Run, known: RunRows, algorithms: Iterable[Algorithm]) -> pa.Table:
    """The rows of the table `runs`: one for each algorithm."""
    t = RUNS
    assumed = assumed_settings(run.scenario, known.kafka)
    rows: list[dict[str, object]] = [
        {
            t.run_id: known.run_id,
            t.capture_id: known.capture_id,
            t.cluster_id: run.cluster_id,
            t.scenario_id: run.scenario.scenario_id,
            t.scenario_json: run.scenario.to_json(),
            t.assumed: assumed,
            t.algorithm: algorithm.name,
            t.lanes: [lane.name for lane in run.scenario.lanes(algorithm.name)],
            t.refused: list(known.refused.items()),
            t.refetch_version: VERSION,
            t.replayed_by: known.replayed_by,
            t.run_at: run.run_at,
        }
        for algorithm in algorithms
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(t))


def assumed_settings(scenario: Scenario, kafka: str | None) -> list[str]:
    """The settings that nobody stated, as `runs` has them: only a key, or `key: what the capture shows of it`."""
    stated = ({KAFKA_RELEASE: kafka} if kafka else {}) | (TOLD_BY_BATCHES if BATCH_SPLIT in scenario.replay else {})
    return [f"{key}: {stated[key]}" if key in stated else key for key in scenario.assumed]


def files_of_set(spark: SparkSession, lake: str, capture_id: str) -> frozenset[str]:
    """The files that have the capture set's rows of `captures`. After another ingest they are other files, and during
    an ingest there are none. Raises LakeError if there is no table of captures.
    """
    local = table_to_read(spark, lake, CAPTURES)
    if local is not None:
        return frozenset(local.all_files((str(CAPTURES.capture_id), capture_id)))
    own = read_table(spark, lake, CAPTURES, [capture_id], with_files=True)
    rows = own.select(F.input_file_name()).distinct().collect()
    return frozenset(path for (path,) in rows)


def kept_run(spark: SparkSession, run: Run, run_name: str, made_by: str) -> Mapping[str, str] | None:
    """If gold tables have this run already, made by this code: the reason for each refused algorithm, by its name;
    otherwise None.

    A run is complete once `runs` has its rows, which are written last. They are then given the time of the present run
    and the settings that nobody states in it, because a run that states one of Kafka's defaults is the same as a run
    that does not.
    """
    t, is_now = RUNS, "is_now"
    if not has_table(spark, run.lake, t):
        return None
    stored = stored_rows(spark, run.lake, t, run_name).where(F.col(t.replayed_by) == made_by)
    rows = stored.select(t.refused, t.assumed, (F.col(t.run_at) == F.lit(run.run_at)).alias(is_now)).collect()
    if not rows:
        return None
    assumed = assumed_settings(run.scenario, captured_release(rows[0][t.assumed]))
    if not all(row[is_now] and row[t.assumed] == assumed for row in rows):
        now = {t.run_at: F.lit(run.run_at), t.assumed: F.array(*map(F.lit, assumed)).cast(t.assumed.type)}
        to = Target(run.lake, run_name)
        to.write(stored.withColumns({str(column): value for column, value in now.items()}), t)
    sys.stderr.write(f"refetch: run {run_name} was replayed before; `replay` would do it again\n")
    return rows[0][t.refused]


def captured_release(assumed: Iterable[str]) -> str | None:
    """The release of Kafka that the capture shows, if `assumed`, from `assumed_settings`, names one."""
    begin = f"{KAFKA_RELEASE}: "
    return next((line.removeprefix(begin) for line in assumed if line.startswith(begin)), None)
