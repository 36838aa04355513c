"""Views of an open lake in addition to its tables: what is queried most often, and lanes by their settings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.replays.capture_window import micros_since_1970
from jobs.scenarios.settings import Value, in_catalogue_order, setting_of
from jobs.terminal.lane_rows import settings_in_name
from schemas.tables.gold import FETCH_FAIRNESS
from schemas.tables.silver import EXCHANGES
from schemas.tables.table import Table
from schemas.tables.values import CONSUMER
from udfs.replay.fetch_max_bytes.rows import CLOSED_LOOP

RowsOfTable = Callable[[Table], DataFrame]
SHARES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
LANE_SETTINGS = "lane_settings"
_OF_LANES = "One row per lane of each replay, one column per setting: a number if it is one, null if it is as captured"


class View(NamedTuple):
    """A view: what a row of it is, and the function from the tables' rows to the view's rows."""

    doc: str
    rows: Callable[[RowsOfTable], DataFrame]


def latency_by_client(rows: RowsOfTable) -> DataFrame:
    """(client_id, api_name, requests, p50_ms, p95_ms, p99_ms, longest_ms) of answered requests, most requests first."""
    x = EXCHANGES
    took = (micros_since_1970(x.response_time) - micros_since_1970(x.request_time)) / 1000
    answered = rows(x).where(F.col(x.request_time).isNotNull() & F.col(x.response_time).isNotNull())
    shares = (F.percentile_approx("took", share).alias(name) for name, share in SHARES.items())
    sums = (F.count("*").alias("requests"), *shares, F.max("took").alias("longest_ms"))
    return answered.withColumn("took", took).groupBy(x.client_id, x.api_name).agg(*sums).orderBy(
        F.desc("requests"), x.client_id, x.api_name
    )  # fmt: skip


def starved_partitions(rows: RowsOfTable) -> DataFrame:
    """Rows of fetch_fairness: consumers' partitions that wait in a lane of the closed loop; longest wait first."""
    f = FETCH_FAIRNESS
    columns = (f.scenario, f.client_id, f.client_address, f.broker, f.topic, f.partition, f.longest_wait_ms,
               f.longest_wait_requests, f.share_of_available, f.share_of_bytes, f.catch_up_ms)  # fmt: skip
    of = rows(f).where((F.col(f.mode) == CLOSED_LOOP) & (F.col(f.reader) == CONSUMER) & (F.col(f.longest_wait_ms) > 0))
    return of.select(*columns).orderBy(F.desc(f.longest_wait_ms), *columns[:6])


VIEWS: Mapping[str, View] = {
    "latency_by_client": View(
        "One row per client and API: how long its requests took, from the last byte of the request to the last byte of "
        "the response. A fetch that waits for records takes up to fetch.max.wait.ms",
        latency_by_client,
    ),
    "starved_partitions": View(
        "One row per partition of a consumer that waits in a lane of the closed loop although it has records",
        starved_partitions,
    ),
}
"""The views by name. One more view, `lane_settings`, needs no rows of tables."""
DOCS: Mapping[str, str] = {name: view.doc for name, view in VIEWS.items()} | {LANE_SETTINGS: _OF_LANES}


def table_of_lanes(lanes: Mapping[str, Sequence[str]]) -> pa.Table:
    """The lanes of replays: (algorithm, scenario, place, and a column for each setting). lanes: names, by algorithm.

    A column is bigint where all its values are whole numbers, double where all are numbers, else string. Its name is
    Kafka's name of the setting, such as `fetch_max_bytes`; the setting's whole key where two settings share that name.
    """
    rows = [
        ({"algorithm": algorithm, "scenario": lane, "place": place}, settings_in_name(lane))
        for algorithm, of in lanes.items()
        for place, lane in enumerate(of)
    ]
    keys = in_catalogue_order({key for _, settings in rows for key in settings})
    columns: dict[str, pa.Array[Any]] = {
        name: pa.array([row[name] for row, _ in rows], kind)
        for name, kind in (("algorithm", pa.string()), ("scenario", pa.string()), ("place", pa.int32()))
    }
    for key, name in zip(keys, column_names(keys), strict=True):
        columns[name] = typed_array([value_in_lane(key, own.get(key)) for _, own in rows])
    return pa.table(columns)


def column_names(keys: Sequence[str]) -> list[str]:
    """The names of settings' columns."""
    short = [setting_of(key).name for key in keys]
    count = Counter(short)
    return [
        _as_column(key if count[name] > 1 or setting_of(key).one else name)
        for key, name in zip(keys, short, strict=True)
    ]


def value_in_lane(key: str, text: str | None) -> Value | None:
    """A setting's value in a lane. A word stays as it is, even one that only another release knows."""
    setting = setting_of(key)
    return text if text is None or setting.choices else setting.parse(text)


def typed_array(values: Iterable[Value | None]) -> pa.Array[Any]:
    """The values as int64 if all are whole numbers, as float64 if all are numbers, else as texts."""
    values = [int(value) if isinstance(value, str) and value.isdecimal() else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array(values, pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _as_column(name: str) -> str:
    return re.sub(r"\W", "_", name)
