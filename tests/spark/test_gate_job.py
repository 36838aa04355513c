"""The job `gate` on a small lake: Great Expectations finds what Spark finds, and pages and messages show it."""

from __future__ import annotations

import html
import io
import re
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pyspark.sql import SparkSession

from jobs.cli import run_command
from jobs.gates.gate import apply_gate
from jobs.gates.results import Result, gate_result_rows
from jobs.gates.row_rules import count_by_scan
from jobs.gates.rule_files import read_gates
from jobs.gates.rules import CHECKED, GATES
from jobs.gates.views import Subject
from jobs.open_lake import open_lake
from jobs.report_page.refusals import gate_refusals
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import CAPTURES, EXCHANGES
from tests.gate_rows import CAPTURE, GOOD, LANES, PLANTED, RUN, TIME, whole
from tests.lakes import Row, plant, table_rows
from udfs.errors import LakeError

MINE = """\
gold:
  little_is_unknown:
    table: fidelity
    expectation:
      expect_column_values_to_be_between: {column: checked, max_value: 99}
    severity: warning
    reason: The capture tells enough.
  one_algorithm:
    table: runs
    expectation:
      expect_table_row_count_to_equal: {value: 2}
    severity: info
    reason: One replay at a time.
"""
WRONG = """\
gold:
  no_such_thing:
    table: fidelity
    expectation: {expect_the_unexpected: {}}
    severity: info
    reason: a
  no_such_column:
    table: fidelity
    expectation:
      expect_column_values_to_not_be_null: {column: payload}
    severity: info
    reason: b
  no_such_argument:
    table: fidelity
    expectation:
      expect_column_values_to_not_be_null: {column: checked, most: 1}
    severity: info
    reason: c
"""
NOT_TO_BE_APPLIED = """\
gold:
  names_on_average:
    table: fidelity
    expectation:
      expect_column_mean_to_be_between: {column: metric, max_value: 1}
    severity: info
    reason: a
"""
FAILING = """\
gold:
  fails_on_rows:
    table: fidelity
    %s
    severity: info
    reason: a
"""
BROKEN = ("fidelity_above_floor", "time_goes_forward", "response_after_request")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with good rows, and some that violate one critical rule and two warnings."""
    lake = tmp_path_factory.mktemp("gate") / "lake"
    for table, rows in GOOD.items():
        changes = [(place, change) for of, place, change in (PLANTED[rule] for rule in BROKEN) if of == table]
        changed = [row | {k: v for at, new in changes if at == i for k, v in new.items()} for i, row in enumerate(rows)]
        plant(str(lake), table, whole(table, changed))
    (lake.parent / "mine.yaml").write_text(MINE, encoding="utf-8")
    return lake


@pytest.fixture(scope="module")
def told(spark: SparkSession, lake: Path) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of the job on both layers."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command(
            ["gate", "--on", "silver", "gold", f"--lake={lake}", f"--gates={lake.parent / 'mine.yaml'}",
             f"--junit={lake.parent / 'ci/gate.xml'}", "--run-at=2026-01-31T12:00:00Z"]
        )  # fmt: skip
    return code, out.getvalue(), err.getvalue()


@pytest.mark.usefixtures("told")
def test_a_ci_server_gets_a_testcase_a_rule_and_a_failure_for_a_critical_one_that_refused(lake: Path) -> None:
    suites = ElementTree.parse(lake.parent / "ci/gate.xml").getroot()  # noqa: S314 - written by the job itself
    gates = read_gates([str(lake.parent / "mine.yaml")])
    cases = {suite.get("name"): [case.get("name") for case in suite.iter("testcase")] for suite in suites}
    assert cases == {f"{gate} gate": [rule.name for rule in gates.rules_of(gate)] for gate in ("silver", "gold")}
    failed = {
        case.get("name"): case.find("failure") for case in suites.iter("testcase") if case.find("failure") is not None
    }
    assert failed.keys() == {"fidelity_above_floor"}
    failure = failed["fidelity_above_floor"]
    assert failure is not None
    assert failure.get("type") == "critical"
    assert failure.get("message") == "1 of 2 rows of fidelity refused"
    (rule,) = [rule for rule in gates.rules if rule.name == "fidelity_above_floor"]
    assert rule.reason in str(failure.text)
    assert [(suite.get("tests"), suite.get("failures")) for suite in suites] == [
        (str(len(cases["silver gate"])), "0"), (str(len(cases["gold gate"])), "1")
    ]  # fmt: skip
    warned = {case.get("name") for case in suites.iter("testcase") if case.find("system-out") is not None}
    assert {"time_goes_forward", "response_after_request"} <= warned


def test_a_critical_rule_ends_the_job_with_3_and_says_what_it_refused(told: tuple[int, str, str]) -> None:
    code, _, err = told
    assert code == 3
    lines = err.splitlines()
    gold = lines[lines.index(f"refetch: gate gold: 2 of 10 rules refused rows of run {RUN}") :]
    assert gold[1].startswith("  critical: fidelity_above_floor: 1 of 2 rows of fidelity. Under the settings")
    assert gold[2] == (
        "    algorithm=fetch_max_bytes, metric=fetches_with_records, reader=consumer, checked=100, agreed=98, "
        "floor=0.99"
    )
    assert gold[3] == "  warning: little_is_unknown: 2 of 2 rows of fidelity. The capture tells enough."
    assert "metric=closed_loop_order" in gold[4]


@pytest.mark.usefixtures("told")
def test_who_reads_what_a_gate_refused_is_told(
    spark: SparkSession, lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_lake(str(lake))
    told = capsys.readouterr().err
    assert f"refetch: run {RUN} was refused by its gate, by fidelity_above_floor: {lake}/gold/gate_results says" in told
    assert "time_goes_forward" not in told, "a warning refuses nothing"
    t = GATE_RESULTS
    found = (
        gate_refusals(lambda _: gate_result_rows(spark, str(lake), (CAPTURE, RUN)))
        .select(t.checked_id, t.rule)
        .collect()
    )
    assert [tuple(row) for row in found] == [(RUN, "fidelity_above_floor")]


def test_warnings_are_told_and_do_not_refuse(told: tuple[int, str, str]) -> None:
    silver = re.search(r"gate silver: 2 of 13 rules refused rows of capture a-capture\n((?:  .*\n)+)", told[2])
    assert silver, told[2]
    assert f"warning: time_goes_forward: 1 of 2 rows of {EXCHANGES.name}. " in silver[1]
    assert f"connection_id=5, exchange_no=1, request_time={TIME:%Y-%m-%d %H:%M:%S}" in silver[1]


@pytest.mark.usefixtures("told")
def test_great_expectations_finds_what_the_writing_jobs_find(spark: SparkSession, lake: Path) -> None:
    gates = read_gates([str(lake.parent / "mine.yaml")])
    found: list[Row] = []
    for gate in GATES:
        subject = Subject(gate, CAPTURE, RUN if gate == "gold" else "", LANES)
        counts = count_by_scan(spark, str(lake), gates, subject, CHECKED.values())
        for result in apply_gate(spark, str(lake), gates, subject, counts):
            cells = (result.rule, result.table, result.severity, result.reason, result.checked, result.refused)
            found.append((subject.id, gate, *cells, list(result.examples), result.refused == 0))
    by_job = table_rows(str(lake), GATE_RESULTS, without=[GATE_RESULTS.rules_id])
    of_job = [(row[0], row[1], row[2], row[3], *row[4:]) for row in by_job]
    assert of_job == sorted(found, key=lambda row: (row[0], row[2], row[3]))


def test_data_docs_show_every_rule_with_its_reason(lake: Path, told: tuple[int, str, str]) -> None:
    assert told[1] == f"{lake}/data_docs/index.html\n"
    pages = [page.read_text(encoding="utf-8") for page in (lake / "data_docs").rglob("*.html")]
    assert CAPTURE in (lake / "data_docs/index.html").read_text(encoding="utf-8")
    for rule in read_gates([str(lake.parent / "mine.yaml")]).rules:
        is_there = any((lake / table.layer / table.name).is_dir() for table in rule.tables)
        assert not is_there or any(rule.name in page and rule.reason[:40] in page for page in pages), rule.name


def test_data_docs_do_not_tell_of_a_rule_that_is_kept_as_if_it_were_broken(
    lake: Path, told: tuple[int, str, str]
) -> None:
    pages = [page.read_text(encoding="utf-8") for page in (lake / "data_docs/validations").rglob("*.html")]
    texts = [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split()) for page in pages]
    of_rows = re.compile(r"no_negative_size on exchanges \(critical\): 0 of \d+ rows refused\. If it fails: No size is")
    assert any("run_is_in_runs (warning). If it fails: These runs were killed" in text for text in texts)
    assert any(of_rows.search(text) for text in texts)


def test_a_check_of_an_earlier_time_has_its_page_though_the_first_page_lists_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs.gates import expectations

    monkeypatch.setattr(expectations, "MOST_LISTED", 1)
    result = Result(rule="a_rule", table="fidelity", severity="critical", reason="a", checked=2, refused=0)
    for name, at in (("newer", TIME), ("earlier", TIME - timedelta(days=1))):
        checking = expectations.Checking("gold", name, at)
        folders = (f"{tmp_path}/kept", f"{tmp_path}/pages")
        expectations.evaluate_with_data_docs([], lambda _: pytest.fail("no table"), [result], folders, checking)
    assert {page.parts[-3] for page in tmp_path.glob("pages/validations/**/*.html")} == {"newer", "earlier"}
    first_page = (tmp_path / "pages/index.html").read_text(encoding="utf-8")
    assert ("newer" in first_page, "earlier" in first_page) == (True, False)


@pytest.mark.usefixtures("spark")
def test_expectations_that_are_none_are_told_at_once_with_2(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.yaml").write_text(WRONG, encoding="utf-8")
    assert run_command(["gate", "--on=gold", f"--lake={lake}", f"--gates={tmp_path}"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "refetch: gates: 3 faults"
    assert "wrong.yaml:4: no_such_thing: Great Expectations has no `expect_the_unexpected`; nearest are " in told[1]
    assert f"wrong.yaml:9: no_such_column: {FIDELITY.name} has no column `payload`; known here: " in told[2]
    assert "wrong.yaml:15: no_such_argument: " in told[3]
    assert "has no argument `most`; did you mean `mostly`?" in told[3]


@pytest.mark.usefixtures("spark")
def test_an_expectation_that_cannot_be_applied_to_the_rows_is_a_failure(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is not that of bad arguments, since the lake was already read."""
    (tmp_path / "mean.yaml").write_text(NOT_TO_BE_APPLIED, encoding="utf-8")
    command = ["gate", "--on=gold", f"--lake={lake}", f"--gates={tmp_path}", f"--data-docs={tmp_path / 'docs'}"]
    assert run_command(command) == 1
    assert "mean.yaml:4: names_on_average could not be applied: " in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
def test_a_lake_without_a_run_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["gate", "--on=gold", f"--lake={tmp_path}"]) == 1
    assert "silver/captures: no such table; run `ingest`" in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("job", ["report", "gate --on=gold", "gate --on=silver", "replay", "open_lake"])
def test_of_a_lake_that_size_alone_has_written_that_is_told(
    job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(str(tmp_path), RUNS, whole(RUNS, [{"run_id": "ofsize", "capture_id": "paper"}]))
    if job == "open_lake":
        with pytest.raises(LakeError) as raised:
            open_lake(str(tmp_path))
        told = str(raised.value)
    else:
        assert run_command([*job.split(), f"--lake={tmp_path}"]) == 1
        told = capsys.readouterr().err
    assert f"{tmp_path} has no captures, only runs of `size`: ofsize. The same `size` prints its answer again" in told
    assert f"{tmp_path}/gold has its tables" in told
    assert "run `pipeline` with captures and this --lake first" in told


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("job", [["gate", "--on=gold"], ["report"]])
def test_of_a_lake_that_is_ingested_and_not_replayed_a_replay_is_asked_for(
    job: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(str(tmp_path), CAPTURES, whole(CAPTURES, [{"capture_id": "c", "path": "/a.pcap"}]))
    assert run_command([*job, f"--lake={tmp_path}"]) == 1
    assert capsys.readouterr().err == (
        f"refetch: {tmp_path}: no run on captures is finished; run `pipeline` or `replay` with this --lake first\n"
    )


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "job",
    [["report", "--run=1f2e"], ["gate", "--on=gold", "--run=1f2e"], ["gate", "--on=silver", "--capture=1f2e"],
     ["replay", "--capture=1f2e"]],
)  # fmt: skip
def test_an_id_that_the_lake_has_not_is_a_bad_argument(
    job: list[str], lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code says that to try the same again is of no use."""
    assert run_command([*job, f"--lake={lake}"]) == 2
    assert re.search(r"no (run|capture set) 1f2e; ", capsys.readouterr().err)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "form",
    ["expression: cast(metric as int) > 0", "query: select metric from {table} where 1 / (checked - checked) > 0"],
)
def test_a_rule_that_fails_on_rows_is_named(
    lake: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], form: str
) -> None:
    (tmp_path / "own.yaml").write_text(FAILING % form, encoding="utf-8")
    command = ["gate", "--on=gold", f"--lake={lake}", f"--gates={tmp_path}", f"--data-docs={tmp_path / 'docs'}"]
    assert run_command(command) == 1
    told = capfd.readouterr().err.splitlines()
    assert re.search(r"own\.yaml:4: fails_on_rows could not be applied: \[[A-Z_]+\] .*\.$", told[-1]), told
    assert not [line for line in told if not line.startswith("refetch: ")]
