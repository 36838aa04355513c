"""Turns rows of SHARE_EVENTS into the records that the replay of share sessions takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from schemas.tables.steps import SHARE_EVENTS
from udfs.columns.arrays import Ints, Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.session_cache.share_sessions.state import INITIAL_EPOCH, NO_ANSWER, RELEASE, REQUEST, SHARE_EVENT
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.key_numbers import key_numbers
from udfs.replay.shared.silver_columns import text_or_empty

_T = SHARE_EVENTS
NUMBERS: Mapping[str, tuple[str, int]] = {
    "us": (_T.time, 0),
    "kind": (_T.kind, 0),
    "life": (_T.life, 0),
    "ended_us": (_T.ended_time, NEVER),
    "is_logged": (_T.is_logged, 0),
    "epoch": (_T.share_session_epoch, INITIAL_EPOCH),
    "is_acknowledge": (_T.is_acknowledge, 0),
    "error": (_T.error_code, NO_ANSWER),
}
"""The column of each field of SHARE_EVENT, and the value that stands for null."""


@dataclass
class ShareKeys:
    """The numbers of one broker's members, clients and connections that have come so far."""

    members: dict[str, int] = field(default_factory=dict)  # by group and member id
    clients: dict[str, int] = field(default_factory=dict)  # by client id
    connections: dict[int, int] = field(default_factory=dict)  # by their ids


def parts_of_brokers(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """(broker, some of its rows) of rows of SHARE_EVENTS that are sorted by broker and time."""
    for batch in batches:
        broker = batch[_T.broker]
        names = broker.cast(pa.string()).to_numpy(zero_copy_only=False)
        cuts = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist(), len(names)]
        for first, end in pairwise(cuts):
            if end > first:
                yield str(names[first]), batch.slice(first, end - first)


def share_events_of(batch: pa.RecordBatch, keys: ShareKeys) -> Records:
    """Rows of one broker as SHARE_EVENT[n]. New members, clients and connections get numbers."""
    events = np.zeros(batch.num_rows, SHARE_EVENT)
    for name, (column, missing) in NUMBERS.items():
        events[name] = int_column(batch, column, missing)
    events["connection"] = connection_numbers(int_column(batch, _T.connection_id, 0), keys)
    is_request = np.isin(events["kind"], (REQUEST, RELEASE))
    places = pa.array(np.flatnonzero(is_request))
    group, member, client = (
        text_or_empty(batch[c].dictionary_encode() if not pa.types.is_dictionary(batch[c].type) else batch[c]).take(
            places
        )
        for c in (_T.group_id, _T.member_id, _T.client_id)
    )
    events["member"] = events["client"] = NONE
    events["member"][is_request] = key_numbers(keys.members, group, member)
    events["client"][is_request] = key_numbers(keys.clients, client)
    return events


def connection_numbers(ids: Ints, keys: ShareKeys) -> Ints:
    """The number of each row's connection: int64[n]."""
    distinct, place = np.unique(ids, return_inverse=True)
    numbers = [keys.connections.setdefault(one, len(keys.connections)) for one in distinct.tolist()]
    return np.array(numbers, np.int64)[place]
