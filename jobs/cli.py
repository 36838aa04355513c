"""The command line: `refetch JOB --flag=value ...`.

Parsing needs the standard library alone: --help and a wrong flag are answered before anything is set up or started.
Exit codes: 0 done, 1 failed, 2 bad arguments, scenario or rules, 3 a gate refused, 130 interrupted, 143 and 129 ended
by SIGTERM and SIGHUP.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from jobs.flags import (
    COMPACT,
    COMPARE,
    FLAGS,
    GATE,
    INGEST,
    MIGRATE,
    PIPELINE,
    PRUNE,
    REPLAY,
    REPORT,
    RUNS,
    SIZE,
    add_flags,
    empty_flags,
    not_taken_text,
)
from jobs.paths import COMMAND, IS_CLONE, SHOWN_CONF
from jobs.terminal.signals import are_watched, end_at_signals, end_plainly, interrupted_text
from jobs.terminal.streams import survive_closed_streams
from udfs.errors import ArgumentError, GateError, RefetchError, RuleError, ScenarioError

if TYPE_CHECKING:
    from jobs.run import Run

CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap", ".zst", ".gz")
JOBS: Mapping[str, str] = {
    INGEST: "decode captures into the silver tables of the lake",
    REPLAY: "replay what the lake holds under other settings, into its gold tables",
    PIPELINE: "ingest and replay whatever has not been done yet, then print the results and write the report",
    GATE: "check the lake's tables against refetch's rules and your own, and render Data Docs",
    REPORT: "write the page that answers questions about a run of the lake",
    COMPARE: "say what changed between two runs, and whether what the first one predicted came true",
    RUNS: "list the runs and the capture sets of the lake",
    PRUNE: "remove runs and capture sets from the lake, by age or by id, with their tables' rows and pages",
    COMPACT: "join the small files of the lake's tables, and remove those that no table needs any more",
    MIGRATE: "add to the lake the tables and columns that an older release did not have, and say what to make anew",
    SIZE: "try partition limits (KIP-578, a proposal) on a cluster described in a file, without a capture",
}
"""What each job does, as --help says it. A job is the function `main(run)` of the module with its name."""

EXIT_CODES: Mapping[type[RefetchError], int] = {ArgumentError: 2, ScenarioError: 2, RuleError: 2, GateError: 3}
INTERRUPTED = 130

_DESCRIPTION = "Replay captured Kafka traffic under the settings you are considering."
_TESTS = f"; `{COMMAND} test` runs the tests" if IS_CLONE else ""
_JOBS_EPILOG = f"""\
{COMMAND} alone runs `pipeline --scenario={SHOWN_CONF}/quickstart.yaml`{_TESTS}.
Exit codes: 0 done, 1 failed, 2 bad arguments, scenario or rules, 3 a gate refused, 130 interrupted, 143 terminated.
REFETCH_TRACEBACK=1 shows stack traces.
"""
_SETTINGS_EPILOG = f"""\
Settings are spelt as in {SHOWN_CONF}/settings.yaml:
consumer.fetch.max.bytes, replica.fetch.max.bytes, broker.fetch.max.bytes.
Kafka's bare name will do; fetch.max.bytes is the consumer's in --set and the broker's in --captured.
Where neither --set nor a scenario says what to replay, `pipeline` and `replay` choose values from the capture.
"""
_PATHS_EPILOG = """\
Paths in flags are relative to the working directory, paths in a scenario file to that file's folder.
"""


class _Parser(argparse.ArgumentParser):
    """argparse that raises its errors as ArgumentError."""

    def error(self, message: str) -> NoReturn:
        message = message.replace("ignored explicit argument", "takes no value, and is given")
        raise ArgumentError(f"{message}; see {self.prog} --help")


def entry(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one job and leave with its exit code. Signals and closed streams are handled only in a process of our own:
    one in which Spark does not run yet, and which Spark has not started.
    """
    is_ours = "pyspark" not in sys.modules and "PYSPARK_GATEWAY_PORT" not in os.environ
    if is_ours:
        survive_closed_streams()
        end_at_signals()
    code = run_command(sys.argv[1:] if argv is None else argv)
    end_plainly()
    sys.exit(code)


def run_command(argv: Sequence[str]) -> int:
    """Run one job. Returns the exit code. If the job fails, stderr has one message that says why."""
    return run_guarded(lambda: _run_job(parse_arguments(argv)))


def run_guarded(action: Callable[[], None]) -> int:
    """Run the action, and return the exit code. A RefetchError, OSError or interrupt is printed as one message."""
    try:
        action()
        sys.stdout.flush()  # so that a full disk is reported here, and not when Python ends
    except RefetchError as fault:
        return _print_failure(
            str(fault), next((code for kind, code in EXIT_CODES.items() if isinstance(fault, kind)), 1)
        )
    except OSError as fault:
        return _print_failure(f"{fault.filename or 'input or output'}: {fault.strerror or fault}", 1)
    except KeyboardInterrupt:
        return _print_failure(interrupted_text(), INTERRUPTED)
    return 0


def parse_arguments(argv: Sequence[str], prog: str = "refetch") -> argparse.Namespace:
    """The arguments by name. Raises ArgumentError if they are wrong; --help prints and leaves with exit code 0."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog=prog, description=_DESCRIPTION, epilog=_JOBS_EPILOG, formatter_class=layout, allow_abbrev=False
    )
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB", title="jobs")
    for name, what in JOBS.items():
        about = f"{what[0].upper()}{what[1:]}."
        epilog = (_SETTINGS_EPILOG if name in FLAGS["--set"].jobs else "") + _PATHS_EPILOG
        job = jobs.add_parser(
            name, help=what, description=about, epilog=epilog, formatter_class=layout, allow_abbrev=False
        )
        add_flags(job, name)
    if argv and argv[0] not in JOBS and Path(argv[0]).exists():
        parser.error(f"{argv[0]} is a file, and no job: `pipeline --captures={argv[0]}` reads and replays it")
    if argv and Path(argv[0]).suffix in CAPTURE_SUFFIXES:
        parser.error(f"{argv[0]} is no job, and no file of that name is there: `pipeline --captures=FILE` replays one")
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        jobs.choices[arguments.job].error(not_taken_text(arguments.job, unknown))
    if without := empty_flags(vars(arguments)):
        to_do = "is a variable of the shell not set? Give one, or leave the flag out"
        jobs.choices[arguments.job].error(f"{', '.join(without)} without a value: {to_do}")
    return arguments


def _run_job(arguments: argparse.Namespace) -> None:
    # Here and not above, because --help and `parse_arguments` have to work without third-party packages.
    from jobs.resolve import resolve_run

    run = resolve_run(arguments)
    from jobs.gates.rule_failures import readable_rule_failures
    from jobs.terminal.failures import ReadableSparkFailures

    with ReadableSparkFailures(), readable_rule_failures(run.gates.rules), ExitStack() as until_done:
        _load_job(run, until_done).main(run)


def _load_job(run: Run, until_done: ExitStack) -> ModuleType:
    """The job's module. It loads while Spark starts: both take about as long. `size` reads a file before it starts
    Spark.
    """
    if run.job == SIZE:
        return import_module(f"jobs.{run.job}")
    from jobs.ready_session import begin_session
    from jobs.terminal.interrupts import cancel_at_interrupt

    with ThreadPoolExecutor(max_workers=1) as beside:
        loaded = beside.submit(import_module, f"jobs.{run.job}")
        spark = begin_session(run)
        if not are_watched():
            until_done.enter_context(cancel_at_interrupt(spark))
    return loaded.result()


def _print_failure(message: str, code: int) -> int:
    if os.environ.get("REFETCH_TRACEBACK") == "1":
        traceback.print_exc()
    sys.stderr.write(f"refetch: {message}\n")
    return code
