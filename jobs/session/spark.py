"""The Spark session: an existing one, one for a plain spark-submit, or one that is started here, with few messages."""

from __future__ import annotations

import atexit
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path

import pyspark
from py4j.java_gateway import JVMView
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from jobs.paths import CONF, ROOT, SHOWN_CONF
from jobs.session.class_archive import WRITES_AN_ARCHIVE, archive_option, write_behind_others
from jobs.session.connect_server import connected_session, is_server_named
from jobs.session.driver import driver_of
from jobs.session.gateway import keep_quiet_at_its_end, remember_classes, start_gateway
from jobs.session.java import check_java
from jobs.session.shipped_code import ship_code
from jobs.session.spark_properties import (
    DELTA_JARS,
    EVERYWHERE,
    IN_ANY_SESSION,
    JAVA_OPTIONS,
    LISTS,
    PACKAGES,
    UNKNOWN_WORKLOAD,
    WORKERS_PATH,
    Workload,
    is_one_machine,
    own_properties,
    properties_to_start,
    read_properties,
)
from udfs import cache_dir
from udfs.errors import SetupError, SparkError
from udfs.kernels.one_at_a_time import one_at_a_time

_LOGS_BY_SPARK = "org/apache/spark/log4j2-defaults.properties"
"""Spark's logging if neither its class path nor an option of Java has a log4j2.properties: it logs lines for each task.
"""
_LOGS_BY_LOG4J = "DefaultConfiguration"
"""Log4j's configuration in such a Spark until it logs for the first time."""
_WARNINGS_ALONE = {"spark.log.level": "WARN"}
"""The level of conf/log4j2.properties."""
_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_NOT_FETCHED = ("UNRESOLVED DEPENDENCIES", "unresolved dependency", "FAILED DOWNLOADS")
"""Ivy's words for packages that it cannot find, or cannot fetch."""
_NOT_LET = "CONFIG_NOT_AVAILABLE"
"""Databricks' error for properties that nobody may set on its serverless compute."""
_NO_JAVA_MACHINE = "Could not create the Java Virtual Machine"
_THROWN = re.compile(r'(?:Exception in thread "[^"]*" )?(?:[a-z]\w*\.)+([A-Z][\w$]*(?:Exception|Error)\b.*)')
_TO_SUBMIT = (
    f"Give spark-submit --properties-file {SHOWN_CONF}/{EVERYWHERE} (and --load-spark-defaults, if the cluster has "
    "defaults of its own). --packages replaces the packages named there: name io.delta:delta-spark_4.2_2.13:4.4.0 "
    "among yours. Or give the two jars with --jars."
)


def spark_session(
    master: str | None, app: str, conf: Mapping[str, str] | None = None, work: Workload = UNKNOWN_WORKLOAD
) -> SparkSession:
    """The session to work in.

    An active session (Databricks, a notebook) is used, or the Spark Connect server that SPARK_REMOTE names; only the
    properties on which results depend are set there. Under a plain spark-submit, refetch's properties are added, unless
    spark-submit was given other values. Otherwise Spark is started here, on `master` or local[*], with its output in
    spark_log(). `conf` overrides all other properties. work: the work for which a new session is set up.

    Raises SetupError if Java or Delta's jars are missing, SparkError if Spark does not start.
    """
    there = existing_session(master)
    if there is not None:
        set_sql_properties(there, conf)
        driver_of(there).take_over()
        return there
    own_conf = dict(conf or {})
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        session = _submitted_session(master, app, own_conf, work)
        _check_delta(session, _TO_SUBMIT)
    else:
        session = _start_session(master or "local[*]", app, own_conf, work)
        _check_delta(session, f"Does --conf leave them out ({', '.join(LISTS)})? Spark's log: {spark_log()}")
    return session


def is_session_new() -> bool:
    """Whether `spark_session` would start a Spark, since there is no active session and no Spark Connect server."""
    return SparkSession.getActiveSession() is None and not is_server_named()


def existing_session(master: str | None) -> SparkSession | None:
    """A session of a Spark that somebody else has started: the active session, else one of the server that SPARK_REMOTE
    names; None if there is neither. Raises SetupError and SparkError if the server cannot be used.
    """
    active = SparkSession.getActiveSession()
    return connected_session(master) if active is None and is_server_named() else active


def set_sql_properties(session: SparkSession, conf: Mapping[str, str] | None = None) -> None:
    """In a session that somebody else has started, set the properties on which results depend, and those of `conf` that
    can be set.
    """
    everywhere = read_properties(CONF / EVERYWHERE)
    for key, value in ({key: everywhere[key] for key in IN_ANY_SESSION} | dict(conf or {})).items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            try:
                session.conf.set(key, value)
            except PySparkException as fault:
                if key in dict(conf or {}) or _NOT_LET not in str(fault):
                    raise


def spark_log() -> Path:
    """The file with the output of a Spark that this process starts, in the user's own folder for temporary files."""
    folder = Path(tempfile.gettempdir()) / f"refetch-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"spark-{os.getpid()}.log"


def _start_session(master: str, app: str, conf: dict[str, str], work: Workload) -> SparkSession:
    java, home = check_java(), Path(pyspark.__file__).parent
    # A SPARK_HOME of another version would start jars that do not fit this pyspark.
    os.environ["SPARK_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark_conf = SparkConf(loadDefaults=False).setMaster(master).setAppName(app)
    properties = properties_to_start(master, conf, os.environ.get("REFETCH_JARS"), work)
    archive = archive_option(cache_dir(), home, java, properties[JAVA_OPTIONS])
    properties[JAVA_OPTIONS] = f"{archive} {properties[JAVA_OPTIONS]}"
    spark_conf.setAll(list(properties.items()))
    log = spark_log()
    try:
        with _fetch_alone() if PACKAGES in properties else nullcontext():
            gateway = start_gateway(spark_conf, home, log)
        context = SparkContext(conf=spark_conf, gateway=gateway)
    except (PySparkRuntimeError, Py4JError) as fault:
        raise _start_error(log) from fault
    keep_quiet_at_its_end(context._accumulatorServer)
    # pyspark deletes it if Spark is stopped; Java deletes it however it ends.
    updates = context._accumulatorServer.server_address
    if isinstance(updates, str) and context._jvm is not None:
        context._jvm.java.io.File(updates).deleteOnExit()
    if WRITES_AN_ARCHIVE in archive:
        atexit.register(write_behind_others, gateway.proc.pid)
    return SparkSession(context)


@contextmanager
def _fetch_alone() -> Iterator[None]:
    """While the block runs, no other process of refetch fetches packages: Ivy would fetch for both into one file, and
    fail for one of them. If the lock file cannot be made, the block runs anyway.
    """
    with ExitStack() as until_fetched:
        with suppress(OSError):
            until_fetched.enter_context(one_at_a_time(cache_dir() / "packages.lock"))
        yield


def _submitted_session(master: str | None, app: str, conf: dict[str, str], work: Workload) -> SparkSession:
    # Without a gateway SparkConf() is empty, and refetch's properties would override those given to spark-submit.
    SparkContext._ensure_initialized()
    submitted = SparkConf()
    builder = SparkSession.builder.appName(app)
    on = master or submitted.get("spark.master", "") or ""
    own = own_properties(on, work)
    if SparkContext._jvm is not None:
        remember_classes(SparkContext._jvm)
        own |= quiet_properties(SparkContext._jvm)
    if is_one_machine(on):
        # On other masters the packages come by --py-files, and the cluster decides on the executors' path and Python.
        own[WORKERS_PATH] = str(ROOT)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in ({key: own[key] for key in own if not submitted.contains(key)} | conf).items():
        builder = builder.config(key, value)
    session = (builder.master(master) if master else builder).getOrCreate()
    keep_quiet_at_its_end(session.sparkContext._accumulatorServer)
    ship_code(session)
    return session


def _check_delta(session: SparkSession, advice: str) -> None:
    jvm = session.sparkContext._jvm
    if jvm is not None and not jvm.org.apache.spark.util.Utils.classIsLoadable(_DELTA_EXTENSION):
        raise SetupError(f"Delta's jars are not on Spark's class path. {advice}")


def _start_error(log: Path) -> SetupError | SparkError:
    output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if any(sign in output for sign in _NOT_FETCHED):
        return SetupError(
            "Delta's two jars could not be downloaded from Maven Central, and no earlier run has left them in the Ivy "
            "cache. Check the network or proxy (DEFAULT_ARTIFACT_REPOSITORY names a mirror), or put "
            f"{' and '.join(DELTA_JARS)} in a folder and set REFETCH_JARS to it. Spark's log: {log}"
        )
    return SparkError(f"Spark did not start: {why_not_started(output).rstrip('.')}. Spark's log: {log}")


def why_not_started(output: str) -> str:
    """The line of Spark's output that says why it did not start: Java's error about its options, else the first
    exception.
    """
    lines = output.splitlines()
    before = [line for line, then in pairwise(lines) if _NO_JAVA_MACHINE in then]
    thrown = [match[1] for line in lines if (match := _THROWN.match(line))]
    errors = [line.strip() for line in lines if "Error" in line]
    return next(iter([*before, *thrown, *errors]), "it gave no reason")


def quiet_properties(jvm: JVMView) -> Mapping[str, str]:
    """The property with which a new Spark logs only warnings; empty if somebody has already set what Java logs."""
    configuration = jvm.org.apache.logging.log4j.LogManager.getContext(False).getConfiguration()
    location = configuration.getConfigurationSource().getLocation() or ""
    is_default = location.endswith(_LOGS_BY_SPARK) or configuration.getClass().getSimpleName() == _LOGS_BY_LOG4J
    return _WARNINGS_ALONE if is_default else {}
