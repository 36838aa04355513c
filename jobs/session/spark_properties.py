"""Spark's properties: what refetch sets, on what machines and for what captures, and what overrides what."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from jobs.paths import CONF, own_text, python_path
from udfs.errors import SetupError

EVERYWHERE, ONE_MACHINE = "spark-defaults.conf", "spark-local.conf"
SMALL, QUICK_JAVA = "spark-small.conf", "spark-quick-java.conf"
"""Files of properties in conf, with the reason for each."""
SMALL_BYTES, QUICK_JAVA_BYTES, QUICK_REPLAY_BYTES = 64 << 20, 4 << 30, 2 << 30
"""Captures below these sizes have the properties of SMALL and QUICK_JAVA; the last where they are replayed, too."""
SMALL_TABLES, QUICK_JAVA_TABLES, QUICK_REPLAY_TABLES = 4 << 20, 256 << 20, 128 << 20
"""The same sizes for a lake's tables, if no capture is read. The tables of 1 GB of small frames take 54 MB."""

DELTA_JARS = ("delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")
"""The jars that a folder named by REFETCH_JARS has to hold."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
WORKERS_PATH = "spark.executorEnv.PYTHONPATH"
PACKAGES = "spark.jars.packages"
LISTS = ("spark.jars", PACKAGES, "spark.jars.excludes")
"""Lists that the caller adds to and cannot replace: nothing works without Delta's entries in them."""

IN_ANY_SESSION = (
    "spark.sql.session.timeZone",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled",
)
"""The properties on which results depend, which are set in a session that somebody else has started, too."""

_TASKS_OF_A_CORE = 2
_ON_ONE_MACHINE = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?")


class Workload(NamedTuple):
    """What a new session has to suit.

    captured_bytes: of the captures that are read; 0 where none are. is_replayed: they, or what the lake has, are
    replayed, which takes several times as long. stored_bytes: of what the lake has of a capture set or a run; 0 where
    that is not known.
    """

    captured_bytes: int = 0
    is_replayed: bool = False
    stored_bytes: int = 0

    @property
    def is_small(self) -> bool:
        """Whether the work is so little that Spark would take longer to generate code than the work takes without."""
        return self._is_below(SMALL_BYTES, SMALL_TABLES)

    @property
    def is_quick(self) -> bool:
        """Whether the work ends before Java's second compiler would have paid."""
        if self.is_replayed:
            return self._is_below(QUICK_REPLAY_BYTES, QUICK_REPLAY_TABLES)
        return self._is_below(QUICK_JAVA_BYTES, QUICK_JAVA_TABLES)

    def _is_below(self, captured: int, stored: int) -> bool:
        """Whether there is less to read than so many bytes: of captures if any are read, else of tables. False if
        unknown.
        """
        return 0 < self.captured_bytes < captured if self.captured_bytes else 0 < self.stored_bytes < stored


UNKNOWN_WORKLOAD = Workload()


def read_properties(path: Path) -> dict[str, str]:
    """The properties of a file in Spark's own form: `key value` lines, # for comments. Raises SetupError if it
    cannot be read.
    """
    lines = (line.strip() for line in own_text(path).splitlines())
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return {key: value for key, value in pairs}


def is_one_machine(master: str) -> bool:
    """Whether this master is the driver's own process; `local-cluster[...]` starts executors of their own.

    >>> is_one_machine("local[2]"), is_one_machine("local-cluster[2,1,1024]")
    (True, False)
    """
    return _ON_ONE_MACHINE.fullmatch(master) is not None


def own_properties(master: str, work: Workload = UNKNOWN_WORKLOAD) -> dict[str, str]:
    """refetch's properties on this master for this work, each file's over those before."""
    merged = read_properties(CONF / EVERYWHERE)
    if is_one_machine(master):
        merged |= read_properties(CONF / ONE_MACHINE)
        # Spark's two hundred are for clusters: many more tasks than can run at once are a cost.
        merged[SHUFFLE_PARTITIONS] = str(_TASKS_OF_A_CORE * _cores_of_master(master))
    if work.is_quick:
        merged |= read_properties(CONF / QUICK_JAVA)
    if work.is_small:
        merged |= read_properties(CONF / SMALL)
    return merged


def _cores_of_master(master: str) -> int:
    match = _ON_ONE_MACHINE.fullmatch(master)
    cores = match[2] if match else None
    if cores == "*":
        return os.cpu_count() or 1
    return int(cores) if cores else 1


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
    return {"spark.jars": listed, PACKAGES: "", "spark.jars.excludes": ""}


def properties_to_start(
    master: str, conf: Mapping[str, str], jars: str | None, work: Workload = UNKNOWN_WORKLOAD
) -> dict[str, str]:
    """Properties of a Spark started here: refetch's, the jars', the caller's, each over those before; LISTS grow.

    Raises what `jar_properties` raises.
    """
    own = own_properties(master, work)
    own[WORKERS_PATH] = python_path()
    own |= jar_properties(jars)
    joined = {key: _join_lists(own.get(key, ""), conf[key]) for key in LISTS if key in conf}
    own |= {**conf, **joined}
    quiet = f"-Dlog4j2.configurationFile={(CONF / 'log4j2.properties').as_uri()}"
    own[JAVA_OPTIONS] = f"{quiet} {own.get(JAVA_OPTIONS, '')}".strip()
    return {key: value for key, value in own.items() if value}


def _join_lists(*lists: str) -> str:
    """
    >>> _join_lists("a,b", "b, c", "")
    'a,b,c'
    """
    return ",".join(dict.fromkeys(part.strip() for parts in lists for part in parts.split(",") if part.strip()))
