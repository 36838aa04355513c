"""Spark's properties: which ones refetch sets for which machines and captures, and which override which."""

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
"""Bytes of captures. Below the first the properties of SMALL apply, below the second those of QUICK_JAVA; the third is
used instead of the second if the captures are also replayed."""
SMALL_TABLES, QUICK_JAVA_TABLES, QUICK_REPLAY_TABLES = 4 << 20, 256 << 20, 128 << 20
"""The same limits for bytes of a lake's tables, if no capture is read. The tables of 1 GB of small frames take 54 MB.
"""

DELTA_JARS = ("delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")
"""The jars that the folder in REFETCH_JARS must contain."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
WORKERS_PATH = "spark.executorEnv.PYTHONPATH"
PACKAGES = "spark.jars.packages"
LISTS = ("spark.jars", PACKAGES, "spark.jars.excludes")
"""Lists to which the caller can add, but which the caller cannot replace: nothing works without Delta's entries."""

IN_ANY_SESSION = (
    "spark.sql.session.timeZone",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled",
)
"""The properties on which results depend. They are also set in a session that somebody else has started."""

_TASKS_OF_A_CORE = 2
_ON_ONE_MACHINE = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?")


class Workload(NamedTuple):
    """The work for which a new session is set up.

    captured_bytes: bytes of the captures that are read; 0 if none are. is_replayed: the captures, or what the lake has,
    are replayed, which takes several times as long as reading. stored_bytes: bytes of a capture set or run in the lake;
    0 if that is not known.
    """

    captured_bytes: int = 0
    is_replayed: bool = False
    stored_bytes: int = 0

    @property
    def is_small(self) -> bool:
        """Whether there is so little work that generating code would take Spark longer than the work without it."""
        return self._is_below(SMALL_BYTES, SMALL_TABLES)

    @property
    def is_quick(self) -> bool:
        """Whether the work ends before Java's second compiler would save time."""
        if self.is_replayed:
            return self._is_below(QUICK_REPLAY_BYTES, QUICK_REPLAY_TABLES)
        return self._is_below(QUICK_JAVA_BYTES, QUICK_JAVA_TABLES)

    def _is_below(self, captured: int, stored: int) -> bool:
        """Whether less is read than these bytes: of captures if any are read, else of tables. False if that is not
        known.
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
    """Whether this master runs tasks in the driver's own process; `local-cluster[...]` starts separate executors.

    >>> is_one_machine("local[2]"), is_one_machine("local-cluster[2,1,1024]")
    (True, False)
    """
    return _ON_ONE_MACHINE.fullmatch(master) is not None


def own_properties(master: str, work: Workload = UNKNOWN_WORKLOAD) -> dict[str, str]:
    """refetch's properties on this master for this work; each file overrides the earlier ones."""
    merged = read_properties(CONF / EVERYWHERE)
    if is_one_machine(master):
        merged |= read_properties(CONF / ONE_MACHINE)
        # Spark's default of 200 is for clusters. Here many more tasks than can run at once only cost time.
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
    """Properties with which Delta's jars come from a folder instead of Maven Central; none if no folder is given.

    Raises SetupError, which names the jars that the folder lacks.
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
    """Properties of a Spark that is started here: refetch's, the jars', the caller's. Each overrides the earlier ones,
    but LISTS are joined.

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
