"""What full and incremental fetches have in them, and their bytes, beside a plain encoder."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

import numpy as np
import pytest

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from tests.bench.capture_frames import with_defaults
from tests.unit.wire.reference import Struct, encode
from udfs.columns.arrays import Records
from udfs.replay.session_cache.session_contents import measure_all
from udfs.replay.session_cache.session_entries import CONTENTS, Memory, Partitions, larger_memory, new_memory
from udfs.replay.session_cache.session_fetches import FETCH
from udfs.wire.fetch_sizes import fetch_sizes


class Want(NamedTuple):
    """A partition as a fetch wants and gets it."""

    topic: str
    partition: int
    offset: int = 0
    records: int = 0
    high_watermark: int = 5
    error: int = 0


def rows_of(wanted: list[Want]) -> Partitions:
    ones, zeros = np.ones(len(wanted), np.int64), np.zeros(len(wanted), np.int64)

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([getattr(want, name) for want in wanted], np.int64)

    return Partitions(
        np.array([sum(want.topic.encode()) for want in wanted], np.int64),
        np.array([len(want.topic) for want in wanted], np.int64),
        column("partition"), ones, zeros, zeros, column("offset"), ones, zeros, column("records"),
        column("high_watermark"), zeros, column("error"), zeros - 1,
    )  # fmt: skip


def measured(*fetches: list[Want], version: int) -> list[Records]:
    """The last state of each fetch of one client."""
    memory: Memory = new_memory()._replace(clients=np.zeros(1, CONTENTS))
    found = []
    for wanted in fetches:
        fetch = np.zeros(1, FETCH)
        fetch["version"], fetch["end"], fetch["response_us"] = version, len(wanted), 1
        while measure_all(fetch, 0, rows_of(wanted), memory, fetch_sizes()) == 0:
            memory = larger_memory(memory)
        found.append(fetch[0])
    return found


def request(version: int, wanted: list[Want], forgotten: list[Want] | None = None) -> int:
    """Bytes of a request; forgotten partitions are grouped by topic, others only where they are neighbours."""
    topics = [
        named("topics", topic) | {"partitions": [
            with_defaults(FETCH_REQUEST, "topics.partitions") | {"partition": p.partition} for p in parts
        ]} for topic, parts in grouped(wanted)
    ]  # fmt: skip
    gone = [
        named("forgotten_topics_data", topic) | {"partitions": [p.partition for p in parts]}
        for topic, parts in grouped(sorted(forgotten or []))
    ]
    value = with_defaults(FETCH_REQUEST) | {"topics": topics, "forgotten_topics_data": gone}
    return len(encode(FETCH_REQUEST, version, value))


def response(version: int, returned: list[Want]) -> int:
    """Bytes of a response."""
    topics = [
        {"topic": topic.encode(), "topic_id": bytes(16), "partitions": [
            with_defaults(FETCH_RESPONSE, "responses.partitions") | {"records": bytes(p.records)} for p in parts
        ]} for topic, parts in grouped(returned)
    ]  # fmt: skip
    return len(encode(FETCH_RESPONSE, version, with_defaults(FETCH_RESPONSE) | {"responses": topics}))


def named(path: str, topic: str) -> Struct:
    return with_defaults(FETCH_REQUEST, path) | {"topic": topic.encode(), "topic_id": bytes(16)}


def grouped(wanted: list[Want]) -> list[tuple[str, list[Want]]]:
    """Neighbours of one topic together."""
    return [(topic, list(parts)) for topic, parts in groupby(wanted, lambda want: want.topic)]


FIRST = [*(Want("orders", p) for p in range(200)), Want("x" * 150, 0), Want("orders", 200)]
CHANGED = FIRST[100].partition, FIRST[7].partition
SECOND = [
    *(
        want._replace(offset=9, records=300 if want.partition == CHANGED[0] else 0)
        if want.partition in CHANGED
        else want
        for want in FIRST[3:200]
    ),
    Want("x" * 150, 1),
    Want("orders", 200, high_watermark=6),
    Want("orders", 201, error=6, high_watermark=-1),
]


@pytest.mark.parametrize("version", [4, 7, 11, 12, 13, 18])
def test_a_full_fetch_takes_the_bytes_of_its_encoding(version: int) -> None:
    (first,) = measured(FIRST, version=version)
    assert (first["request_full"], first["response_full"]) == (request(version, FIRST), response(version, FIRST))
    assert first["response_empty"] == response(version, [])


@pytest.mark.parametrize("version", [7, 11, 12, 13, 18])
def test_an_incremental_fetch_has_what_changed_and_takes_the_bytes_of_its_encoding(version: int) -> None:
    _, second = measured(FIRST, SECOND, version=version)
    new = [SECOND[-3], SECOND[-1]]
    altered = [want for want in SECOND if want.topic == "orders" and want.partition in CHANGED]
    forgotten = [*FIRST[:3], FIRST[200]]
    returned = [want for want in SECOND if want.records], [SECOND[-3], SECOND[-2], SECOND[-1]]
    assert (second["listed"], second["returned"]) == (len(new) + len(altered), len(returned[0]) + len(returned[1]))
    assert second["request_incremental"] == request(version, [*new, *altered], forgotten)
    assert second["response_incremental"] == response(version, [*returned[0], *returned[1]])


def test_a_partition_is_told_again_when_its_error_is_over() -> None:
    """FetchSession.CachedPartition sets the high watermark of one with an error to -1."""
    fine, wrong = [Want("orders", 0)], [Want("orders", 0, error=6, high_watermark=-1)]
    assert [fetch["returned"] for fetch in measured(fine, fine, wrong, fine, fine, version=18)][1:] == [0, 1, 1, 0]


def test_a_client_that_wants_nothing_forgets_everything() -> None:
    _, nothing = measured(FIRST, [], version=18)
    assert (nothing["size"], nothing["request_incremental"]) == (0, request(18, [], FIRST))
