"""The model of a lake by which histories are checked, and the steps that are drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.flags import COMPARE, GATE, INGEST, LATEST, MIGRATE, PIPELINE, PRUNE, REPLAY, REPORT, RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import CAPTURES, SILVER
from schemas.tables.silver_quality import LOG_AGREEMENT
from tests.gate_rows import whole
from tests.histories.check import Hashes, settled, told_badly
from tests.histories.model import (
    BY_GATE,
    CHECKED,
    GATES,
    OWN,
    RUN_ROWS,
    TRENDS,
    Lake,
    after,
    halfway,
    possible,
    possible_beside,
)
from tests.histories.older import lacking, make_older
from tests.histories.seen import Seen, hashes, shown_run
from tests.histories.steps import AGE, BY_RUN, BY_SET, TREND, Step, plan
from tests.lakes import plant
from udfs.facts.arrow_tables import arrow_schema


class Letters:
    """Ids for the model: a capture set's is its content, and a run's is its content and scenario."""

    def set_id(self, content: str) -> str:
        return content

    def run_id(self, content: str, scenario: str) -> str:
        return f"{content}/{scenario}"

    def tables(self, identity: str) -> frozenset[str]:
        own = {RUN_ROWS, "fidelity"} if "/" in identity else {"captures", "exchanges"}
        return frozenset({*own, GATES})

    def set_of(self, run_id: str) -> str:
        return run_id.partition("/")[0]


KNOWN = Letters()


def lake_after(*steps: Step, of: Lake | None = None) -> Lake:
    lake = of or Lake()
    for step in steps:
        lake, code = after(lake, step, KNOWN)
        assert code == 0, step
        lake = replace(lake, tables=frozenset(table for table, _ in lake.cells) | lake.tables)
    return lake


def made(content: str, scenario: str = "limits", clock: int = 12, file: str = "monday") -> Step:
    return Step(PIPELINE, content, file, scenario, clock=clock)


def code_of(lake: Lake, step: Step) -> int:
    return after(lake, step, KNOWN)[1]


def as_seen(lake: Lake) -> Seen:
    return Seen(
        cells={cell: f"{cell} {has}" for cell, has in lake.cells.items()}, files_of={}, run_at=lake.run_at,
        files=lake.files, written=lake.written, pages=lake.pages, shown=lake.shown, tables=lake.tables, strays=(),
        unneeded=(),
    )  # fmt: skip


def hashes_of(*lakes: Lake) -> Hashes:
    return Hashes({(cell, has): f"{cell} {has}" for lake in lakes for cell, has in lake.cells.items()})


def test_the_same_seed_gives_the_same_steps_and_more_of_them_begin_alike() -> None:
    assert plan(7, 40)[:25] == plan(7, 25)
    assert plan(7, 25) != plan(8, 25)
    kinds = {step.kind for seed in range(30) for step in plan(seed, 25)}
    assert {"ingest killed", "prune killed", "pipeline beside another", COMPARE, TREND, GATE, REPORT, MIGRATE} <= kinds
    goes_on = {step.goes_on for seed in range(30) for step in plan(seed, 25)}
    assert goes_on == {"", LATEST, "a", "b"}


def test_steps_that_are_disturbed_remove_no_files_that_others_read() -> None:
    steps = [step for seed in range(30) for step in plan(seed, 25)]
    assert not any(step.at_once for step in steps if step.killed or step.beside)
    pairs = [(step, step.beside) for step in steps if step.beside and step.file]
    assert pairs
    assert all(one.content == two.content for one, two in pairs if one.file == two.file), "a file has one content"
    assert {step.clock % 24 for step in steps} == {12}, "no age ends at the time of day when files were written"


def test_a_capture_set_that_is_ingested_again_is_the_one_written_last() -> None:
    lake = lake_after(made("a"), made("b"), Step(INGEST, "a", "monday"))
    assert lake.written == ("b", "a")
    assert lake_after(Step(REPLAY, scenario="sessions"), of=lake).run_at.keys() >= {"a/sessions"}


def goes_on(earlier: str = LATEST) -> Step:
    return Step(INGEST, "c", "monday", goes_on=earlier)


def test_a_capture_set_goes_on_from_the_last_one_that_ends_before_it_and_has_an_id_of_its_own() -> None:
    assert lake_after(goes_on()).written == ("c",)
    assert lake_after(Step(INGEST, "a", "monday"), goes_on()).written == ("a", "c>a")
    both = lake_after(Step(INGEST, "b", "monday"), Step(INGEST, "a", "tuesday"))
    assert lake_after(goes_on(), goes_on("a"), of=both).written == ("b", "a", "c>b", "c>a")
    assert (code_of(both, goes_on("b")), code_of(lake_after(made("a")), goes_on("b"))) == (0, 2)
    assert halfway(lake_after(goes_on(), of=both), goes_on(), KNOWN).written == ("b", "a")


def test_a_capture_set_stays_when_the_one_from_which_it_goes_on_is_removed() -> None:
    lake = lake_after(made("b"), replace(goes_on(), job=PIPELINE, scenario="limits"))
    left = lake_after(Step(PRUNE, "b", by=BY_SET), of=lake)
    assert (left.written, [*left.run_at]) == (("c>b",), ["c>b/limits"])
    assert lake_after(Step(MIGRATE), of=left) == left


def test_a_set_that_begins_while_an_earlier_one_is_written_again_may_go_on_from_the_one_before_that() -> None:
    lake, again = lake_after(Step(INGEST, "a", "tuesday"), Step(INGEST, "b", "monday")), Step(INGEST, "b", "monday")
    lakes = possible_beside(lake, replace(goes_on(), file="tuesday"), again, KNOWN, both_done=True)
    assert {frozenset(one.written) for one in lakes} == {frozenset({"a", "b", "c>b"}), frozenset({"a", "b", "c>a"})}


def test_a_lake_that_is_made_older_lacks_columns_and_a_table_and_keeps_its_rows(tmp_path: Path) -> None:
    for table in SILVER:
        plant(str(tmp_path), table, arrow_schema(table).empty_table())
    assert lacking(tmp_path) == {}
    make_older(tmp_path)
    lacks = lacking(tmp_path)
    assert lacks["captures"] == {[str(column) for column in CAPTURES.columns if column.nullable][-1]}
    assert lacks["log_agreement"] == {str(column) for column in LOG_AGREEMENT.columns}


def test_what_an_older_lake_lacks_has_no_values_that_files_written_anew_would_lose(tmp_path: Path) -> None:
    differs = {"different_connection_id": 7, "different_exchange_no": 8}
    for name, rows in {"all": [differs, {"log_behind_us": 9, **differs}], "some": [differs, {}], "none": []}.items():
        lake = tmp_path / name
        plant(str(lake), CAPTURES, arrow_schema(CAPTURES).empty_table())
        plant(str(lake), LOG_AGREEMENT, whole(LOG_AGREEMENT, rows))
        make_older(lake)
    assert "log_agreement" not in lacking(tmp_path / "all")
    assert lacking(tmp_path / "some")["log_agreement"] == {"log_behind_us"}
    assert lacking(tmp_path / "none")["log_agreement"] == {str(column) for column in LOG_AGREEMENT.columns}


def test_a_pipeline_keeps_a_capture_set_of_the_same_name_and_writes_one_of_another_name() -> None:
    lake = lake_after(made("a"), made("b"))
    assert lake_after(made("a"), of=lake).written == ("a", "b")
    renamed = lake_after(made("a", file="tuesday"), of=lake)
    assert (renamed.written, renamed.files["a"]) == (("b", "a"), "tuesday")


def test_the_page_is_that_of_the_newest_run() -> None:
    lake = lake_after(made("a", clock=36), made("b", clock=12))
    assert (lake.shown, lake.pages) == ("a/limits", {"a/limits", "b/limits"})
    assert lake_after(Step(PRUNE, "a", by=BY_RUN, scenario="limits"), of=lake).shown == "b/limits"


def test_a_run_is_compared_with_one_of_other_captures_if_there_is_one() -> None:
    lake = lake_after(made("a", clock=12), made("b", clock=36), made("b", "sessions", clock=60))
    assert (CHECKED, "a/limits-b/sessions") in lake_after(Step(COMPARE), of=lake).cells


def test_a_capture_set_is_removed_with_its_runs_and_a_run_alone() -> None:
    lake = lake_after(made("a"), made("b"), Step(TREND))
    without = lake_after(Step(PRUNE, "a", by=BY_SET), of=lake)
    assert not any(of.startswith("a") for _, of in without.cells)
    assert (without.written, [*without.run_at]) == (("b",), ["b/limits"])
    without = lake_after(Step(PRUNE, "a", scenario="limits", by=BY_RUN), of=lake)
    assert {of for _, of in without.cells} == {"a", "b", "b/limits"}


def test_age_removes_old_runs_and_sets_without_young_runs_and_leaves_trends() -> None:
    lake = lake_after(made("a", clock=12), made("b", clock=24 * 30 + 12), Step(TREND))
    left = lake_after(Step(PRUNE, by=AGE, days=5, clock=24 * 30 + 12), of=lake)
    assert (left.written, [*left.run_at]) == (("b",), ["b/limits"])
    assert {table for table, of in left.cells if of.startswith("a")} == {TRENDS}
    assert lake_after(Step(PRUNE, by=AGE, days=5, clock=12), of=lake) == lake
    assert lake_after(Step(PRUNE, by=AGE, days=5, clock=24 * 30 + 12, dry_run=True), of=lake) == lake


def test_an_unfinished_run_is_removed_by_its_id_and_by_age_only_after_a_day() -> None:
    lake = replace(lake_after(made("a")), run_at={}, cells={("fidelity", "a/limits"): OWN, **lake_after().cells})
    assert code_of(lake, Step(PRUNE, "b", scenario="limits", by=BY_RUN)) == 2
    assert lake_after(Step(PRUNE, "a", scenario="limits", by=BY_RUN), of=lake).cells == {}
    assert lake_after(Step(PRUNE, by=AGE, days=1, clock=12), of=lake).cells == lake.cells
    assert lake_after(Step(PRUNE, by=AGE, days=1, clock=60), of=lake).cells == {}


def test_a_set_that_is_gated_anew_keeps_these_results_until_it_is_written_again() -> None:
    lake = lake_after(made("a"), Step(GATE, by="silver"))
    assert lake.cells[GATES, "a"] == BY_GATE
    assert lake_after(Step(INGEST, "a", "monday"), of=lake).cells[GATES, "a"] == OWN


@pytest.mark.parametrize(
    ("step", "empty", "other"),
    [
        (Step(REPLAY, scenario="limits"), 1, 0),
        (Step(REPLAY, "b", scenario="limits"), 1, 2),
        (Step(REPORT, "b", scenario="limits"), 1, 2),
        (Step(COMPARE), 1, 2),
        (Step(RUNS), 1, 0),
        (Step(PRUNE, "b", by=BY_SET), 1, 2),
    ],
)
def test_exit_codes_of_steps_for_what_the_lake_does_not_have(step: Step, empty: int, other: int) -> None:
    assert (code_of(Lake(), step), code_of(lake_after(made("a")), step)) == (empty, other)


def test_a_killed_ingest_leaves_each_table_as_before_or_as_after_it_and_lists_no_half_of_a_set() -> None:
    step = Step(INGEST, "a", "monday")
    lakes = possible(Lake(), step, KNOWN)
    done = lakes[1]
    half = replace(Lake(), cells={("exchanges", "a"): OWN})
    listed = replace(done, cells={("captures", "a"): OWN})
    assert settled(lakes, as_seen(half), hashes_of(done), KNOWN, may_stray=True)[1] == []
    (fault,) = settled(lakes, as_seen(listed), hashes_of(done), KNOWN, may_stray=True)[1]
    assert "captures lists a, but these tables have no rows of it: exchanges" in fault


def test_a_capture_set_that_is_ingested_again_may_be_in_no_list_meanwhile() -> None:
    lake = lake_after(Step(INGEST, "a", "monday"))
    assert halfway(lake, Step(INGEST, "a", "monday"), KNOWN).written == ()
    assert halfway(lake, made("a"), KNOWN) == lake, "a pipeline keeps it"


def test_rows_that_nobody_wrote_are_a_fault_and_so_are_missing_rows() -> None:
    lake = lake_after(made("a"))
    found = as_seen(lake)
    assert settled([lake], found, hashes_of(lake), KNOWN, may_stray=False)[1] == []
    lacks = replace(found, cells={cell: has for cell, has in found.cells.items() if cell != ("fidelity", "a/limits")})
    assert settled([lake], lacks, hashes_of(lake), KNOWN, may_stray=False)[1]
    torn = replace(found, cells={**found.cells, ("exchanges", "a"): "half"})
    assert settled([lake], torn, hashes_of(lake), KNOWN, may_stray=False)[1]
    gone = replace(found, tables=found.tables - {"fidelity"})
    assert settled([lake], gone, hashes_of(lake), KNOWN, may_stray=False)[1] == ["fidelity: no such table any more"]
    stray = replace(found, strays=("exchanges/x.parquet",))
    assert settled([lake], stray, hashes_of(lake), KNOWN, may_stray=False)[1]


def test_two_commands_that_both_succeed_leave_what_one_after_the_other_would_leave() -> None:
    lake, prune = lake_after(made("a")), Step(PRUNE, "a", by=BY_SET)
    lakes = possible_beside(lake, made("b"), prune, KNOWN, both_done=True)
    assert [set(one.written) for one in lakes] == [{"b"}, {"b"}]
    assert len(possible_beside(lake, made("b"), prune, KNOWN, both_done=False)) > len(lakes)


def test_a_command_that_fails_ends_its_output_with_one_message() -> None:
    assert told_badly(1, "refetch: index ...\nrefetch: lake: no capture\n") == []
    assert told_badly(2, "refetch: no capture set x; it has\n  a\n  b\n") == []
    assert told_badly(1, "refetch: /lake/a: no column x\n/lake/b: no column y\n") == []
    assert told_badly(0, "") == []
    assert told_badly(1, "refetch: index ...\nKilled\n")
    assert told_badly(1, "")
    assert told_badly(1, "Traceback (most recent call last):\nrefetch: lake: no\n")


def test_a_lake_without_a_page_shows_no_run(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"run_id": "x"}')
    assert shown_run(tmp_path) is None
    (tmp_path / "report.html").touch()
    assert shown_run(tmp_path) == "x"


def test_results_of_a_gate_are_compared_without_those_on_tables_of_other_runs() -> None:
    """A gate also checks the tables of replays that only other runs of the lake have."""
    own = {"checked_id": "run", "rule": "agreed_is_of_checked", "rows_checked": 3}
    alone, beside = ([own], [own, {**own, "table_name": "partition_limits", "rows_checked": 0}])
    found = [hashes(GATE_RESULTS, pa.Table.from_pylist(rows, arrow_schema(GATE_RESULTS))) for rows in (alone, beside)]
    assert found[0] == found[1]
    other = pa.Table.from_pylist([{**own, "rows_checked": 4}], arrow_schema(GATE_RESULTS))
    assert hashes(GATE_RESULTS, other) != found[0]
