"""Resolves command-line arguments into the run that they ask for, and checks it before Spark starts."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from jobs.captures.inputs import check_zone, resolve_captures
from jobs.captures.pseudonym_key import read_pseudonyms
from jobs.flags import (
    COMPARE,
    FLAGS,
    GATE,
    LATEST,
    PREVIOUS,
    PRUNE,
    READ_CAPTURES,
    REPLAYS,
    REPORT,
    SIZE,
    TELL,
    WRITE_THE_LAKE,
)
from jobs.gates.rule_files import read_gates
from jobs.gates.rules import Gate, Gates
from jobs.places import (
    BY_CATALOG,
    BY_FLAG,
    absolute_lake,
    catalog_lake,
    check_lake_writable,
    check_page_writable,
    docs_folder,
    junit_path,
    names_lake,
    page_path,
)
from jobs.run import RETENTION, Decoding, GateJob, Output, Removal, Run, SessionWishes
from jobs.scenarios.scenario import Scenario, with_names
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import setting_of
from jobs.scenarios.stated_brokers import read_stated_brokers
from udfs.errors import ArgumentError

NEARLY = 1.1
"""Two sizes whose ratio is below this may be meant to be the same size, such as 1 GB and 1 GiB."""
PRUNED_BY = ("older_than", "run", "capture")
"""The arguments that say what `prune` removes; it takes exactly one of them."""
Arguments = Mapping[str, Any]
"""The arguments by name, `job` among them; None for a flag that is not given, or that the job does not read."""


def resolve_run(arguments: argparse.Namespace) -> Run:
    """The run that the arguments ask for, with everything that they name checked.

    Raises ScenarioError for faults of a scenario, RuleError for faults of rules, and ArgumentError for all others.
    """
    options: Arguments = defaultdict(lambda: None, vars(arguments))
    window = {"from": options["from"], "to": options["to"]}
    if arguments.job == PRUNE:
        check_pruned(options)
    job, sets, stated, aimed = arguments.job, options["set"] or (), options["captured"] or (), options["find"] or ()
    scenario = resolve_scenario(options["scenario"], sets, stated, aimed, window)
    sys.stderr.writelines(f"refetch: {note}\n" for note in unlike_units(scenario))
    pseudonyms = read_pseudonyms(options["pseudonymise"])
    if pseudonyms is not None:
        scenario = with_names(scenario, pseudonyms.given)
    cluster = cluster_file(options, scenario)
    lake, page = lake_and_page(options, scenario)
    on = gates_to_apply(options)
    return Run(
        scenario=scenario,
        captures=captures_to_read(options, scenario) if job in READ_CAPTURES else (),
        lake=lake,
        run_at=options["run_at"] or datetime.now(UTC),
        decoding=Decoding(
            log_zone=check_zone(options["log_zone"] or scenario.log_zone),
            pseudonyms=pseudonyms,
            brokers=read_stated_brokers(options["brokers"], pseudonyms),
            continues=options["continue"],
        ),
        session=SessionWishes(options["master"], parse_spark_properties(options["conf"] or ())),
        cluster=cluster,
        chooses=job in REPLAYS and not scenario.names_replays,
        gates=read_gates(options["gates"] or ()) if job in FLAGS["--gates"].jobs else Gates(),
        capture=options["capture"],
        cluster_id=options["cluster_id"],
        strict=bool(options["strict"]),
        run_id=options["run"],
        dry_run=bool(options["dry_run"]),
        compared=runs_to_compare(options["runs"]) if job == COMPARE else (),
        gate_job=GateJob(on, docs_folder(options["data_docs"]), junit_path(options["junit"])),
        removal=Removal(options["older_than"], file_retention(options)),
        output=Output(
            page=page,
            keeps_pages=page is not None and options["out"] is None,
            compared_with=options["compare_with"],
            verbose=bool(options["verbose"]),
            trend=bool(options["trend"]),
            as_json=bool(options["json"]),
        ),
        job=job,
    )


def unlike_units(scenario: Scenario) -> Iterator[str]:
    """A note for each two lanes whose values of a setting may be meant to be the same, such as 8MB and 8MiB."""
    varied = {key: values for grid in scenario.replay.values() for key, values in grid.items()}
    for key, values in varied.items():
        setting = setting_of(key)
        sizes = [value for value in values if setting.type == "bytes" and isinstance(value, int)]
        for smaller, larger in pairwise(sizes):
            if smaller and larger / smaller < NEARLY:
                pair = f"{setting.format(smaller)} and {setting.format(larger)}"
                yield f"{key}: {pair} are two lanes; a MB is 1,000,000 bytes, a MiB 1,048,576"


def captures_to_read(options: Arguments, scenario: Scenario) -> tuple[Path | str, ...]:
    """The files to read. Raises ArgumentError for names that lead to none."""
    if options["captures"]:
        return resolve_captures(options["captures"])
    return resolve_captures(scenario.captures, scenario.places)


def cluster_file(options: Arguments, scenario: Scenario) -> str | None:
    """The file that describes a cluster. Raises ArgumentError if the job needs one and none is given."""
    cluster: str | None = options["cluster"] or scenario.cluster
    if options["job"] == SIZE and cluster is None:
        raise ArgumentError("size needs a cluster file: --cluster=FILE, or `cluster: FILE` in the scenario")
    return cluster


def lake_and_page(options: Arguments, scenario: Scenario) -> tuple[str, Path | None]:
    """The lake, and the page that the job writes, if any. Raises ArgumentError if either cannot be written."""
    job, (told_lake, named_by) = options["job"], lake_and_flag(options, scenario)
    lake = absolute_lake(told_lake, named_by)
    page = page_path(options["out"], lake) if job in TELL else None
    if job == REPORT and page is None:
        raise ArgumentError(
            f"the lake {lake} is not a local folder: say with --out=FILE where the page is to be written"
        )
    if job in WRITE_THE_LAKE:
        check_lake_writable(told_lake, lake, named_by)
    if page is not None:
        check_page_writable(options["out"], page)
    return lake, page


def lake_and_flag(options: Arguments, scenario: Scenario) -> tuple[str, str]:
    """(the lake as named, the flag or the line that names it). Raises ArgumentError if two flags name a lake."""
    lake, schema = options["lake"], options["catalog"]
    if lake and schema:
        raise ArgumentError(f"--lake={lake} and --catalog={schema} are two places for tables: give one of them")
    if schema:
        return catalog_lake(schema), BY_CATALOG
    if lake is None and scenario.lake is not None:
        return scenario.lake, f"{options['scenario']}: lake:"
    return lake or "lake", BY_FLAG


def runs_to_compare(names: Sequence[str]) -> tuple[str, ...]:
    """The two runs to compare; names of lakes become absolute paths. One name is compared with `latest`; without names
    `previous` is compared with `latest`. Raises ArgumentError for more than two names.
    """
    if len(names) > 2:
        raise ArgumentError(f"compare takes two runs, and not {len(names)}: {', '.join(names)}")
    named = [*names, *([PREVIOUS, LATEST] if not names else [LATEST] if len(names) == 1 else [])]
    return tuple(absolute_lake(name, "compare:") if names_lake(name) else name for name in named)


def gates_to_apply(options: Arguments) -> tuple[Gate, ...]:
    """The gates that the job `gate` applies, each once. Raises ArgumentError if --run is given without the gate
    `gold`, the only one that checks runs.
    """
    on = tuple(dict.fromkeys(options["on"] or ()))
    if options["job"] == GATE and options["run"] and "gold" not in on:
        raise ArgumentError("--run names the run that the gold gate checks: give `--on gold`, or --capture=ID instead")
    return on


def check_pruned(options: Arguments) -> None:
    """Raises ArgumentError unless exactly one of the flags PRUNED_BY says what `prune` is to remove."""
    flags = [f"--{name.replace('_', '-')}" for name in PRUNED_BY if options[name] is not None]
    if len(flags) != 1:
        given_flags = f"{' and '.join(flags)} are given" if flags else "none is given"
        raise ArgumentError(
            f"prune takes one of --older-than=AGE, --run=ID and --capture=ID, and {given_flags}; `runs` lists the ids"
        )


def file_retention(options: Arguments) -> timedelta:
    """How long files stay after no table needs them any more. stderr warns if a job may take longer than that."""
    retention: timedelta | None = options["retention"]
    if retention is not None and retention < RETENTION:
        sys.stderr.write(
            f"refetch: --retention below {RETENTION.days}d removes files under any job or notebook that has the lake "
            "open for longer; nobody else may be using it\n"
        )
    return RETENTION if retention is None else retention


def parse_spark_properties(texts: Iterable[str]) -> dict[str, str]:
    """Spark properties by key, from KEY=VALUE texts. If a key comes twice, the last one counts.

    Raises ArgumentError for any other text.
    """
    pairs = [text.partition("=") for text in texts]
    wrong = [key for key, equals, _ in pairs if not equals or not key.startswith("spark.")]
    if wrong:
        raise ArgumentError(f"--conf takes spark.KEY=VALUE, and not {', '.join(f'`{key}`' for key in wrong)}")
    return {key: value for key, _, value in pairs}
