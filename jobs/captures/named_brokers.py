"""Whether a capture set shows the brokers for which settings are stated."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.captures.clusters import rows_of_cluster
from jobs.run import Run
from jobs.scenarios.settings import setting_of
from schemas.tables.silver import CONNECTIONS
from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.values import BROKER
from udfs.errors import ArgumentError


def check_named_brokers(spark: SparkSession, run: Run, capture_id: str) -> None:
    """Raises ArgumentError if a setting is stated for a broker that the capture set does not show: neither a connection
    to it nor a Metadata response that names it.
    """
    stated = {key: str(setting_of(key).one) for key in run.scenario.stated if setting_of(key).is_of_one_broker}
    if not stated:
        return
    c, m = CONNECTIONS, CLUSTER_METADATA
    connections, metadata = (rows_of_cluster(spark, run.lake, of, capture_id, run.cluster_id) for of in (c, m))
    of_metadata = metadata.where(F.col(m.entry) == BROKER).select(F.col(m.node_id).cast("string"))
    known = names_in(connections.select(c.broker)) | names_in(of_metadata)
    if fault := unknown_brokers_text(stated.items(), known):
        raise ArgumentError(fault)


def names_in(brokers: DataFrame) -> set[str]:
    """The names in the only column of a table."""
    return {name for (name,) in brokers.distinct().collect() if name}


def unknown_brokers_text(stated: Iterable[tuple[str, str]], known: set[str]) -> str:
    """Which settings are stated for brokers that are not known, and which brokers are; empty if there are none.

    stated: keys of settings, each with the broker that it is for, such as `broker.2`. known: the names of brokers.
    """
    unknown = [key for key, of in stated if of.removeprefix("broker.") not in known]
    if not unknown:
        return ""
    nodes = sorted((name for name in known if name.isdecimal()), key=int)
    others = sorted(known - {*nodes})
    shown = f"the capture shows the brokers {', '.join([*nodes, *others])}" if known else "the capture shows no broker"
    named = "; --brokers=FILE says which node id a server has" if others else ""
    return f"--captured: {', '.join(unknown)}: {shown}{named}"
