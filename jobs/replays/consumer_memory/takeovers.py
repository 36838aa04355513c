"""Partitions that pass from one member of a consumer group to another, as the fetches of both show.

No two members of a group have a partition at the same time: what one fetched and another fetches next was taken away
from the first, or given up by it. Which group a process is of, its requests to the coordinator tell. One that names
several groups has several consumers, of which the fetches do not tell which is which; one that names none assigns its
partitions itself. Of both nothing is known.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS
from schemas.tables.values import ANSWERED, CONSUMER
from schemas.wire.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT_REQUEST
from schemas.wire.join_group import JOIN_GROUP_REQUEST
from schemas.wire.sync_group import SYNC_GROUP_REQUEST

JOIN_GROUP = JOIN_GROUP_REQUEST.api_key
MEMBERSHIP_APIS = (JOIN_GROUP, SYNC_GROUP_REQUEST.api_key, CONSUMER_GROUP_HEARTBEAT_REQUEST.api_key)
"""Those of consumer groups; a ShareFetch is of a share group, whose members share partitions."""


class Takeover(NamedTuple):
    """Columns of `takeovers` beside those of FETCH_PARTITIONS."""

    connection_id: str = "taken_over_connection_id"
    exchange_no: str = "taken_over_exchange_no"
    time: str = "taken_over_time"
    joins: str = "joins_time"
    joined: str = "joined_time"


BY = Takeover()
_PROCESS = ("process_client_id", "process_address")
_GROUP, _BY = "process_group", "taken_over_by"


def process(client_id: str, address: str) -> list[Column]:
    """A client's key."""
    return [F.coalesce(client_id, F.lit("")).alias(_PROCESS[0]), F.col(address).alias(_PROCESS[1])]


def members(exchanges: DataFrame) -> DataFrame:
    """The processes of groups that have several, each with its group."""
    x = EXCHANGES
    told = exchanges.where(F.col(x.api_key).isin(*MEMBERSHIP_APIS) & F.col(x.group_id).isNotNull())
    by_process = told.groupBy(*process(x.client_id, x.client_address)).agg(
        F.min(x.group_id).alias(_GROUP), (F.min(x.group_id) == F.max(x.group_id)).alias("of_one")
    )
    of_one = by_process.where("of_one").drop("of_one")
    several = of_one.groupBy(_GROUP).agg(F.count(F.lit(1)).alias("processes")).where("processes > 1").select(_GROUP)
    return of_one.join(several, _GROUP)


def takeovers(exchanges: DataFrame, fetches: DataFrame) -> DataFrame:
    """The last fetch of a partition before another member of the group fetches it: a row each time.

    Columns client_id, client_address, broker, topic, partition, connection_id and request_time of FETCH_PARTITIONS, and
    those of BY: the other's fetch, when that was asked for, and of the last JoinGroup that the other had an answer to
    by then when it was asked for and answered, null for none.
    """
    f = FETCH_PARTITIONS
    wanted = fetches.where(
        (F.col(f.reader) == CONSUMER) & F.col(f.request_time).isNotNull() & F.col(f.read_position).isNotNull()
    )
    columns = (
        f.client_id, f.client_address, f.broker, f.topic, f.partition, f.connection_id, f.exchange_no, f.request_time,
    )  # fmt: skip
    of_members = wanted.select(*columns, *process(f.client_id, f.client_address)).join(
        F.broadcast(members(exchanges)), list(_PROCESS)
    )
    order = (f.request_time, f.connection_id, f.exchange_no)
    next_of_group = Window.partitionBy(_GROUP, f.topic, f.partition).orderBy(*order)
    following = {
        BY.connection_id: F.lead(f.connection_id),
        BY.exchange_no: F.lead(f.exchange_no),
        BY.time: F.lead(f.request_time),
        _BY: F.lead(F.struct(*_PROCESS)),
    }
    found = of_members.withColumns({name: column.over(next_of_group) for name, column in following.items()})
    by_another = found.where(F.col(_BY) != F.struct(*_PROCESS)).drop(_GROUP, f.exchange_no, *_PROCESS)
    return with_joins(by_another, exchanges).drop(_BY)


def with_joins(found: DataFrame, exchanges: DataFrame) -> DataFrame:
    """The takeovers with the last JoinGroup of who takes over."""
    x, at = EXCHANGES, "at"
    answered = exchanges.where((F.col(x.api_key) == JOIN_GROUP) & (F.col(x.status) == ANSWERED))
    joins = answered.select(
        F.struct(*process(x.client_id, x.client_address)).alias(_BY),
        F.col(x.response_time).alias(at),
        F.col(x.request_time).alias(BY.joins),
        F.col(x.response_time).alias(BY.joined),
    ).where(F.col(BY.joins).isNotNull())
    # Of those at one time a join comes first: it has a column that takeovers have not.
    until_then = Window.partitionBy(_BY).orderBy(at, F.col(BY.time).asc_nulls_first(), BY.joins)
    last = {name: F.last(name, ignorenulls=True).over(until_then) for name in (BY.joins, BY.joined)}
    events = found.withColumn(at, F.col(BY.time)).unionByName(joins, allowMissingColumns=True)
    return events.withColumns(last).where(F.col(BY.time).isNotNull()).drop(at)
