"""What one invocation works on: everything a job is given, resolved and checked before Spark starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from jobs.flags import PIPELINE
from jobs.gates.rule_files import default_gates
from jobs.gates.rules import Gate, Gates
from jobs.scenarios.scenario import Scenario
from jobs.scenarios.settings import ON_REQUEST, Value, algorithms
from schemas.tables.algorithms import CONSUMER_MEMORY
from udfs.capture.request_log_head import UTC
from udfs.facts.pseudonyms import Pseudonyms
from udfs.facts.record_sampling import RecordSampling
from udfs.replay.consumer_memory.settings import QUEUE_KEYS

RETENTION = timedelta(days=7)
"""As long as Delta's own default: nobody is taken to read or write a table for longer than that."""


@dataclass(frozen=True)
class Run:
    """One invocation of a job.

    captures: the files to ingest, sorted, as absolute paths and as URIs; empty for a job that reads the lake.
    lake: the lake's folder, absolute, or a URI.
    run_at: the clock of the run, aware, UTC.
    master: Spark master; None leaves it to spark-submit or a session that is there, else local[*].
    pseudonyms: what topics, clients and hosts are called in the lake; None for their own names.
    spark_conf: Spark properties given on the command line, which override refetch's own.
    brokers: node id by server (address:port), where the captures do not tell it.
    log_zone: the zone of times in request logs that name none.
    cluster: the file that describes a cluster; None where captures do.
    chooses: nobody says what to replay, and grids are to be chosen from the capture.
    from_capture: by key the settings that the capture itself shows, where nobody states them.
    gates: the rules that tables have to pass.
    on: the gates that the job `gate` applies.
    data_docs: the folder where the job `gate` puts Data Docs, absolute; None for the one beside the lake's tables.
    junit: the file of JUnit's XML that `gate` writes; None for none.
    page: the file of the report to write; None for no report.
    capture: the id of the capture set to replay or to check; None for the one written last.
    cluster_id: the cluster to replay; None for the only one of the capture set, else that with most requests.
    verbose: all answers and tables are printed.
    strict: a replay that is refused fails the job even where others were made.
    run_id: the run to report on or to check; None for the newest.
    older_than: the age from which on `prune` removes runs and capture sets; None where it removes one by its id.
    dry_run: `prune` prints what it would remove, and changes nothing.
    retention: how long files stay that no table needs any more.
    compared: the two runs to compare, as named: ids, `previous`, `latest`, or lakes from the root.
    compared_with: the run that the page compares its own with, as named: an id or `previous`; None for no other runs.
    trend: `runs` prints what runs come to, night by night.
    as_json: what is printed is JSON.
    keeps_pages: each run's page is kept in a file of its own as well; `page` is then that of the newest run.
    job: its name on the command line.
    """

    scenario: Scenario
    captures: tuple[Path | str, ...]
    lake: str
    run_at: datetime
    master: str | None = None
    pseudonyms: Pseudonyms | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    brokers: Mapping[str, str] = field(default_factory=dict)
    log_zone: str = UTC
    cluster: str | None = None
    chooses: bool = False
    from_capture: Mapping[str, Value] = field(default_factory=dict)
    gates: Gates = field(default_factory=default_gates)
    on: tuple[Gate, ...] = ()
    data_docs: str | None = None
    junit: Path | None = None
    page: Path | None = None
    capture: str | None = None
    cluster_id: str | None = None
    strict: bool = False
    verbose: bool = False
    run_id: str | None = None
    older_than: timedelta | None = None
    dry_run: bool = False
    retention: timedelta = RETENTION
    compared: tuple[str, ...] = ()
    compared_with: str | None = None
    trend: bool = False
    as_json: bool = False
    keeps_pages: bool = False
    job: str = PIPELINE

    @property
    def in_force(self) -> Mapping[str, Value]:
        """The settings in force at capture time: stated, else shown by the capture, else Kafka's default."""
        return {**self.from_capture, **self.scenario.captured}

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The replays that the run may make, by name."""
        return algorithms() if self.chooses else self.scenario.algorithms

    @property
    def replays_queues(self) -> bool:
        """Whether lanes differ in the queue of librdkafka consumers, for which sizes of uncompressed messages count."""
        return not {*QUEUE_KEYS}.isdisjoint(self.scenario.replay.get(CONSUMER_MEMORY, {}))

    @property
    def records(self) -> RecordSampling | None:
        """How ingest is to read the records of batches; None where no replay of the scenario needs that."""
        if not ON_REQUEST & set(self.algorithms) and not self.replays_queues:
            return None
        return RecordSampling(every=1) if self.scenario.captured.get("recompress") == "all" else RecordSampling()
