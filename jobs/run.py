"""What one invocation works on: everything that a job is given, resolved and checked before Spark starts."""

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
"""How long files stay after no table needs them any more: Delta's own default. We assume that no job reads or writes
for longer."""


@dataclass(frozen=True)
class SessionWishes:
    """What is asked of the Spark session.

    master: Spark master; None for that of spark-submit or of an existing session, else local[*].
    conf: Spark properties given on the command line; they override refetch's own.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Decoding:
    """What `ingest` has to know about captures in addition to the files.

    pseudonyms: what topics, clients and hosts are called in the lake; None for their own names.
    brokers: node id by server (address:port), for servers whose id the captures do not show.
    log_zone: the time zone of request logs whose times name none.
    continues: the capture set that the files continue, as named: its id or `latest`; None if they continue none.
    """

    pseudonyms: Pseudonyms | None = None
    brokers: Mapping[str, str] = field(default_factory=dict)
    log_zone: str = UTC
    continues: str | None = None


@dataclass(frozen=True)
class GateJob:
    """What the job `gate` checks, and where it puts what it finds.

    on: the gates that it applies.
    data_docs: the folder of Data Docs, absolute; None for the one beside the lake's tables.
    junit: the file of JUnit's XML; None for none.
    """

    on: tuple[Gate, ...] = ()
    data_docs: str | None = None
    junit: Path | None = None


@dataclass(frozen=True)
class Removal:
    """What `prune` and `compact` remove.

    older_than: the age from which runs and capture sets are removed; None if an id says what is removed.
    retention: how long files stay after no table needs them any more.
    """

    older_than: timedelta | None = None
    retention: timedelta = RETENTION


@dataclass(frozen=True)
class Output:
    """What is printed, and which page is written.

    page: the file of the report; None for no report.
    keeps_pages: each run's page is also kept in a file of its own; `page` is then the page of the newest run.
    compared_with: the run that the page compares with its own, as named: an id or `previous`; None for no comparison.
    verbose: all answers and tables are printed.
    trend: `runs` prints the results of runs, night by night.
    as_json: the output is JSON.
    """

    page: Path | None = None
    keeps_pages: bool = False
    compared_with: str | None = None
    verbose: bool = False
    trend: bool = False
    as_json: bool = False


@dataclass(frozen=True)
class Run:
    """One invocation of a job.

    captures: the files to ingest, sorted, as absolute paths and as URIs; empty for a job that reads the lake.
    lake: the lake's folder, absolute, or a URI.
    run_at: when the run started, aware, UTC.
    cluster: the file that describes a cluster; None for a job that works on captures.
    chooses: whether grids are chosen from the capture, because nobody says what to replay.
    from_capture: the settings that the capture itself shows and nobody states, by key.
    gates: the rules that tables have to pass.
    capture: the id of the capture set to replay or to check; None for the one written last.
    cluster_id: the cluster to replay; None for the capture set's only cluster, or the one with most requests.
    strict: whether the job fails if one replay is refused, even if others were made.
    run_id: the run to report on or to check; None for the newest.
    dry_run: `prune` and `migrate` print what they would do, and change nothing.
    compared: the two runs to compare, as named: ids, `previous`, `latest`, or absolute paths of lakes.
    session, decoding, gate_job, removal, output: what only some jobs read, or only some parts of a job.
    job: its name on the command line.
    """

    scenario: Scenario
    captures: tuple[Path | str, ...]
    lake: str
    run_at: datetime
    cluster: str | None = None
    chooses: bool = False
    from_capture: Mapping[str, Value] = field(default_factory=dict)
    gates: Gates = field(default_factory=default_gates)
    capture: str | None = None
    cluster_id: str | None = None
    strict: bool = False
    run_id: str | None = None
    dry_run: bool = False
    compared: tuple[str, ...] = ()
    session: SessionWishes = field(default_factory=SessionWishes)
    decoding: Decoding = field(default_factory=Decoding)
    gate_job: GateJob = field(default_factory=GateJob)
    removal: Removal = field(default_factory=Removal)
    output: Output = field(default_factory=Output)
    job: str = PIPELINE

    @property
    def in_force(self) -> Mapping[str, Value]:
        """The settings in force at capture time: as stated, else as the capture shows, else Kafka's default."""
        return {**self.from_capture, **self.scenario.captured}

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The replays that the run may make, by name."""
        return algorithms() if self.chooses else self.scenario.algorithms

    @property
    def replays_queues(self) -> bool:
        """Whether lanes differ in settings of librdkafka consumers' queue, which counts uncompressed message sizes."""
        return not {*QUEUE_KEYS}.isdisjoint(self.scenario.replay.get(CONSUMER_MEMORY, {}))

    @property
    def records(self) -> RecordSampling | None:
        """How ingest reads the records of batches; None if no replay of the scenario needs that."""
        if not ON_REQUEST & set(self.algorithms) and not self.replays_queues:
            return None
        return RecordSampling(every=1) if self.scenario.captured.get("recompress") == "all" else RecordSampling()
