"""A slow, obvious model of a broker's fetch session as a capture shows it, and fetches for the model and the product.

The rules are those of FetchManager.newContext, FetchSession.update and FetchContext, Kafka 4.3: what full and
incremental fetches do to a session, and in which order it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas.wire.errors import INVALID_FETCH_SESSION_EPOCH
from udfs.facts.fetch_lists import LISTED_FETCH, Forgotten, Lists, Requested, Returned
from udfs.facts.fetch_session import NOWHERE, new_session, resize_session
from udfs.facts.session_follower import FollowedSession, follow_sessions

Partition = tuple[int, int]  # topic, partition


@dataclass(frozen=True)
class Want:
    partition: Partition
    offset: int = 0
    max_bytes: int = 1000
    leader_epoch: int = 7

    @property
    def epoch(self) -> int:
        """The leader epoch of the last record that was fetched. It rises with the offset."""
        return self.offset // 10

    @property
    def log_start(self) -> int:
        """Where the reader's own log begins. It rises with the offset."""
        return self.offset // 2


@dataclass(frozen=True)
class Got:
    partition: Partition
    records: int = 0
    high_watermark: int = 5
    first_offset: int = -1


@dataclass(frozen=True)
class Fetch:
    """One fetch. session: (id, epoch) of the request. answer: (session id, error); None if no response was captured."""

    session: tuple[int, int]
    wants: tuple[Want, ...] = ()
    forgets: tuple[Partition, ...] = ()
    answer: tuple[int, int] | None = (0, 0)
    gets: tuple[Got, ...] = ()
    connection: int = 0
    most_bytes: int = 4
    is_throttled: bool = False
    is_follower: bool = False


@dataclass(frozen=True)
class Row:
    """What is known of one partition of one fetch. Indices count within the fetch; None if there is none."""

    fetch: int
    partition: Partition
    requested: int | None
    read_position: int | None
    returned: int | None
    offset: int = -1
    max_bytes: int = -1
    epoch: int = -1
    log_start: int = -1
    high_watermark: int = -1
    is_known: bool = True
    is_readable: bool = True
    is_delayed: bool = False


@dataclass
class Model:
    """One connection's session."""

    id: int = 0
    epoch: int = 0  # of the next fetch
    is_known: bool = False
    is_readable: bool = False
    is_behind_gap: bool = False
    served: set[Partition] = field(default_factory=set)  # partitions with records since the session was joined
    partitions: dict[Partition, dict[str, int]] = field(default_factory=dict)  # in the order in which the broker reads

    def rows(self, f: int, fetch: Fetch) -> list[Row]:
        if fetch.session[1] > 0 and fetch.answer is not None and fetch.answer[1] != 0:
            is_next = fetch.session == (self.id, self.epoch) and fetch.answer[1] != INVALID_FETCH_SESSION_EPOCH
            known = {"is_known": is_next and self.is_known, "is_readable": is_next and self.is_readable}
            return [
                Row(f, of.partition, i, None, None, of.offset, of.max_bytes, of.epoch, of.log_start, **known)
                for i, of in enumerate(fetch.wants)
            ]
        return self.full(f, fetch) if fetch.session[1] <= 0 else self.incremental(f, fetch)

    def full(self, f: int, fetch: Fetch) -> list[Row]:
        self.partitions, self.served, self.is_known, self.is_readable, self.epoch = {}, set(), True, True, 1
        self.is_behind_gap = False
        rows = self.read(f, fetch)
        is_opened = fetch.session[1] == 0 and fetch.answer is not None and fetch.answer[0] > 0
        self.id = fetch.answer[0] if is_opened and fetch.answer else 0
        if is_opened:
            self.move_behind([got.partition for got in fetch.gets])
        return rows

    def incremental(self, f: int, fetch: Fetch) -> list[Row]:
        if fetch.session[0] != self.id:
            self.id, self.partitions = fetch.session[0], {}
            self.note_gap()
            self.is_behind_gap = self.epoch != 0
        elif fetch.session[1] != self.epoch:
            self.note_gap()
        self.epoch = fetch.session[1] + 1
        rows = self.read(f, fetch)
        if fetch.answer is None:
            self.note_gap()
        elif fetch.answer[0] == 0:
            self.id = 0
        else:
            self.move_behind([got.partition for got in fetch.gets if got.records > 0])
        return rows

    def read(self, f: int, fetch: Fetch) -> list[Row]:
        is_joined = fetch.session[1] > 0 and not self.is_known
        if is_joined:
            for want in fetch.wants:
                if want.partition in self.partitions and "offset" not in self.partitions[want.partition]:
                    del self.partitions[want.partition]
        ahead = self.ahead_of_high_watermark(fetch)
        for want in fetch.wants:
            entry = self.partitions.setdefault(want.partition, {"high_watermark": -1})
            entry |= {"offset": want.offset, "max_bytes": want.max_bytes}
            entry |= {"epoch": want.epoch, "log_start": want.log_start, "leader_epoch": want.leader_epoch}
        for partition in fetch.forgets:
            self.partitions.pop(partition, None)
        was_read = list(self.partitions)
        new = [got for got in fetch.gets if got.partition not in self.partitions]
        for got in fetch.gets:
            entry = self.partitions.setdefault(got.partition, {"high_watermark": -1})
            entry["high_watermark"] = got.high_watermark
        is_readable = True
        if is_joined:
            is_readable = self.learn(fetch, new)
            was_read = list(self.partitions)
        elif fetch.session[1] > 0 and new:
            self.is_known = self.is_readable = is_readable = False
        requested = first_index([want.partition for want in fetch.wants])
        for partition in fetch.forgets:
            requested.pop(partition, None)
        returned = first_index([got.partition for got in fetch.gets])
        reached = [got for got in fetch.gets if got.high_watermark >= ahead.get(got.partition, 1000)]
        is_delayed = self.is_known and any(got.partition in was_read for got in reached)
        return [
            Row(
                f,
                partition,
                requested.get(partition),
                was_read.index(partition) if partition in was_read else None,
                returned.get(partition),
                entry.get("offset", -1),
                entry.get("max_bytes", -1),
                entry.get("epoch", -1),
                entry.get("log_start", -1),
                entry["high_watermark"],
                self.is_known,
                is_readable,
                is_delayed,
            )
            for partition, entry in self.partitions.items()
        ]

    def note_gap(self) -> None:
        self.is_known, self.is_readable, self.served, self.is_behind_gap = False, False, set(), True
        for entry in self.partitions.values():
            entry.pop("offset", None)

    def learn(self, fetch: Fetch, new: list[Got]) -> bool:
        """Learn the partitions of a session from before the capture. Returns whether all with records are known."""
        first = [got.partition for got in new]
        self.partitions = {p: self.partitions[p] for p in (*first, *(p for p in self.partitions if p not in first))}
        firsts = [got.partition for got in fetch.gets if got.records > 0 and got.partition not in self.served]
        in_place = iter(firsts)
        order = [next(in_place) if partition in firsts else partition for partition in self.partitions]
        self.partitions = {partition: self.partitions[partition] for partition in order}
        lacks_offset = self.infer_offsets(fetch)
        with_records = {got.partition for got in fetch.gets if got.records > 0}
        is_second = not self.served.isdisjoint(with_records)
        self.served |= with_records
        total = sum(max(got.records, 0) for got in fetch.gets)
        has_room = fetch.answer is not None and not fetch.is_throttled and total < fetch.most_bytes
        self.is_readable = self.is_readable or is_second or has_room
        if has_room and not fetch.is_follower:
            for partition in self.partitions.keys() - {got.partition for got in fetch.gets}:
                entry = self.partitions[partition]
                if entry["high_watermark"] == -1:
                    entry["high_watermark"] = entry.get("offset", -1)
        is_behind_gap, self.is_behind_gap = self.is_behind_gap, False
        return self.is_readable and not lacks_offset and fetch.answer is not None and not is_behind_gap

    def infer_offsets(self, fetch: Fetch) -> bool:
        """Take the offsets where the records of a response begin. Returns whether some partitions have none."""
        usual = next((entry["max_bytes"] for entry in self.partitions.values() if "max_bytes" in entry), None)
        lacks_offset = False
        for got in fetch.gets:
            entry = self.partitions[got.partition]
            if got.records > 0 and "offset" not in entry:
                most = entry.get("max_bytes", usual)
                if most is not None and got.first_offset >= 0:
                    entry |= {"offset": got.first_offset, "max_bytes": most}
                else:
                    lacks_offset = True
        return lacks_offset

    def ahead_of_high_watermark(self, fetch: Fetch) -> dict[Partition, int]:
        """Offsets that the leader learns only from this request, if the high watermark was not above the last one."""
        once = [want for want in fetch.wants if [w.partition for w in fetch.wants].count(want.partition) == 1]
        had = {want.partition: self.partitions.get(want.partition, {}) for want in once}
        return {
            want.partition: want.offset
            for want in once
            if 0 <= had[want.partition].get("high_watermark", -1) <= had[want.partition].get("offset", -1) < want.offset
            and had[want.partition].get("leader_epoch", -1) == want.leader_epoch
        }

    def move_behind(self, moved: list[Partition]) -> None:
        for partition in dict.fromkeys(moved):
            self.partitions[partition] = self.partitions.pop(partition)


def first_index(partitions: list[Partition]) -> dict[Partition, int]:
    return {partition: partitions.index(partition) for partition in partitions}


def modelled(fetches: list[Fetch]) -> list[Row]:
    rows, model, connection = [], Model(), None
    for f, fetch in enumerate(fetches):
        if fetch.connection != connection:
            model, connection = Model(), fetch.connection
        rows += model.rows(f, fetch)
    return rows


def columns(rows: list[tuple[int, ...]], kind: Any) -> Any:
    return kind(*np.array(rows, np.int64).reshape(-1, len(kind._fields)).T.copy())


def fetch_array(fetches: list[Fetch]) -> tuple[np.ndarray, Lists]:
    array = np.zeros(len(fetches), LISTED_FETCH)
    requested: list[tuple[int, ...]] = []
    forgotten: list[tuple[int, ...]] = []
    returned: list[tuple[int, ...]] = []
    for row, fetch in zip(array, fetches, strict=True):
        row["connection"], (row["session_id"], row["session_epoch"]) = fetch.connection, fetch.session
        row["is_answered"], row["max_bytes"] = fetch.answer is not None, fetch.most_bytes
        row["is_throttled"], row["is_follower"] = fetch.is_throttled, fetch.is_follower
        row["response_session_id"], row["response_error"] = fetch.answer or (0, 0)
        for name, lines, more in (
            (
                "requested",
                requested,
                [
                    (*of.partition, of.offset, of.max_bytes, of.leader_epoch, of.epoch, of.log_start)
                    for of in fetch.wants
                ],
            ),
            ("forgotten", forgotten, list(fetch.forgets)),
            (
                "returned",
                returned,
                [(*got.partition, got.records, got.first_offset, got.high_watermark, 4, 0) for got in fetch.gets],
            ),
        ):
            row[f"{name}_from"], row[f"{name}_to"] = len(lines), len(lines) + len(more)
            lines += more
    return array, Lists(columns(requested, Requested), columns(forgotten, Forgotten), columns(returned, Returned))


def followed(fetches: list[Fetch], *, row_limit: int = 1000, resize: bool = False) -> list[Row]:
    """The product's rows, in calls of `row_limit` rows. resize: whether the session is resized, as between chunks."""
    array, lists = fetch_array(fetches)
    sizes = array["requested_to"] - array["requested_from"] + array["returned_to"] - array["returned_from"]
    capacity = np.full(len(array), sizes.sum() + 1)
    state, at, out = FollowedSession(new_session(1), NOWHERE), 0, []
    while at < len(array):
        if resize:
            state = FollowedSession(resize_session(state.session, int(capacity[at])), state.connection)
        rows, n, at, state = follow_sessions(array, at, lists, state, capacity, row_limit)
        cells = zip(*(column[:n].tolist() for column in rows), strict=True)
        out += [product_row(dict(zip(rows._fields, row, strict=True)), array) for row in cells]
    return out


def product_row(row: dict[str, int], fetches: np.ndarray) -> Row:
    fetch = fetches[row["fetch"]]

    def or_none(value: int, first: int = 0) -> int | None:
        return None if value == NOWHERE else int(value - first)

    return Row(
        int(row["fetch"]),
        (int(row["topic"]), int(row["partition"])),
        or_none(row["requested"], fetch["requested_from"]),
        or_none(row["read_position"]),
        or_none(row["returned"], fetch["returned_from"]),
        int(row["fetch_offset"]),
        int(row["partition_max_bytes"]),
        int(row["last_fetched_epoch"]),
        int(row["reader_log_start_offset"]),
        int(row["high_watermark"]),
        bool(row["is_known"]),
        bool(row["is_readable"]),
        bool(row["is_delayed"]),
    )
