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
"""How long files stay that no table needs any more: Delta's own default. Nobody is taken to read or write for longer.
"""


@dataclass(frozen=True)
class SessionWishes:
    """How the Spark session is to be.

    master: Spark master; None leaves it to spark-submit or a session that is there, else local[*].
    conf: Spark properties given on the command line, which override refetch's own.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Decoding:
    """What `ingest` has to know of captures beside the files.

    pseudonyms: what topics, clients and hosts are called in the lake; None for their own names.
    brokers: node id by server (address:port), where the captures do not show it.
    log_zone: the zone of times in request logs that name none.
    continues: the capture set that the files go on from, as named: its id or `latest`; None if they begin anew.
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

    older_than: the age from which on runs and capture sets go; None where one goes by its id.
    retention: how long files stay that no table needs any more.
    """

    older_than: timedelta | None = None
    retention: timedelta = RETENTION


@dataclass(frozen=True)
class Output:
    """What is printed, and which page is written.

    page: the file of the report; None for no report.
    keeps_pages: each run's page is kept in a file of its own as well; `page` is then that of the newest run.
    compared_with: the run that the page compares its own with, as named: an id or `previous`; None for no other runs.
    verbose: all answers and tables are printed.
    trend: `runs` prints what runs come to, night by night.
    as_json: what is printed is JSON.
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
    run_at: the clock of the run, aware, UTC.
    cluster: the file that describes a cluster; None for a job that works on captures.
    chooses: whether grids are to be chosen from the capture, because nobody says what to replay.
    from_capture: by key the settings that the capture itself shows, where nobody states them.
    gates: the rules that tables have to pass.
    capture: the id of the capture set to replay or to check; None for the one written last.
    cluster_id: the cluster to replay; None for the only one of the capture set, else that with most requests.
    strict: whether the job fails if a replay is refused, although others were made.
    run_id: the run to report on or to check; None for the newest.
    dry_run: `prune` and `migrate` print what they would do, and change nothing.
    compared: the two runs to compare, as named: ids, `previous`, `latest`, or lakes from the root.
    session, decoding, gate_job, removal, output: what only some parts of a job read, or some jobs.
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
