"""The command line: what a job gets, and which messages a user gets."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

import jobs.cli
from jobs.cli import JOBS, parse_arguments, run_command
from jobs.flags import FLAGS
from jobs.run import Run
from udfs.errors import ArgumentError, CaptureError, GateError, LakeError, RefetchError

Ran = Callable[..., tuple[int, Run | None]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with one capture."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pcap").touch()
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Runs a command line with a job that only records what it gets, or raises `fault`."""

    def command(*argv: str, fault: BaseException | None = None) -> tuple[int, Run | None]:
        told: list[Run] = []

        def main(given: Run) -> None:
            told.append(given)
            if fault:
                raise fault

        monkeypatch.setattr("jobs.ready_session.begin_session", lambda run: None)
        monkeypatch.setattr("jobs.terminal.interrupts.cancel_at_interrupt", nullcontext)
        monkeypatch.setattr(jobs.cli, "import_module", lambda name: SimpleNamespace(main=main))
        code = run_command(argv)
        return code, told[0] if told else None

    return command


def test_settings_of_one_topic_have_its_pseudonym_if_the_lake_does(run: Ran, folder: Path) -> None:
    """With the real name they would apply to no topic of the lake, and would show the name there."""
    (folder / "key").write_text("one secret key of ours")
    own, other = "topic.orders.max.message.bytes", "topic.audit.max.message.bytes"
    keyed = ["pipeline", "--captures=a.pcap", "--pseudonymise=key", "--run-at=2026-01-31T12:00:00Z"]
    code, told = run(*keyed, f"--set={own}=1MiB,2MiB", f"--captured={other}=3MiB")
    assert code == 0
    assert told is not None
    assert told.decoding.pseudonyms is not None
    assert not re.search("orders|audit", told.scenario.to_json())
    orders, audit = (
        f"topic.{told.decoding.pseudonyms.of('topic', name)}.max.message.bytes" for name in ("orders", "audit")
    )
    assert told.scenario.replay["batch_split"] == {orders: (1 << 20, 2 << 20)}
    assert told.scenario.captured[audit] == 3 << 20
    # Who has read a table knows the topic by its pseudonym alone.
    assert run(*keyed, f"--set={orders}=1MiB,2MiB", f"--captured={audit}=3MiB")[1] == told


def test_a_job_gets_all_arguments_resolved(run: Ran, folder: Path) -> None:
    code, told = run(
        "pipeline",
        "--captures=a.pcap",
        "--lake=out/lake",
        "--set=fetch.max.bytes=8MiB",
        "--captured=fetch.max.bytes=30MiB",
        "--master=local[2]",
        "--conf=spark.driver.memory=4g",
        "--run-at=2026-01-31T13:00:00+01:00",
    )
    assert code == 0
    assert told is not None
    assert (told.captures, told.lake) == ((folder / "a.pcap",), str(folder / "out/lake"))
    assert [lane.name for lane in told.scenario.lanes("fetch_max_bytes")] == [
        "captured",
        "consumer.fetch.max.bytes=8MiB",
    ]
    assert told.scenario.captured["broker.fetch.max.bytes"] == 30 * 1024 * 1024
    assert (told.session.master, told.session.conf) == ("local[2]", {"spark.driver.memory": "4g"})
    assert (told.run_at, told.run_at.tzinfo) == (datetime(2026, 1, 31, 12, tzinfo=UTC), UTC)


@pytest.mark.parametrize("job", [("ingest", "--captures=a.pcap"), ("replay",), ("report",)])
def test_a_run_knows_its_job(run: Ran, job: tuple[str, ...]) -> None:
    _, told = run(*job)
    assert told is not None
    assert told.job == job[0]


def test_a_flag_is_given_with_or_without_an_equals_sign(run: Ran) -> None:
    apart = run("pipeline", "--captures", "a.pcap", "--lake", "l", "--run-at", "2026-01-31T12:00:00Z")
    joined = run("pipeline", "--captures=a.pcap", "--lake=l", "--run-at=2026-01-31T12:00:00Z")
    assert apart == joined


def test_captures_may_be_repeated_and_listed() -> None:
    arguments = parse_arguments(["ingest", "--captures", "a", "b", "--captures=c"])
    assert arguments.captures == ["a", "b", "c"]


def test_arguments_that_are_not_given_have_defaults(run: Ran, folder: Path) -> None:
    before = datetime.now(UTC)
    _, told = run("ingest", "--captures=a.pcap")
    assert told is not None
    assert (told.lake, told.session.master, dict(told.session.conf)) == (str(folder / "lake"), None, {})
    assert before <= told.run_at <= datetime.now(UTC)


def test_flags_override_the_scenario(run: Ran, folder: Path) -> None:
    (folder / "s").mkdir()
    (folder / "s" / "x.yaml").write_text("captures: nope.pcap\nlake: lake1\n")
    _, told = run("pipeline", "--scenario=s/x.yaml", "--captures=a.pcap")
    assert told is not None
    assert (told.captures, told.lake) == ((folder / "a.pcap",), str(folder / "s/lake1"))
    _, told = run("pipeline", "--scenario=s/x.yaml", "--captures=a.pcap", "--lake=mine")
    assert told is not None
    assert told.lake == str(folder / "mine")


def test_the_zone_of_request_logs_is_stated_by_flag_or_scenario(folder: Path, run: Ran) -> None:
    (folder / "x.yaml").write_text("captures: a.pcap\nlog_zone: Europe/Berlin\n")
    told = [run("ingest", *flags)[1] for flags in (
        ("--captures=a.pcap",), ("--scenario=x.yaml",), ("--scenario=x.yaml", "--log-zone=+05:30"),
    )]  # fmt: skip
    assert [given and given.decoding.log_zone for given in told] == ["UTC", "Europe/Berlin", "+05:30"]


def test_brokers_are_stated_by_a_file(folder: Path, run: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "brokers.yaml").write_text("10.0.0.1:9999: 1\n")
    (folder / "wrong.yaml").write_text("10.0.0.1: 1\n10.0.0.2:9999: one\n")
    told = [run(job, "--captures=a.pcap", "--brokers=brokers.yaml")[1] for job in ("ingest", "pipeline")]
    assert [given and given.decoding.brokers for given in told] == [{"10.0.0.1:9999": "1"}] * 2
    assert run("ingest", "--captures=a.pcap", "--brokers=wrong.yaml")[0] == 2
    assert "wrong.yaml: 2 faults" in capsys.readouterr().err


def test_an_unknown_time_zone_is_refused_with_a_message(run: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ingest", "--captures=a.pcap", "--log-zone=Berlin")[0] == 2
    assert "--log-zone Berlin: no such time zone" in capsys.readouterr().err


@pytest.mark.parametrize(("job", "flags"), [("replay", ()), ("report", ()), ("gate", ("--on=gold",))])
def test_jobs_that_read_the_lake_accept_the_scenario_of_a_pipeline(
    run: Ran, folder: Path, job: str, flags: tuple[str, ...]
) -> None:
    (folder / "x.yaml").write_text("captures: gone.pcap\nlake: lake\nlog_zone: Europe/Berlin\n")
    code, told = run(job, "--scenario=x.yaml", *flags)
    assert (code, told and told.captures, told and told.lake) == (0, (), str(folder / "lake"))


def test_if_a_scenarios_lake_is_a_file_the_message_says_where_it_is_named(
    run: Ran, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "x.yaml").write_text("captures: a.pcap\nlake: a.pcap\n")
    assert run("replay", "--scenario=x.yaml")[0] == 2
    assert capsys.readouterr().err.startswith("refetch: x.yaml: lake: a.pcap: this is a file; name a folder, ")


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (
            ["replay", "--captures=a.pcap"],
            "replay does not read --captures, which ingest and pipeline take; see refetch replay --help",
        ),
        (
            ["report", "--set=a=1", "--set=b=2"],
            "report does not read --set, which ingest, replay, pipeline and size",
        ),
        (["gate", "--on=gold", "--captured", "a=1"], "gate does not read --captured, which ingest, replay,"),
        (["gate", "--on=gold", "--captures", "a.pcap", "b.pcap"], "gate does not read --captures, which ingest and"),
        (["report", "--gates=x.yaml"], "report does not read --gates, which ingest, replay, pipeline and gate take"),
        (["report", "--run-at=2026-01-31T12:00:00Z"], "report does not read --run-at, which"),
        (["ingest", "--run-at=2026-01-31T12:00:00Z"], "ingest does not read --run-at, which replay, pipeline, gate"),
        (["size", "--captures=a.pcap"], "size does not read --captures, which ingest and pipeline take"),
        (["pipeline", "--capture=1f2e"], "pipeline does not read --capture, which replay, gate and prune"),
        (["ingest", "--cluster=x.yaml"], "ingest does not read --cluster, which size takes"),
        (
            ["report", "--set=a=1", "--lakes=x", "--log-zone=UTC"],
            "and size take; report does not read --log-zone, which ingest and pipeline take; unrecognized arguments: "
            "--lakes=x",
        ),
        (["--lake=x", "pipeline"], "--lake belongs after the job: pipeline --lake; see refetch pipeline --help"),
        (["replay", "--strict=maybe"], "argument --strict: takes no value, and is given 'maybe'"),
        (["gate", "--on=silver", "--run=1f2e"], "--run names the run that the gold gate checks"),
        (["gate", "--on=gold", "--junit=."], "--junit .: this is a folder; name the file in it"),
        (["gate", "--on=gold", "--junit=s3a://b/x.xml"], "XML is written to a local file; copy it from there"),
        (["prune"], "prune takes one of --older-than=AGE, --run=ID and --capture=ID, and none is given"),
        (["prune", "--run=1f2e", "--older-than=9d"], "and --older-than and --run are given"),
        (["prune", "--older-than=3y"], "`3y` is no number of days or hours, e.g. 90d or 36h"),
    ],
)
def test_the_message_on_a_flag_that_a_job_does_not_take_lists_the_jobs_that_do(
    run: Ran, capsys: pytest.CaptureFixture[str], argv: list[str], told: str
) -> None:
    assert run(*argv) == (2, None)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("job", JOBS)
def test_help_lists_the_flags_of_a_job_and_no_others(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([job, "--help"])
    listed = set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    assert listed - {"--help"} == {name for name, flag in FLAGS.items() if job in flag.jobs}


def test_a_capture_set_and_a_run_are_named_by_their_ids(run: Ran) -> None:
    _, replayed = run("replay", "--lake=lake", "--capture=1f2e")
    _, checked = run("gate", "--on", "silver", "gold", "--lake=lake", "--capture=1f2e", "--run=3d4c")
    assert replayed is not None
    assert checked is not None
    assert (replayed.capture, checked.capture, checked.run_id) == ("1f2e", "1f2e", "3d4c")


@pytest.mark.parametrize(
    ("named", "compared"),
    [
        ([], ("previous", "latest")),
        (["1f2e"], ("1f2e", "latest")),
        (["1f2e", "3d4c"], ("1f2e", "3d4c")),
        (["s3a://bucket/before", "after/lake"], ("s3a://bucket/before", "{folder}/after/lake")),
        (["captures", "latest"], ("{folder}/captures", "latest")),
    ],
)
def test_runs_or_lakes_are_compared(run: Ran, folder: Path, named: list[str], compared: tuple[str, ...]) -> None:
    (folder / "captures").mkdir()
    _, told = run("compare", *named, "--lake=lake", "--json")
    assert told is not None
    assert told.compared == tuple(name.format(folder=folder) for name in compared)
    assert told.output.as_json


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["compare", "a", "b", "c"], "compare takes two runs, and not 3: a, b, c"),
        (["runs", "previous"], "unrecognized arguments: previous"),
        ([], "the following arguments are required: JOB; see refetch --help"),
        (["ingets"], "argument JOB: invalid choice: 'ingets'"),
        (["ingest", "--lakes=x"], "unrecognized arguments: --lakes=x"),
        (
            ["ingest", "--captures=a.pcap", "b.pcap"],
            "unrecognized arguments: b.pcap; --captures and --gates take several values after a space, not after =",
        ),
        (["ingest", "--captures="], "--captures without a value: is a variable of the shell not set?"),
        (["ingest", "--captures", "a.pcap", "", "--lake="], "--captures, --lake without a value"),
        (["ingest"], "No captures given"),
        (["ingest", "--captures=gone.pcap"], "gone.pcap: there is no such file or folder"),
        (["replay", "--run-at=yesterday"], "`yesterday` is no ISO 8601 time"),
        (["replay", "--run-at=2026-01-31T12:00:00"], "has no time zone"),
        (
            ["ingest", "--captures=a.pcap", "--conf=driver.memory=4g"],
            "--conf takes spark.KEY=VALUE, and not `driver.memory`",
        ),
        (["ingest", "--captures=a.pcap", "--lake=a.pcap"], "--lake a.pcap: this is a file"),
        (["replay", "--scenario=gone.yaml"], "gone.yaml: cannot be read"),
        (["replay", "--set=fetch.max.byte=1"], "unknown key `fetch.max.byte`; did you mean `fetch.max.bytes`?"),
    ],
)
def test_bad_arguments_give_one_message_and_exit_code_2(
    run: Ran, capsys: pytest.CaptureFixture[str], argv: list[str], told: str
) -> None:
    code, ran = run(*argv)
    output = capsys.readouterr()
    assert (code, ran, output.out) == (2, None, "")
    assert output.err.startswith("refetch: ")
    assert told in output.err
    assert "Traceback" not in output.err


@pytest.mark.parametrize(
    ("fault", "code", "told"),
    [
        (CaptureError("a.pcap: changed while it was read"), 1, "refetch: a.pcap: changed while it was read\n"),
        (LakeError("no tables"), 1, "refetch: no tables\n"),
        (RefetchError("any other"), 1, "refetch: any other\n"),
        (GateError("rule r: 3 rows"), 3, "refetch: rule r: 3 rows\n"),
        (PermissionError(13, "Permission denied", "/lake"), 1, "refetch: /lake: Permission denied\n"),
        (KeyboardInterrupt(), 130, "refetch: interrupted; the same command again leaves the same tables\n"),
    ],
)
def test_each_failure_gives_one_message_and_an_exit_code(
    run: Ran, capsys: pytest.CaptureFixture[str], fault: BaseException, code: int, told: str
) -> None:
    assert run("replay", fault=fault)[0] == code
    assert capsys.readouterr().err == told


def test_a_stack_trace_is_shown_on_request(
    run: Ran, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFETCH_TRACEBACK", "1")
    assert run("replay", fault=LakeError("no tables"))[0] == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_bug_in_refetch_itself_is_shown_with_its_stack_trace(run: Ran) -> None:
    with pytest.raises(ZeroDivisionError):
        run("replay", fault=ZeroDivisionError())


@pytest.mark.parametrize("argv", [["--help"], *([job, "--help"] for job in JOBS)])
def test_help_needs_nothing_installed(argv: list[str], repository: Path) -> None:
    """-S leaves out site-packages: the parser runs on the standard library alone."""
    command = [sys.executable, "-S", "-m", "jobs", *argv]
    answer = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("usage: refetch")


def test_arguments_are_checked_without_the_libraries_that_take_seconds_to_load(folder: Path, repository: Path) -> None:
    arguments = ["pipeline", f"--captures={folder}", f"--lake={folder}", "--set=fetch.max.bytes=1MiB", "--log-zone=UTC"]
    code = (
        "import sys; from jobs.cli import parse_arguments; from jobs.resolve import resolve_run;"
        f"resolve_run(parse_arguments({arguments}));"
        "print(*{'numba', 'pandas', 'pyspark'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    assert not subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout.strip()


def test_a_driver_loads_no_kernel_with_its_job(repository: Path) -> None:
    """Loading the first kernel takes a second, because numba's array functions are loaded with it."""
    code = f"import sys, {', '.join(f'jobs.{job}' for job in JOBS)}; print('numba.np.arraymath' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"


@pytest.mark.parametrize("job", [("report",), ("pipeline", "--captures=a.pcap")])
def test_the_page_goes_into_a_local_lake_if_no_file_is_given(run: Ran, folder: Path, job: tuple[str, ...]) -> None:
    _, told = run(*job, "--lake=lake")
    assert told is not None
    assert told.output.page == folder / "lake/report.html"
    _, elsewhere = run(*job, "--lake=lake", "--out=a/page.html")
    assert elsewhere is not None
    assert elsewhere.output.page == folder / "a/page.html"


def test_other_jobs_write_no_page(run: Ran) -> None:
    _, told = run("ingest", "--captures=a.pcap", "--lake=lake")
    assert told is not None
    assert told.output.page is None


def test_a_report_is_of_the_run_that_is_named(run: Ran, folder: Path) -> None:
    _, told = run("report", f"--lake={folder}", "--run=1f2e")
    assert told is not None
    assert told.run_id == "1f2e"


def test_a_page_of_a_remote_lake_needs_a_file_name(run: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", "--lake=s3://bucket/lake") == (2, None)
    assert "say with --out=FILE where the page is to be written" in capsys.readouterr().err
    _, told = run("pipeline", "--captures=a.pcap", "--lake=s3://bucket/lake")
    assert told is not None
    assert told.output.page is None


def test_a_lake_by_a_file_uri_is_the_folder_of_that_name(run: Ran, folder: Path) -> None:
    _, told = run("report", f"--lake=file://{folder}/a%20lake")
    assert told is not None
    assert (told.lake, told.output.page) == (str(folder / "a lake"), folder / "a lake/report.html")


@pytest.mark.parametrize("lake", ["s3a://key:hunter2@bucket/lake", "abfss://c@a.dfs.core.windows.net/lake?sig=hunter2"])
def test_a_lake_with_a_password_is_refused_and_named_without_it(
    run: Ran, capsys: pytest.CaptureFixture[str], lake: str
) -> None:
    assert run("replay", f"--lake={lake}") == (2, None)
    told = capsys.readouterr().err
    assert "a URI with a password or key in it" in told
    assert "hunter2" not in told


def test_a_place_where_data_docs_cannot_be_written_is_refused_at_once(
    run: Ran, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run("gate", "--on=silver", "--lake=lake", "--data-docs=s3://bucket/docs") == (2, None)
    assert "--data-docs s3://bucket/docs: pages are written to a local folder" in capsys.readouterr().err
    _, told = run("gate", "--on=silver", "--lake=lake", "--data-docs=docs")
    assert told is not None
    assert told.gate_job.data_docs == str(folder / "docs")


@pytest.mark.parametrize(("out", "why"), [(".", "this is a folder"), ("s3://bucket/page.html", "a local file")])
def test_a_place_where_the_page_cannot_be_written_is_refused_at_once(
    run: Ran, capsys: pytest.CaptureFixture[str], out: str, why: str
) -> None:
    assert run("report", "--lake=lake", f"--out={out}") == (2, None)
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("job", [["ingest", "--captures=a.pcap"], ["replay"], ["gate", "--on=gold"], ["size"]])
def test_a_lake_that_cannot_be_written_is_refused_at_once(
    run: Ran, folder: Path, capsys: pytest.CaptureFixture[str], job: list[str]
) -> None:
    given = ["--cluster=c.yaml"] if job == ["size"] else []
    assert run(*job, *given, "--lake=a.pcap/of/lake") == (2, None)
    assert capsys.readouterr().err == (
        f"refetch: --lake a.pcap/of/lake: nothing can be written there ({folder / 'a.pcap'}: Not a directory); "
        "name a folder that this user may write\n"
    )
    assert run(*job, *given, "--lake=of/lake")[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["a.pcap"]


def test_a_report_is_made_of_a_lake_that_cannot_be_written(
    run: Ran, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "lake").mkdir()
    monkeypatch.setattr("jobs.places.TemporaryDirectory", read_only(folder / "lake"))
    assert run("report", "--lake=lake") == (2, None)
    assert capsys.readouterr().err == (
        f"refetch: the page {folder / 'lake/report.html'}: nothing can be written there ({folder / 'lake'}: Permission "
        "denied); name another place with --out=FILE\n"
    )
    assert run("report", "--lake=lake", "--out=page.html")[0] == 0


def test_a_page_in_a_folder_that_cannot_be_written_is_refused_at_once(
    run: Ran, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pages").mkdir()
    monkeypatch.setattr("jobs.places.TemporaryDirectory", read_only(folder / "pages"))
    told = "nothing can be written there"
    for out in ("a.pcap/page.html", "pages/new/page.html"):
        assert run("pipeline", "--captures=a.pcap", f"--out={out}") == (2, None)
        assert f"--out {out}: {told} (" in capsys.readouterr().err
    (folder / "pages" / "page.html").touch()
    assert run("pipeline", "--captures=a.pcap", "--out=pages/page.html")[0] == 0


def read_only(folder: Path) -> Callable[..., TemporaryDirectory[str]]:
    """A function that makes temporary folders, except in this one: for root, no folder is read-only."""

    def made(**place: Any) -> TemporaryDirectory[str]:
        if place["dir"] == folder:
            raise PermissionError(13, "Permission denied", f"{folder}/.refetch-1")
        return TemporaryDirectory(**place)

    return made


def test_the_message_on_a_capture_instead_of_a_job_has_the_command_that_reads_it(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap"
    capture.touch()
    with pytest.raises(ArgumentError, match=f"`pipeline --captures={capture}` reads and replays it"):
        parse_arguments([str(capture)])
    with pytest.raises(
        ArgumentError, match=r"b\.pcap is no job, and no file of that name is there: `pipeline --captures"
    ):
        parse_arguments(["b.pcap"])


@pytest.mark.parametrize(
    ("named", "lake"),
    [
        (["--catalog=main.refetch"], "catalog:main.refetch"),
        (["--catalog=refetch-2"], "catalog:refetch-2"),
        (["--lake=catalog:main.refetch"], "catalog:main.refetch"),
        (["--scenario=x.yaml"], "catalog:of.file"),
        (["--scenario=x.yaml", "--catalog=main.refetch"], "catalog:main.refetch"),
    ],
)
def test_a_lake_may_be_a_schema_of_a_catalog(run: Ran, folder: Path, named: list[str], lake: str) -> None:
    (folder / "x.yaml").write_text("captures: a.pcap\nlake: catalog:of.file\n")
    _, told = run("pipeline", "--captures=a.pcap", *named)
    assert told is not None
    assert (told.lake, told.output.page) == (lake, None)
    assert not [*folder.glob("catalog*")]
    _, paged = run("pipeline", "--captures=a.pcap", *named, "--out=page.html")
    assert paged is not None
    assert paged.output.page == folder / "page.html"
    assert not paged.output.keeps_pages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["runs", "--lake=a", "--catalog=main.refetch"],
            "--lake=a and --catalog=main.refetch are two places for tables",
        ),
        (["runs", "--catalog=a.b.c"], "--catalog a.b.c: expected CATALOG.SCHEMA or SCHEMA, each of letters, digits, "),
        (["compare", "catalog:a.b.c", "latest"], "compare: a.b.c: expected CATALOG.SCHEMA or SCHEMA"),
        (["runs", "--lake=catalog:a`b"], "--lake a`b: expected CATALOG.SCHEMA or SCHEMA"),
        (["report", "--catalog=main.refetch"], "the lake catalog:main.refetch is not a local folder: say with --out="),
    ],
)
def test_a_schema_of_a_catalog_is_checked_before_spark_starts(
    run: Ran, folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == (2, None)
    assert message in capsys.readouterr().err


def test_lakes_in_catalogs_can_be_compared(run: Ran, folder: Path) -> None:
    _, told = run("compare", "catalog:main.before", "catalog:main.after")
    assert told is not None
    assert told.compared == ("catalog:main.before", "catalog:main.after")
