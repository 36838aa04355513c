"""Produce requests of captured producers, as tests write them down, and the lanes that set their quotas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.tables.steps import PRODUCE_EVENTS
from udfs.facts.arrow_tables import make_rows
from udfs.replay.fetch_max_bytes.producer_quota.settings import ProducerLanes
from udfs.replay.fetch_max_bytes.quotas import EACH, QuotaOf
from udfs.replay.shared.window import Window

MS, SECOND = 1000, 1_000_000
BEGIN = 1_764_000_000 * SECOND
PLENTY = 32 << 20
EVERYBODY = QuotaOf(None, EACH)


@dataclass(frozen=True)
class Sent:
    """A request: when it came (ms), its bytes, how long the broker took (ms), and what the response says (ms). batches:
    how many it has, if it is known when they were made.
    """

    at: int
    size: int
    took: int = 2
    throttle: int | None = 0
    client: str = "app"
    connection: int = 1
    broker: str = "1"
    made: int | None = None
    version: int = 13
    is_answered: bool = True
    began_before: bool = False
    batches: int = 1


def rows_of(sent: Sequence[Sent], unit: str = "app at here") -> pa.RecordBatch:
    """Rows of PRODUCE_EVENTS, as they come to the replay."""
    t, rows = PRODUCE_EVENTS, list[dict[str, Any]]()
    for number, one in enumerate(sent):
        place: dict[str, Any] = {t.unit: unit, t.time: BEGIN + one.at * MS, t.exchange_no: number}
        place[t.connection_id] = one.connection
        answered = BEGIN + (one.at + one.took) * MS if one.is_answered else None
        rows.append(
            {
                **place, t.client_id: one.client, t.client_address: "here", t.broker: one.broker, t.size: one.size,
                t.response_time: answered, t.api_version: one.version, t.is_answered: one.is_answered,
                t.throttle_time_ms: one.throttle if one.is_answered else None, t.began_before: one.began_before,
            }
        )  # fmt: skip
        if one.made is not None:
            rows += [{**place, t.made_time: BEGIN + one.made * MS}] * one.batches
    rows.sort(key=lambda row: (row[t.time], row[t.connection_id], row[t.exchange_no]))
    names = [str(column) for column in t.columns]
    whole = pa.RecordBatch.from_pylist([dict.fromkeys(names) | row for row in rows])
    return make_rows(t, {name: whole[name] for name in names})


def lanes_of(*rates: int | None, buffer_bytes: int = PLENTY, window: Window | None = None) -> ProducerLanes:
    """The captured lane, whose quota is the first of these, and lanes with the others."""
    n = len(rates)
    quotas = tuple({} if rate is None else {EVERYBODY: rate} for rate in rates)
    lanes = ProducerLanes(
        ("captured", *(f"producer_byte_rate={rate}" for rate in rates[1:])), quotas,
        np.full(n, 11), np.full(n, 1000), buffer_bytes,
    )  # fmt: skip
    return lanes if window is None else replace(lanes, window=window)
