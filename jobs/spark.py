"""The Spark session: one that is there already, one for a plain spark-submit, or one started here, quietly."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from jobs.class_archive import WRITES_AN_ARCHIVE, archive_option, write_behind_others
from jobs.java import check_java
from jobs.paths import CONF, ROOT, python_path
from udfs import cache_dir
from udfs.errors import SetupError, SparkError

DELTA_JARS = ("delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")
"""The jars that a folder named by REFETCH_JARS has to hold."""

_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def spark_session(master: str | None, app: str, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session to work in.

    An active session (Databricks, a notebook) is taken as it is, with refetch's SQL properties set in it. Under a plain
    spark-submit the properties are added to those it was given. Otherwise Spark is started here, on `master` or
    local[*], with its output in spark_log(). `conf` goes before all of refetch's own properties.

    Raises SetupError where Java or Delta's jars are missing, SparkError where Spark does not start.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        set_sql_properties(active, conf)
        return active
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        session = _submitted_session(master, app, dict(conf or {}))
    else:
        session = _started_session(master or "local[*]", app, dict(conf or {}))
    _check_delta(session)
    return session


def set_sql_properties(session: SparkSession, conf: Mapping[str, str] | None = None) -> None:
    """Set refetch's SQL properties, and `conf` over them, in a session that somebody else has started."""
    for key, value in (properties(CONF / "spark-defaults.conf") | dict(conf or {})).items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)


def properties(path: Path) -> dict[str, str]:
    """The properties of a file in Spark's own form: `key value` lines, # for comments."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return {key: value for key, value in pairs}


def spark_log() -> Path:
    """Where the output of a Spark started by this process goes: a file in the user's own folder for temporary files."""
    folder = Path(tempfile.gettempdir()) / f"refetch-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"spark-{os.getpid()}.log"


def jar_properties(folder: str | None) -> dict[str, str]:
    """Properties that take Delta's jars from a folder instead of Maven Central; none where no folder is given.

    Raises SetupError that names the jars the folder lacks.
    """
    if not folder:
        return {}
    jars = [Path(folder).resolve() / name for name in DELTA_JARS]
    missing = [jar.name for jar in jars if not jar.is_file()]
    if missing:
        raise SetupError(
            f"REFETCH_JARS is {folder}, and there is no {' and no '.join(missing)} in it. Copy them there from Maven "
            "Central (io.delta:delta-spark_4.2_2.13:4.4.0, io.delta:delta-storage:4.4.0), or unset REFETCH_JARS."
        )
    listed = ",".join(jar.as_uri() for jar in jars)
    return {"spark.jars": listed, "spark.jars.packages": "", "spark.jars.excludes": ""}


def own_properties(master: str) -> dict[str, str]:
    """refetch's properties on this master: those of every Spark, and on local[...] those that suit one machine."""
    found = properties(CONF / "spark-defaults.conf")
    return found | properties(CONF / "spark-local.conf") if master.startswith("local") else found


def started_properties(master: str, conf: Mapping[str, str], jars: str | None) -> dict[str, str]:
    """Properties of a Spark started here: refetch's, the machine's, the jars', the caller's, each over those before."""
    own = own_properties(master)
    own["spark.executorEnv.PYTHONPATH"] = python_path()
    own |= jar_properties(jars)
    own |= conf
    quiet = f"-Dlog4j2.configurationFile={(CONF / 'log4j2.properties').as_uri()}"
    own[_JAVA_OPTIONS] = f"{quiet} {own.get(_JAVA_OPTIONS, '')}".strip()
    return {key: value for key, value in own.items() if value}


def _started_session(master: str, app: str, conf: dict[str, str]) -> SparkSession:
    java, home = check_java(), Path(pyspark.__file__).parent
    # A SPARK_HOME of another version would start jars that do not fit this pyspark.
    os.environ["SPARK_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark_conf = SparkConf(loadDefaults=False).setMaster(master).setAppName(app)
    given = started_properties(master, conf, os.environ.get("REFETCH_JARS"))
    archive = archive_option(cache_dir(), home, java, given[_JAVA_OPTIONS])
    given[_JAVA_OPTIONS] = f"{archive} {given[_JAVA_OPTIONS]}"
    spark_conf.setAll(list(given.items()))
    log = spark_log()
    try:
        with log.open("ab") as output:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
                spark_conf, popen_kwargs={"stdout": output, "stderr": output}
            )
        context = SparkContext(conf=spark_conf, gateway=gateway)
    except (PySparkRuntimeError, Py4JError) as fault:
        raise _not_started(log) from fault
    if WRITES_AN_ARCHIVE in archive:
        atexit.register(write_behind_others, gateway.proc.pid)
    return SparkSession(context)


def _submitted_session(master: str | None, app: str, conf: dict[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Without a gateway SparkConf() is empty, and what spark-submit was given would be overruled.
    SparkContext._ensure_initialized()
    submitted = SparkConf()
    builder = SparkSession.builder.appName(app)
    on = master or submitted.get("spark.master", "") or ""
    own = own_properties(on)
    if on.startswith("local"):
        # Elsewhere the packages come by --py-files, and the executors' path is the cluster's own business.
        own["spark.executorEnv.PYTHONPATH"] = str(ROOT)
    for key, value in own.items():
        if not submitted.contains(key):
            builder = builder.config(key, value)
    for key, value in conf.items():
        builder = builder.config(key, value)
    return (builder.master(master) if master else builder).getOrCreate()


def _check_delta(session: SparkSession) -> None:
    jvm = session.sparkContext._jvm
    if jvm is not None and not jvm.org.apache.spark.util.Utils.classIsLoadable(_DELTA_EXTENSION):
        raise SetupError(
            "Delta's jars are not on Spark's class path. With a plain spark-submit give it "
            "--properties-file conf/spark-defaults.conf, or --jars with the two jars."
        )


def _not_started(log: Path) -> SetupError | SparkError:
    told = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if "UNRESOLVED DEPENDENCIES" in told or "unresolved dependency" in told:
        return SetupError(
            "Delta's two jars could not be downloaded from Maven Central, and no earlier run has left them in the Ivy "
            "cache. Check the network or proxy (DEFAULT_ARTIFACT_REPOSITORY names a mirror), or put "
            f"{' and '.join(DELTA_JARS)} in a folder and set REFETCH_JARS to it. Spark's log: {log}"
        )
    lines = [line for line in told.splitlines() if "Exception" in line or "Error" in line]
    return SparkError(f"Spark did not start: {lines[0].strip() if lines else 'it gave no reason'}. Spark's log: {log}")
