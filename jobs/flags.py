"""The flags: what each one means, and which jobs read it. A job refuses flags that it does not read.

Standard library only, like all of parsing.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.paths import SHOWN_DOCS

INGEST, REPLAY, PIPELINE, GATE, REPORT, SIZE = "ingest", "replay", "pipeline", "gate", "report", "size"
COMPARE, RUNS, PRUNE, COMPACT, MIGRATE = "compare", "runs", "prune", "compact", "migrate"
EVERY_JOB = (INGEST, REPLAY, PIPELINE, GATE, REPORT, COMPARE, RUNS, PRUNE, COMPACT, MIGRATE, SIZE)
READ_CAPTURES = (INGEST, PIPELINE)
REPLAYS = (REPLAY, PIPELINE)
TELL = (REPLAY, PIPELINE, REPORT)
"""Jobs that end by showing a run's results, on the screen and on a page."""
WRITE_THE_LAKE = (INGEST, REPLAY, PIPELINE, GATE, PRUNE, COMPACT, MIGRATE, SIZE)
PREVIOUS, LATEST = "previous", "latest"
"""Names that stand for runs: the one before the newest, and the newest."""
_RUNS_HELP = (
    f"two runs, the earlier one first: ids, `{PREVIOUS}`, `{LATEST}`, or two lakes, of which the newest runs are taken "
    f"(default: {PREVIOUS} {LATEST}; one alone is compared with {LATEST})"
)
_HOURS = {"h": 1, "d": 24, "w": 168}
_AGE = re.compile(r"(\d{1,9})([hdw])", re.ASCII)
_CENTURY = 36_525 * 24
_LISTED: Mapping[str, Any] = {"action": "extend", "nargs": "+"}
_REPEATED: Mapping[str, Any] = {"action": "append"}


@dataclass(frozen=True)
class Flag:
    """A flag: the jobs that read it, its value's name in --help, what --help says, and further options of argparse."""

    jobs: Sequence[str]
    metavar: str | None
    help: str
    options: Mapping[str, Any] = field(default_factory=dict)


def parse_instant(text: str) -> datetime:
    """The time that an ISO 8601 text states, in UTC. Raises ArgumentTypeError for other texts and for those without a
    zone.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is no ISO 8601 time, e.g. 2026-01-31T12:00:00Z") from None
    if time.tzinfo is None:
        raise argparse.ArgumentTypeError(f"`{text}` has no time zone; end it with Z or an offset")
    return time.astimezone(UTC)


def parse_age(text: str) -> timedelta:
    """The time span of a text such as `90d` or `36h`. Raises ArgumentTypeError for other texts and above a century."""
    match = _AGE.fullmatch(text)
    if match is None or int(match[1]) * _HOURS[match[2]] > _CENTURY:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of days or hours, e.g. 90d or 36h")
    return timedelta(hours=int(match[1]) * _HOURS[match[2]])


FLAGS: Mapping[str, Flag] = {
    "--captures": Flag(READ_CAPTURES, "PATH", "files, folders, patterns or URIs; repeatable", _LISTED),
    "--capture": Flag(
        (REPLAY, GATE, PRUNE),
        "ID",
        "the capture set of the lake to work on (default: the one written last; prune has none)",
    ),
    "--cluster-id": Flag(
        REPLAYS,
        "ID",
        "the cluster to replay, of those that the capture set shows (default: the one with most requests)",
    ),
    "--lake": Flag(EVERY_JOB, "PATH", "folder or URI of the Delta tables (default: the scenario's, else ./lake)"),
    "--catalog": Flag(
        EVERY_JOB,
        "SCHEMA",
        "schema of a catalog, as main.refetch, whose tables are read and written by name, in place of a folder",
    ),
    "--scenario": Flag(
        EVERY_JOB,
        "FILE",
        "YAML file of captures, lake, captured settings and settings to replay; each job reads its part",
    ),
    "--set": Flag((INGEST, *REPLAYS, SIZE), "KEY=V[,V]", "replay these values of a setting; repeatable", _REPEATED),
    "--find": Flag(
        (INGEST, *REPLAYS),
        "AIM",
        "look for the setting that meets an aim, as `fetch_max_bytes: least catch_up where held <= 64MiB and "
        f"longest_wait <= 1s`; repeatable; {SHOWN_DOCS}/outcomes.md has all outcomes",
        _REPEATED,
    ),
    "--captured": Flag(
        (INGEST, *REPLAYS, SIZE),
        "KEY=V",
        "a setting in force at capture time that the capture does not show; repeatable",
        _REPEATED,
    ),
    "--from": Flag(
        REPLAYS,
        "TIME",
        "count from this time on, e.g. 2026-01-31T12:00:00Z, or 5m after the capture's begin; what comes before only "
        "warms up the state",
    ),
    "--to": Flag(REPLAYS, "TIME", "leave out what comes at or after this time, written as that of --from"),
    "--pseudonymise": Flag(
        READ_CAPTURES, "KEYFILE", "replace names of topics, clients, principals and hosts with keyed hashes"
    ),
    "--log-zone": Flag(
        READ_CAPTURES, "ZONE", "time zone of request logs, such as Europe/Berlin or +02:00 (default: UTC)"
    ),
    "--brokers": Flag(
        READ_CAPTURES, "FILE", "YAML file of node ids by server, such as `10.0.0.1:9999: 1`, which captures do not tell"
    ),
    "--continue": Flag(
        READ_CAPTURES,
        "ID",
        "go on from a capture set of the lake that ends before these captures begin, the night before: connections and "
        "sessions that were open then are not begun anew (without an ID: the latest one)",
        {"nargs": "?", "const": LATEST},
    ),
    "--cluster": Flag((SIZE,), "FILE", "YAML file of brokers, racks, topics and growth (else the scenario's)"),
    "--gates": Flag(
        (INGEST, *REPLAYS, GATE),
        "PATH",
        "files or folders of gate rules, in addition to refetch's own; repeatable",
        _LISTED,
    ),
    "--on": Flag(
        (GATE,),
        "LAYER",
        "silver: a capture set; gold: a run; both may be given",
        {**_LISTED, "choices": ("silver", "gold"), "required": True},
    ),
    "--run": Flag((GATE, REPORT, PRUNE), "ID", "the run of the lake to work on (default: the newest; prune has none)"),
    "--older-than": Flag(
        (PRUNE,),
        "AGE",
        "runs and capture sets that nobody asked for in this time, e.g. 90d, 12w or 36h",
        {"type": parse_age},
    ),
    "--dry-run": Flag(
        (PRUNE, MIGRATE), None, "print what would go or be added, and change nothing", {"action": "store_true"}
    ),
    "--retention": Flag(
        (PRUNE, COMPACT),
        "AGE",
        "remove files that no table has needed for this time (default: 7d); who may still read or write the lake needs "
        "them",
        {"type": parse_age},
    ),
    "--data-docs": Flag((GATE,), "PATH", "folder for Data Docs (default: LAKE/data_docs)"),
    "--junit": Flag((GATE,), "FILE", "also write what was found as JUnit's XML, a testcase a rule"),
    "--out": Flag(TELL, "FILE", "the page to write (default: report.html in the lake, if that is a local folder)"),
    "--compare-with": Flag(
        TELL, "RUN", "show on the page what changed since this run, an id or `previous`, and the trends of the lake"
    ),
    "--verbose": Flag(
        (*TELL, COMPARE, RUNS),
        None,
        "print everything: answers and tables, every change, every run",
        {"action": "store_true"},
    ),
    "--trend": Flag(
        (RUNS,), None, "print what runs come to, night by night, and keep it in gold/trends", {"action": "store_true"}
    ),
    "--json": Flag((COMPARE, RUNS, PRUNE, COMPACT, MIGRATE), None, "print the same as JSON", {"action": "store_true"}),
    "--strict": Flag(REPLAYS, None, "fail if one of several replays is refused", {"action": "store_true"}),
    "--master": Flag(EVERY_JOB, "URL", "Spark master (default: that of spark-submit, else local[*])"),
    "--conf": Flag(EVERY_JOB, "KEY=V", "a Spark property, which overrides refetch's own; repeatable", _REPEATED),
    "--run-at": Flag(
        (*REPLAYS, GATE, PRUNE, SIZE),
        "TIME",
        "the run's clock, e.g. 2026-01-31T12:00:00Z (default: now)",
        {"type": parse_instant},
    ),
}
"""Every flag by its name, in the order of --help."""


def add_flags(parser: argparse.ArgumentParser, job: str) -> None:
    """Add the flags of a job to the parser."""
    for name, flag in FLAGS.items():
        if job in flag.jobs:
            named = {} if flag.metavar is None else {"metavar": flag.metavar}
            options: dict[str, Any] = {**named, **flag.options}
            parser.add_argument(name, help=flag.help, **options)
    if job == COMPARE:
        parser.add_argument("runs", nargs="*", metavar="RUN", help=_RUNS_HELP)


def not_taken_text(job: str, arguments: Sequence[str]) -> str:
    """The message about arguments that the job's parser does not know: which jobs take them, if any, or that they
    belong behind the job.
    """
    flags = list(dict.fromkeys(argument.partition("=")[0] for argument in arguments))
    messages = [
        f"{name} belongs after the job: {job} {name}"
        if job in FLAGS[name].jobs
        else f"{job} does not read {name}, which {_takers_text(FLAGS[name].jobs)}"
        for name in flags
        if name in FLAGS
    ]
    # Further arguments may be the values of a flag that the job does not take.
    unknown = [argument for argument in arguments if argument.partition("=")[0] not in FLAGS]
    unknown = [argument for argument in unknown if argument.startswith("-") or not messages]
    listed = [name for name, flag in FLAGS.items() if job in flag.jobs and flag.options == _LISTED]
    is_list = unknown and listed and not any(argument.startswith("-") for argument in unknown)
    to_do = f"; {' and '.join(listed)} take several values after a space, not after =" if is_list else ""
    return "; ".join([*messages, *([f"unrecognized arguments: {' '.join(unknown)}{to_do}"] if unknown else [])])


def empty_flags(arguments: Mapping[str, object]) -> list[str]:
    """The flags given without a value, as when a shell variable is not set.

    arguments: the values by name, as argparse has them.
    """
    values = ((name, arguments.get(name[2:].replace("-", "_"))) for name in FLAGS)
    return [name for name, value in values if value == "" or (isinstance(value, list) and "" in value)]


def _takers_text(jobs: Sequence[str]) -> str:
    *others, last = jobs
    return f"{', '.join(others)} and {last} take" if others else f"{last} takes"
