"""replay: replay what the silver tables have under other settings, and write the gold tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.captures.clusters import choose_cluster
from jobs.captures.kafka_release import BrokerRelease, find_broker_release
from jobs.captures.named_brokers import check_named_brokers
from jobs.chosen_scenario import with_chosen_grids
from jobs.find.conclusions import Settled
from jobs.find.rows import rows_of_aims
from jobs.find.searches_of_run import add_lanes_of_searches, search_for_aim, search_for_aims
from jobs.find.usual_aims import LANES_ALONE, unmet_aim
from jobs.gates.gate import pass_gate
from jobs.gates.row_rules import Counts, Watch
from jobs.gates.rule_checks import check_rules
from jobs.gates.views import Subject
from jobs.lake.capture_sets import check_topic_names, choose_capture, decoder_of_set
from jobs.lake.delta_tables import check_tables, stored_rows
from jobs.lake.migration import check_complete
from jobs.lake.packed_tables import write_packed
from jobs.lake.target import Target
from jobs.ready_session import ready_session
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.algorithms import algorithms_to_replay
from jobs.replays.capture_window import with_window
from jobs.replays.finished_runs import RunRows, files_of_set, kept_run, make_run_id, run_rows
from jobs.report import write_pages
from jobs.report_page.advice.recommendations import make_recommendations, write_recommendations
from jobs.report_page.capture_contents import missing_direction, missing_traffic
from jobs.report_page.findings import KnownRun, known_run, look_up_run, look_up_traffic
from jobs.report_page.verdict import Verdict
from jobs.run import Run
from jobs.scenarios.scenario import with_defaults_of
from jobs.terminal.progress import stage
from jobs.version import replayer_version
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.gold_aims import AIM_SETTINGS, AIM_TABLES
from schemas.tables.gold_recommendations import RECOMMENDATIONS
from schemas.tables.silver import EXCHANGES, SILVER
from schemas.tables.table import Table
from udfs.errors import CaptureError, GateError, LakeError
from udfs.replay.shared.lanes import KAFKA_RELEASE


@dataclass(frozen=True)
class ReplayedRun:
    """The outcome of a run.

    algorithms: those whose tables are written.
    refused: what the captures lack for the other algorithms, by the algorithm's name.
    counts: what the gold gate's rules on rows found in the tables; None if an earlier run's tables are kept.
    """

    run_id: str
    algorithms: tuple[Algorithm, ...]
    refused: Mapping[str, str]
    counts: Mapping[Table, Counts] | None


def replay(spark: SparkSession, run: Run, capture_id: str, *, keep: bool = False) -> ReplayedRun:
    """Write the gold tables of one capture set.

    keep: leave the tables as they are if the same code has already written them from the same silver rows.

    Raises ArgumentError if the capture set does not show the named cluster or a broker for which a setting is stated,
    if it has no request in the window, or if it is pseudonymised and the scenario names its topics. Raises GateError if
    the captures hold nothing to replay, and CaptureError if the captures show too little for every algorithm that is
    asked for. Raises LakeError if tables are missing or have other columns, or if the capture set is ingested again
    meanwhile.
    """
    check_tables(spark, run.lake, SILVER)
    ingested = files_of_set(spark, run.lake, capture_id)
    check_complete(spark, run.lake, SILVER, capture_id)
    check_replayable(spark, run.lake, capture_id)
    run = replace(run, cluster_id=choose_cluster(spark, run.lake, capture_id, run.cluster_id))
    release = find_broker_release(spark, run.lake, capture_id, run.cluster_id)
    run = with_release(with_window(spark, run, capture_id), release)
    run_name = make_run_id(capture_id, run.scenario, run.cluster_id)
    decoded = decoder_of_set(spark, run.lake, capture_id)
    check_topic_names(run.lake, decoded, run.scenario)
    check_named_brokers(spark, run, capture_id)
    made_by = replayer_version(decoded)
    kept = kept_run(spark, run, run_name, made_by) if keep else None
    if kept is not None:
        replayed = tuple(algorithm for algorithm in algorithms_to_replay(run.scenario) if algorithm.name not in kept)
        return ReplayedRun(run_name, replayed, kept, None)
    check_tables(spark, run.lake, tables_of_run(run))
    for table in AIM_TABLES:  # whether a search follows depends on the lanes' results
        Target(run.lake, run_name).clear(spark, table)
    searches = search_for_aims(Source(spark, run, capture_id, run_name, {})) if run.scenario.aims else []
    run = add_lanes_of_searches(run, searches)
    watch = Watch(run.gates, lane_names(run, algorithms_to_replay(run.scenario)))
    to = Target(run.lake, run_name, watch)
    written = write_replays(Source(spark, run, capture_id, run_name, {}), to)
    run, searches, refused = written.run, [*searches, *written.further], written.refused
    if files_of_set(spark, run.lake, capture_id) != ingested:
        raise LakeError(
            f"{run.lake}: capture set {capture_id} was ingested again while it was replayed, and run {run_name} may be "
            "of both: run the replay again"
        )
    replayed = tuple(algorithm for algorithm in algorithms_to_replay(run.scenario) if algorithm.name not in refused)
    if searches:
        for table, rows in rows_of_aims(run_name, searches).items():
            to.write_here(spark, rows, table)
    to.check_there()
    known = RunRows(run_name, capture_id, made_by, release.text if release else None, refused)
    to.write_here(spark, run_rows(run, known, replayed), RUNS)
    return ReplayedRun(run_name, replayed, refused, watch.counts())


def tables_of_run(run: Run) -> list[Table]:
    """The tables that a run writes."""
    of_algorithms = [table for algorithm in algorithms_to_replay(run.scenario) for table in algorithm.tables]
    return [*of_algorithms, *AIM_TABLES, FIDELITY, RUNS, RECOMMENDATIONS]


def with_release(run: Run, by_capture: BrokerRelease | None) -> Run:
    """The run with the settings that follow from the captured brokers' release, and with that release's defaults,
    unless somebody states other values.

    by_capture: the release that the capture shows; None if it shows none.
    """
    run = replace(run, from_capture=by_capture.settings if by_capture else {})
    release = run.in_force.get(KAFKA_RELEASE)
    return replace(run, scenario=with_defaults_of(run.scenario, None if release is None else str(release)))


def check_replayable(spark: SparkSession, lake: str, capture_id: str) -> None:
    """Raises GateError if the captures hold no Kafka traffic, or only one direction of it: without responses the
    tables would say that nobody waits and nobody is refused.
    """
    is_answered = F.col(EXCHANGES.response_time).isNotNull()
    if not stored_rows(spark, lake, EXCHANGES, capture_id).where(is_answered).isEmpty():
        return  # so it is with nearly every capture, and to count all exchanges takes seconds
    traffic = look_up_traffic(spark, lake, capture_id)
    lacks = missing_direction(traffic) or missing_traffic(traffic)
    if lacks:
        raise GateError(f"nothing to replay, so nothing to recommend. {lacks} The silver tables have what was read")


@dataclass(frozen=True)
class Written:
    """The outcome of a run's replays.

    run: the run, with the lanes that searches added to its replays. further: these searches, without those of the
    algorithms in LANES_ALONE. refused: why a replay wrote nothing, by the replay's name.
    """

    run: Run
    further: tuple[Settled, ...]
    refused: Mapping[str, str]


def write_replays(source: Source, to: Target) -> Written:
    """Make the replays that are asked for, one after the other, and write their tables. Raises LakeError if a table
    cannot be written, and CaptureError if all replays are refused.
    """
    packed, further, refused = dict[str, DataFrame](), list[Settled](), dict[str, str]()
    run = source.run
    with ExitStack() as until_written:
        for algorithm in algorithms_to_replay(run.scenario):
            try:
                of_replay = replace(source, run=run, before=packed)
                packed[algorithm.name], aim_results = write_replay(of_replay, algorithm, to, until_written)
            except CaptureError as fault:
                refused[algorithm.name] = str(fault)
                continue
            further += [done for done in aim_results if algorithm.name not in LANES_ALONE]
            run = add_lanes_of_searches(run, aim_results)
        if not packed:
            raise CaptureError("\n".join(refused.values()))
        write_packed(source.spark, reduce(DataFrame.unionByName, packed.values()), [FIDELITY], to)
    return Written(run, tuple(further), refused)


def write_replay(
    source: Source, algorithm: Algorithm, to: Target, until_written: ExitStack
) -> tuple[DataFrame, list[Settled]]:
    """Make one replay and write its tables. Returns its packed rows, and a search if one was made because no lane met
    the replay's usual aim. The rows stay persisted in Spark until `until_written` closes.

    Raises LakeError if its tables cannot be written, and CaptureError if the captures do not show what it needs.
    """
    with stage(f"replay {algorithm.name}", source.spark):
        rows = algorithm.packed(source).persist()
        until_written.callback(rows.unpersist)
        aim = unmet_aim(source, algorithm, rows)
        if aim is None:
            write_packed(source.spark, rows, algorithm.tables, to)
            return rows, []
    sys.stderr.write(f"refetch: no lane meets `{str(aim).partition(' over ')[0]}`, so one is looked for\n")
    aim_results = [search_for_aim(source, algorithm, aim)]
    run = add_lanes_of_searches(source.run, aim_results)
    to.watch.lanes = lane_names(run, algorithms_to_replay(run.scenario))
    # The run now has this replay's lanes from the search, so the second call does not search again.
    rows, _ = write_replay(replace(source, run=run), algorithm, to, until_written)
    return rows, aim_results


def pass_gold_gate(spark: SparkSession, run: Run, capture_id: str, done: ReplayedRun, known: KnownRun) -> None:
    """Apply the gate to the run's tables. Raises GateError if it refuses; the tables stay, so that they can be read."""
    subject = Subject("gold", capture_id, done.run_id, known.lanes)
    written = partial(tables_of_kept_run, spark, run, done) if done.counts is None else done.counts
    pass_gate(spark, run.lake, run.gates, subject, written)


def tables_of_kept_run(spark: SparkSession, run: Run, done: ReplayedRun) -> list[Table]:
    """The tables that a kept run once wrote before its gate; those of aims only if there was a search."""
    of_algorithms = [table for algorithm in done.algorithms for table in algorithm.tables]
    searched = not stored_rows(spark, run.lake, AIM_SETTINGS, done.run_id).isEmpty()
    return [*of_algorithms, *(AIM_TABLES if searched else []), FIDELITY, RUNS]


def conclude_run(spark: SparkSession, run: Run, capture_id: str, done: ReplayedRun) -> None:
    """Check a run by the gate, write what it recommends, print its results and write its page.

    After all that it raises what `pass_gold_gate` and `check_refused` raise.
    """
    refused: GateError | None = None
    known = known_run(spark, run.lake, done.run_id)
    try:
        pass_gold_gate(spark, run, capture_id, done, known)
    except GateError as fault:
        refused = fault
    findings = look_up_run(spark, run.lake, known)
    made = make_recommendations(findings)
    write_recommendations(spark, run.lake, done.run_id, made)
    sys.stdout.write(write_pages(spark, run, Verdict(known, findings, made)))
    if refused is not None:
        raise refused
    check_refused(run, done)


def check_refused(run: Run, done: ReplayedRun) -> None:
    """Raises CaptureError if a replay was refused and --strict asks for every replay."""
    if run.strict and done.refused:
        asked_for = len(done.refused) + len(done.algorithms)
        raise CaptureError(
            f"{len(done.refused)} of {asked_for} replays refused, for the reasons above: {', '.join(done.refused)}. "
            "--strict asks for all; the tables of the others are written"
        )


def lane_names(run: Run, algorithms: Iterable[Algorithm]) -> tuple[str, ...]:
    """The lanes of several algorithms, each once."""
    return tuple(dict.fromkeys(lane.name for algorithm in algorithms for lane in run.scenario.lanes(algorithm.name)))


def main(run: Run) -> None:
    """Run the job: replay a capture set of the lake, write the gold tables, and print the run's results.

    Raises what `replay` and `conclude_run` raise.
    """
    spark = ready_session(run, run.algorithms)
    check_rules(spark, run.gates.in_pipeline)
    capture_id = choose_capture(spark, run.lake, run.capture)
    run = with_chosen_grids(spark, run, capture_id)
    conclude_run(spark, run, capture_id, replay(spark, run, capture_id))
