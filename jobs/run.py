"""What one invocation works on: everything a job is told, resolved and checked before Spark starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from jobs.flags import PIPELINE
from jobs.gates.rule_files import default_gates
from jobs.gates.rules import Gate, Gates
from jobs.scenarios.scenario import Scenario
from jobs.scenarios.settings import ON_REQUEST, Value
from udfs.capture.locations import NO_SECRETS, has_secret, is_uri, without_file_scheme, without_secret
from udfs.capture.request_log_head import UTC
from udfs.errors import ArgumentError
from udfs.facts.asked_records import Asked
from udfs.facts.pseudonyms import Pseudonyms

_HADOOP_CONFIGURED = {"HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_GATEWAY_PORT"}
"""Variables of a machine with Hadoop's configuration, and of a plain spark-submit, which may bring one."""


@dataclass(frozen=True)
class Run:
    """One invocation of a job.

    captures: the files to ingest, sorted, as absolute paths and as URIs; empty for a job that reads the lake.
    lake: the lake's folder, absolute, or a URI.
    run_at: the clock of the run, aware, UTC.
    master: Spark master; None leaves it to spark-submit or a session that is there, else local[*].
    pseudonyms: what topics, clients and hosts are called in the lake; None for their own names.
    spark_conf: Spark properties given on the command line, which override refetch's own.
    log_zone: the zone of times in request logs that name none.
    cluster: the file that describes a cluster; None where captures do.
    seen: settings that the capture itself tells, where nobody states them.
    gates: the rules that tables have to pass.
    on: the gates that the job `gate` applies.
    data_docs: the folder where that puts Data Docs, absolute; None beside the tables of the lake.
    page: the file of the report to write; None for no report.
    capture: the id of the capture set to replay or to check; None for the one written last.
    cluster_id: the cluster to replay; None for the only one of the capture set, else that with most requests.
    strict: a replay that is refused fails the job even where others were made.
    run_id: the run to report on or to check; None for the newest.
    job: its name on the command line.
    """

    scenario: Scenario
    captures: tuple[Path | str, ...]
    lake: str
    run_at: datetime
    master: str | None = None
    pseudonyms: Pseudonyms | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    log_zone: str = UTC
    cluster: str | None = None
    seen: Mapping[str, Value] = field(default_factory=dict)
    gates: Gates = field(default_factory=default_gates)
    on: tuple[Gate, ...] = ()
    data_docs: str | None = None
    page: Path | None = None
    capture: str | None = None
    cluster_id: str | None = None
    strict: bool = False
    run_id: str | None = None
    job: str = PIPELINE

    @property
    def in_force(self) -> Mapping[str, Value]:
        """The settings in force at capture time: stated, else told by the capture, else Kafka's default."""
        return {**self.seen, **self.scenario.captured}

    @property
    def records(self) -> Asked | None:
        """What ingest is to learn of records: nothing, unless a replay of the scenario needs it."""
        if not ON_REQUEST & set(self.scenario.algorithms):
            return None
        return Asked(every=1) if self.scenario.captured.get("recompress") == "all" else Asked()


def absolute_lake(lake: str) -> str:
    """The lake's folder from the root, or its URI as it is. Raises ArgumentError where a file is in the way, or the URI
    bears credentials.
    """
    if has_secret(lake):
        raise ArgumentError(f"--lake {without_secret(lake)}: {NO_SECRETS}")
    path = without_file_scheme(lake)
    if is_uri(path):
        return path
    folder = Path(path).resolve()
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"--lake {lake}: this is a file; name a folder, which is made where it is missing")
    return str(folder)


def page_path(out: str | None, lake: str) -> Path | None:
    """Where the report goes: as told, else into the lake, else nowhere, where that is no local folder.

    Raises ArgumentError where a folder is in the way, or a URI is told.
    """
    if out is None:
        return None if is_uri(lake) else Path(lake) / "report.html"
    path = without_file_scheme(out)
    if is_uri(path):
        raise ArgumentError(f"--out {out}: a page is written to a local file; copy it from there")
    if Path(path).is_dir():
        raise ArgumentError(f"--out {out}: this is a folder; name the file in it")
    return Path(path).resolve()


def check_lake_writable(told: str, lake: str) -> None:
    """Try a lake that is a local folder before anything is read for it. Raises ArgumentError where nothing can be
    written there. told: as the user names it.
    """
    # Hadoop's configuration may say that paths without a scheme are on another file system.
    if not is_uri(lake) and not _HADOOP_CONFIGURED & set(os.environ):
        _check_writable(Path(lake), f"--lake {told}", "name a folder that this user may write")


def check_page_writable(told: str | None, page: Path) -> None:
    """As `check_lake_writable`, for the file of a page."""
    if page.exists() and os.access(page, os.W_OK):
        return
    if told is None:
        _check_writable(page.parent, f"the page {page}", "name another place by --out=FILE")
    else:
        _check_writable(page.parent, f"--out {told}", "name a file in a folder that this user may write")


def _check_writable(folder: Path, what: str, to_do: str) -> None:
    """Make a folder for temporary files there, or in the nearest folder around it that is there, and remove it."""
    there = folder
    try:
        there = next(at for at in (folder, *folder.parents) if at.exists())
        with TemporaryDirectory(dir=there, prefix=".refetch-"):
            pass
    except OSError as fault:
        raise ArgumentError(f"{what}: nothing can be written there ({there}: {fault.strerror}); {to_do}") from fault


def docs_folder(told: str | None) -> str | None:
    """The folder of Data Docs that is told, from the root. Raises ArgumentError for a URI."""
    if told is None:
        return None
    folder = without_file_scheme(told)
    if is_uri(folder):
        raise ArgumentError(f"--data-docs {told}: pages are written to a local folder; copy them from there")
    return str(Path(folder).resolve())


def spark_properties(texts: Iterable[str]) -> dict[str, str]:
    """Spark properties from KEY=VALUE texts; of one key the last counts. Raises ArgumentError for any other text."""
    pairs = [text.partition("=") for text in texts]
    wrong = [key for key, equals, _ in pairs if not equals or not key.startswith("spark.")]
    if wrong:
        raise ArgumentError(f"--conf takes spark.KEY=VALUE, and not {', '.join(f'`{key}`' for key in wrong)}")
    return {key: value for key, _, value in pairs}
