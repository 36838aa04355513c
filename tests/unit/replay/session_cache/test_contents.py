"""What full and incremental fetches contain, and their bytes compared with a plain encoder."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

import numpy as np
import pytest

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from tests.bench.capture_frames import with_defaults
from tests.unit.wire.reference import Struct, encode
from udfs.columns.arrays import Records, read_only
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.replay.session_cache.contents.measure import measure_all
from udfs.replay.session_cache.contents.state import new_contents, with_entries, with_stretches
from udfs.replay.session_cache.state import LISTED_PARTITION, SESSION_FETCH, SIZE_UNKNOWN


class Want(NamedTuple):
    """A partition that a fetch wants, and what it gets for it."""

    topic: str
    partition: int
    offset: int = 0
    records: int = 0
    high_watermark: int = 5
    error: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    diverging_epoch: int = NONE


def rows_of(wanted: list[Want]) -> Records:
    """These partitions as a capture shows them if none is listed or returned: LISTED_PARTITION[n]."""
    rows = np.zeros(len(wanted), LISTED_PARTITION)
    fields = [
        (sum(want.topic.encode()), len(want.topic), want.partition, want.offset, want.records, want.high_watermark,
         want.error, want.last_fetched_epoch, want.log_start_offset, want.diverging_epoch)
        for want in wanted
    ]  # fmt: skip
    names = ("topic", "name_length", "partition", "fetch_offset", "records_bytes", "high_watermark", "error",
             "last_fetched_epoch", "reader_log_start_offset", "diverging_epoch")  # fmt: skip
    for name, values in zip(names, zip(*fields, strict=True), strict=bool(wanted)):
        rows[name] = values
    rows["is_wanted"], rows["preferred_read_replica"] = 1, NONE
    return read_only(rows)


def measured(*fetches: list[Want], version: int) -> list[Records]:
    """The measured fetches of one client: a row of SESSION_FETCH each."""
    contents = with_stretches(new_contents(), 1)
    measured_fetches = []
    for number, wanted in enumerate(fetches):
        fetch = np.zeros(1, SESSION_FETCH)
        fetch["number"], fetch["version"], fetch["end"], fetch["response_us"] = number, version, len(wanted), 1
        fetch["request_bytes"] = fetch["response_bytes"] = SIZE_UNKNOWN
        while measure_all(fetch, 0, rows_of(wanted), contents) == 0:
            contents = with_entries(contents)
        measured_fetches.append(fetch[0])
    return measured_fetches


def request(version: int, wanted: list[Want], forgotten: list[Want] | None = None) -> int:
    """Bytes of a request. Forgotten partitions are grouped by topic, others only if they are next to each other."""
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
    """The partitions in groups of neighbours of one topic."""
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


def test_a_partition_is_returned_again_when_its_error_is_over() -> None:
    """FetchSession.CachedPartition sets the high watermark of one with an error to -1."""
    fine, wrong = [Want("orders", 0)], [Want("orders", 0, error=6, high_watermark=-1)]
    assert [fetch["returned"] for fetch in measured(fine, fine, wrong, fine, fine, version=18)][1:] == [0, 1, 1, 0]


def test_a_client_that_wants_nothing_forgets_everything() -> None:
    _, nothing = measured(FIRST, [], version=18)
    assert (nothing["size"], nothing["request_incremental"]) == (0, request(18, [], FIRST))


@pytest.mark.parametrize(
    ("change", "listed", "returned"),
    [
        ({}, 0, 0), ({"last_fetched_epoch": 4}, 1, 0), ({"log_start_offset": 7}, 1, 0), ({"diverging_epoch": 3}, 0, 1),
        ({"offset": 9}, 1, 0), ({"high_watermark": 6}, 0, 1),
    ],
)  # fmt: skip
def test_a_change_of_the_request_lists_a_partition_and_a_change_of_the_response_returns_it(
    change: dict[str, int], listed: int, returned: int
) -> None:
    """FetchRequest.PartitionData.equals, and FetchResponse.isDivergingEpoch in maybeUpdateResponseData."""
    first = [Want("orders", partition) for partition in range(3)]
    second = [first[0], Want(**{**first[1]._asdict(), **change}), first[2]]
    _, fetch = measured(first, second, version=18)
    assert (fetch["listed"], fetch["returned"]) == (listed, returned)


@pytest.mark.parametrize("is_listed", [0, 1])
def test_a_partition_that_is_new_in_a_session_has_to_be_listed(is_listed: int) -> None:
    """FetchSessionHandler lists the partitions that it adds. A partition added without this counts as mislisted."""
    contents = with_stretches(new_contents(), 1)
    for number, wanted in enumerate(([Want("t", 0)], [Want("t", 0), Want("t", 1)])):
        fetch = new_records(SESSION_FETCH, 1, number=number, version=13, epoch=number, end=len(wanted), response_us=1)
        rows = rows_of(wanted).copy()
        rows["is_listed"][1:] = is_listed
        assert measure_all(fetch, 0, read_only(rows), contents) == 1
    assert fetch["mislisted"][0] == 1 - is_listed
