"""Which clients are Kafka's own, the Java client: by their name (KIP-511), else by what their requests show."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F

from schemas.tables.silver import EXCHANGES

IS_NAMELESS = "is_nameless"
IS_JAVA = "is_java"
JAVA = "apache-kafka-java"
"""client_software_name of Kafka's own client."""
NAMES_ITSELF_FROM = {"API_VERSIONS": 3, "PRODUCE": 8}
"""Versions that came with Kafka 2.4, whose client names itself in the first (KIP-511)."""


def is_nameless() -> Column:
    """Of a connection's exchanges: whether it is of another client than Kafka's own, one that asks for the versions of
    APIs without its name, but produces as only releases do that name themselves.
    """
    x = EXCHANGES
    asks, produces = (F.max(F.when(F.col(x.api_name) == api, F.col(x.api_version))) for api in NAMES_ITSELF_FROM)
    names, since = NAMES_ITSELF_FROM.values()
    return F.coalesce((asks < names) & (produces >= since), F.lit(False))


def is_java(name: Column, nameless: Column) -> Column:
    """Whether a client may be Kafka's own. name: by which it calls its software; nameless: as `is_nameless`."""
    return F.coalesce(name == JAVA, ~nameless, F.lit(True))


def nameless_clients(exchanges: DataFrame) -> DataFrame:
    """A row a connection that produces or asks for the versions of APIs, with IS_NAMELESS."""
    return _telling(exchanges).agg(is_nameless().alias(IS_NAMELESS))


def java_clients(exchanges: DataFrame) -> DataFrame:
    """A row a connection that produces or asks for the versions of APIs, with IS_JAVA."""
    name = F.max(EXCHANGES.client_software_name)
    return _telling(exchanges).agg(is_java(name, is_nameless()).alias(IS_JAVA))


def _telling(exchanges: DataFrame) -> GroupedData:
    x = EXCHANGES
    return exchanges.where(F.col(x.api_name).isin(*NAMES_ITSELF_FROM)).groupBy(x.connection_id)
