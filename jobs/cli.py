"""The command line: `refetch JOB --flag=value ...`.

Parsing needs the standard library alone: --help and a wrong flag are answered before anything is set up or started.
Exit codes: 0 done, 1 failed, 2 bad arguments, scenario or rules, 3 a gate refused, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from udfs.errors import ArgumentError, GateError, RefetchError, RuleError, ScenarioError

if TYPE_CHECKING:
    from jobs.run import Run

JOBS: Mapping[str, str] = {
    "ingest": "decode captures into the silver tables of the lake",
    "replay": "replay what the lake holds under other settings, into its gold tables",
    "pipeline": "ingest and replay what was not before, then print what was found and write the report",
    "gate": "check the lake's tables by the rules of conf/gates and by your own, and render Data Docs",
    "report": "write the page that answers twenty questions about a run of the lake",
    "size": "try partition limits (KIP-578, a proposal) on a cluster that a file describes, without any capture",
}
"""Each job and what it does; a job is the function `main(run)` of the module of that name."""

READS_CAPTURES = frozenset({"ingest", "pipeline"})
SIZES_A_CLUSTER = "size"
GATE = "gate"
REPORTS = "report"
WRITES_A_PAGE = frozenset({"pipeline", REPORTS})
EXIT_CODES: Mapping[type[RefetchError], int] = {ArgumentError: 2, ScenarioError: 2, RuleError: 2, GateError: 3}
INTERRUPTED = 130

_DESCRIPTION = "Replay captured Kafka traffic under the settings you are considering."
_JOBS_EPILOG = """\
./spark-submit.sh alone runs `pipeline --scenario=conf/quickstart.yaml`; `./spark-submit.sh test` runs the tests.
Exit codes: 0 done, 1 failed, 2 bad arguments, scenario or rules, 3 a gate refused.
REFETCH_TRACEBACK=1 shows stack traces.
"""
_SETTINGS_EPILOG = """\
Settings are spelt as in conf/settings.yaml: consumer.fetch.max.bytes, replica.fetch.max.bytes, broker.fetch.max.bytes.
Kafka's bare name will do; fetch.max.bytes is the consumer's in --set and the broker's in --captured.
Paths in flags are relative to the working directory, paths in a scenario file to that file's folder.
"""


class _Parser(argparse.ArgumentParser):
    """argparse with its faults raised, as every other fault is."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"{message}; see {self.prog} --help")


def entry(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one job and leave with its exit code."""
    sys.exit(run_command(sys.argv[1:] if argv is None else argv))


def run_command(argv: Sequence[str]) -> int:
    """Run one job. Returns the exit code; what went wrong is one message on stderr."""
    return guarded(lambda: _run_job(parse(argv)))


def guarded(action: Callable[[], None]) -> int:
    """Run the action; a RefetchError, a failing file system or an interrupt is one message. Returns the exit code."""
    try:
        action()
    except RefetchError as fault:
        return _told(str(fault), next((code for kind, code in EXIT_CODES.items() if isinstance(fault, kind)), 1))
    except OSError as fault:
        return _told(f"{fault.filename or 'input or output'}: {fault.strerror or fault}", 1)
    except KeyboardInterrupt:
        return _told("interrupted; the same command again leaves the same tables", INTERRUPTED)
    return 0


def parse(argv: Sequence[str], prog: str = "refetch") -> argparse.Namespace:
    """The arguments by name. Raises ArgumentError; --help prints and leaves with 0."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog=prog, description=_DESCRIPTION, epilog=_JOBS_EPILOG, formatter_class=layout, allow_abbrev=False
    )
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB", title="jobs")
    for name, what in JOBS.items():
        about = f"{what[0].upper()}{what[1:]}."
        job = jobs.add_parser(
            name, help=what, description=about, epilog=_SETTINGS_EPILOG, formatter_class=layout, allow_abbrev=False
        )
        _add_flags(job, name)
    return parser.parse_args(argv)


def _add_flags(job: argparse.ArgumentParser, name: str) -> None:
    if name in WRITES_A_PAGE:
        job.add_argument(
            "--out", metavar="FILE", help="the page to write (default: report.html in the lake, a local one)"
        )
    if name == REPORTS:
        job.add_argument("--run", metavar="ID", help="the run to report on (default: the lake's newest)")
    reads = "" if name in READS_CAPTURES else " (not read by this job, which reads the lake)"
    add = job.add_argument
    add(
        "--captures",
        metavar="PATH",
        action="extend",
        nargs="+",
        help=f"files, folders, patterns or URIs; repeatable{reads}",
    )
    add("--lake", metavar="PATH", help="folder or URI of the Delta tables (default: the scenario's, else ./lake)")
    add("--scenario", metavar="FILE", help="YAML file of captures, lake, captured settings and settings to replay")
    add("--set", metavar="KEY=V[,V]", action="append", default=[], help="replay these values of a setting; repeatable")
    add(
        "--captured",
        metavar="KEY=V",
        action="append",
        default=[],
        help="a setting in force at capture time that it cannot tell; repeatable",
    )
    if name in READS_CAPTURES:
        add(
            "--pseudonymise",
            metavar="KEYFILE",
            help="replace names of topics, clients, principals and hosts by keyed hashes",
        )
        add("--log-zone", metavar="ZONE", help="time zone of request logs, as Europe/Berlin or +02:00 (default: UTC)")
    if name == SIZES_A_CLUSTER:
        add("--cluster", metavar="FILE", help="YAML file of brokers, racks, topics and growth (else the scenario's)")
    else:
        add(
            "--gates",
            metavar="PATH",
            action="extend",
            nargs="+",
            default=[],
            help="files or folders of rules for the gates, beside those of conf/gates; repeatable",
        )
    if name == GATE:
        _add_gate_flags(job)
    add("--master", metavar="URL", help="Spark master (default: that of spark-submit, else local[*])")
    add(
        "--conf",
        metavar="KEY=V",
        action="append",
        default=[],
        help="a Spark property, before refetch's own; repeatable",
    )
    add("--run-at", metavar="TIME", type=_instant, help="the run's clock, e.g. 2026-01-31T12:00:00Z (default: now)")


def _add_gate_flags(job: argparse.ArgumentParser) -> None:
    job.add_argument(
        "--on",
        metavar="LAYER",
        action="extend",
        nargs="+",
        choices=("silver", "gold"),
        required=True,
        help="silver: the newest capture set; gold: the newest run; both may be given",
    )
    job.add_argument("--data-docs", metavar="PATH", help="folder for Data Docs (default: LAKE/data_docs)")


def resolve_run(arguments: argparse.Namespace) -> Run:
    """Everything the job is told, checked. Raises ScenarioError and ArgumentError."""
    # Imported here because --help and parse() have to work without third-party packages.
    from jobs.captures.inputs import checked_zone, resolve_captures
    from jobs.captures.pseudonym_key import pseudonyms_by
    from jobs.gates.rules import Gates, read_gates
    from jobs.run import Run, absolute_lake, page_path, spark_properties
    from jobs.scenarios.scenario_file import resolve_scenario

    scenario = resolve_scenario(arguments.scenario, arguments.set, arguments.captured)
    cluster = getattr(arguments, "cluster", None) or scenario.cluster
    if arguments.job == SIZES_A_CLUSTER and cluster is None:
        raise ArgumentError("size needs the file of a cluster: --cluster=FILE, or `cluster: FILE` in the scenario")
    lake = absolute_lake(arguments.lake or scenario.lake or "lake")
    named = scenario.captures if arguments.captures is None else tuple(arguments.captures)
    page = page_path(getattr(arguments, "out", None), lake) if arguments.job in WRITES_A_PAGE else None
    if arguments.job == REPORTS and page is None:
        raise ArgumentError(f"the lake {lake} is not a local folder: say by --out=FILE where the page is to be")
    return Run(
        scenario=scenario,
        captures=resolve_captures(named) if arguments.job in READS_CAPTURES else (),
        lake=lake,
        run_at=arguments.run_at or datetime.now(UTC),
        master=arguments.master,
        log_zone=checked_zone(getattr(arguments, "log_zone", None) or scenario.log_zone),
        pseudonyms=pseudonyms_by(getattr(arguments, "pseudonymise", None)),
        spark_conf=spark_properties(arguments.conf),
        cluster=cluster,
        gates=Gates() if arguments.job == SIZES_A_CLUSTER else read_gates(arguments.gates),
        on=tuple(dict.fromkeys(getattr(arguments, "on", ()))),
        data_docs=getattr(arguments, "data_docs", None),
        page=page,
        run_id=getattr(arguments, "run", None),
    )


def _run_job(arguments: argparse.Namespace) -> None:
    run = resolve_run(arguments)
    from jobs.failures import spark_failures_told

    with spark_failures_told():
        _job(arguments.job, run).main(run)


def _job(name: str, run: Run) -> ModuleType:
    """The job's module, loaded while Spark starts, which takes as long. `size` reads a file before it starts Spark."""
    if name == SIZES_A_CLUSTER:
        return import_module(f"jobs.{name}")
    from jobs.kernels import begun_session

    with ThreadPoolExecutor(max_workers=1) as beside:
        loaded = beside.submit(import_module, f"jobs.{name}")
        begun_session(run, f"refetch {name}")
    return loaded.result()


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is no ISO 8601 time, e.g. 2026-01-31T12:00:00Z") from None
    if instant.tzinfo is None:
        raise argparse.ArgumentTypeError(f"`{text}` has no time zone; end it with Z or an offset")
    return instant.astimezone(UTC)


def _told(message: str, code: int) -> int:
    if os.environ.get("REFETCH_TRACEBACK") == "1":
        traceback.print_exc()
    sys.stderr.write(f"refetch: {message}\n")
    return code
