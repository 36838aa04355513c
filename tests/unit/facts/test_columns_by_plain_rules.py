"""Functions that relate rows of requests to rows of responses, compared with loops over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from schemas.wire.apis import APIS
from udfs.columns.arrays import Ints
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.client_software import ClientSoftware, Reports, _fill_software, logged_software, with_earlier
from udfs.facts.exchange_rows import API_NAMES, api_codes, present_bytes
from udfs.facts.exchanges import Exchanges, connection_ids, endpoint_addresses, endpoint_texts
from udfs.facts.fetch_lists import LISTED_FETCH
from udfs.facts.fetches import aborted_lists, first_offsets, replica_ids, row_ranges, session_capacities
from udfs.facts.hashed_names import ABSENT, HashedNames, hash_of, topic_id_text
from udfs.facts.logged_bodies import NULL, UNREADABLE_ID, Texts, id_bytes
from udfs.facts.record_batch_rows import assigned_offsets, first_errors, partition_keys, places_of_keys, sum_before
from udfs.facts.share_messages import record_bytes
from udfs.facts.topic_changes import (
    COMPRESSION_TYPES,
    answer_of,
    assignment_texts,
    compression_types,
    group_into_lists,
    max_message_bytes,
    remote_storage,
    response_counts,
)
from udfs.wire.decoded_level import Level
from udfs.wire.messages import DecodedFrames

NOWHERE = -1
SMALL = st.integers(0, 3)


def ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def level(path: str, **columns: Sequence[int]) -> Level:
    rows = len(next(iter(columns.values())))
    return Level(path, rows, {name.replace("__", "."): ints(values) for name, values in columns.items()})


def frames_of(levels: dict[str, Level]) -> DecodedFrames:
    top = levels.setdefault("", Level("", 0, {}))
    return DecodedFrames(np.zeros(top.rows, np.int8), np.full(top.rows, -1), levels)


def keys_of(parts: list[tuple[int, int, int]]) -> list[int]:
    """The keys of partitions, given as exchange, number of the topic, and partition."""
    topics = [hash_of(b"topic %d" % topic) for _, topic, _ in parts]
    keys = partition_keys(ints([of[0] for of in parts]), ints(topics), ints([of[2] for of in parts]))
    return [int(key) for key in keys]


@given(st.lists(st.tuples(SMALL, SMALL, st.integers(-2, 2)), max_size=8), st.data())
def test_a_key_is_one_number_for_each_partition_of_an_exchange(
    parts: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    keys = keys_of(parts)
    assert [keys.index(key) for key in keys] == [parts.index(part) for part in parts]
    wanted = data.draw(st.lists(st.sampled_from([*parts, (9, 9, 9)]), max_size=6))
    places = places_of_keys(ints(keys_of(wanted)), ints(keys)).tolist()
    assert places == [parts.index(part) if part in parts else UNKNOWN for part in wanted]


def test_the_key_of_a_partition_is_splitmix64_of_its_parts() -> None:
    exchange, topic, partition = 5, -3, 7
    mixed = (topic % 2**64) ^ partition ^ (exchange << 32)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ mixed >> shift) * factor % 2**64
    assert int(partition_keys(ints([exchange]), ints([topic]), ints([partition]))[0]) % 2**64 == mixed


@given(st.lists(st.tuples(SMALL, SMALL), max_size=5), st.lists(st.tuples(SMALL, SMALL), max_size=5))
def test_a_requested_topic_has_its_own_exchanges_answer(
    requested: list[tuple[int, int]], answered: list[tuple[int, int]]
) -> None:
    answered = list(dict.fromkeys(answered))
    sides = [[ints([part[which] for part in parts]) for which in range(2)] for parts in (requested, answered)]
    expected = [answered.index(part) if part in answered else UNKNOWN for part in requested]
    assert answer_of(*sides[0], *sides[1]).tolist() == expected


@given(st.lists(st.tuples(SMALL, st.integers(-5, 5)), max_size=8))
def test_what_comes_before_a_value_is_summed_up_within_its_parent(rows: list[tuple[int, int]]) -> None:
    rows.sort(key=lambda row: row[0])
    expected = [
        sum(value for parent, value in rows[:at] if parent == of) for at, (of, _) in enumerate(rows)
    ]  # fmt: skip
    assert sum_before(ints([row[1] for row in rows]), ints([row[0] for row in rows])).tolist() == expected


@given(
    st.lists(st.tuples(SMALL, st.integers(-1, 3)), max_size=8),
    st.lists(st.sampled_from([UNKNOWN, -1, 0, 100]), min_size=4, max_size=4),
)
def test_batches_of_a_field_follow_each_other_in_the_log_as_long_as_their_records_are_counted(
    rows: list[tuple[int, int]], assigned: list[int]
) -> None:
    rows.sort(key=lambda row: row[0])
    batches: Any = SimpleNamespace(parent=ints([row[0] for row in rows]), record_count=ints([row[1] for row in rows]))
    expected: list[int | None] = []
    for at, (parent, _) in enumerate(rows):
        before = [count for of, count in rows[:at] if of == parent]
        is_known = assigned[parent] not in (UNKNOWN, -1) and min(before, default=0) >= 0
        expected.append(assigned[parent] + sum(before) if is_known else None)
    assert assigned_offsets(batches, ints(assigned)).of_type(pa.int64()).to_pylist() == expected


@given(st.lists(st.tuples(SMALL, st.sampled_from([0, 0, 3, 6])), max_size=8))
def test_an_exchange_has_the_first_error_of_its_partitions(partitions: list[tuple[int, int]]) -> None:
    exchanges = cast(Exchanges, SimpleNamespace(error=np.full(4, UNKNOWN)))
    first_errors(exchanges, ints([part[0] for part in partitions]), ints([part[1] for part in partitions]))
    for exchange in range(4):
        errors = [error for of, error in partitions if of == exchange]
        expected = next((error for error in errors if error), 0) if errors else UNKNOWN
        assert exchanges.error[exchange] == expected


@given(st.lists(st.tuples(SMALL, SMALL), max_size=4), st.data())
def test_the_rows_of_a_frame_two_arrays_deep_are_a_range(topics: list[tuple[int, int]], data: st.DataObject) -> None:
    """topics: the frame of each topic, and how many partitions it has."""
    topics.sort(key=lambda topic: topic[0])
    partitions = [at for at, (_, count) in enumerate(topics) for _ in range(count)]
    decoded = frames_of({
        "topics": level("topics", parent=[frame for frame, _ in topics]),
        "topics.partitions": level("topics.partitions", parent=partitions),
    })  # fmt: skip
    frames = data.draw(st.integers(4, 5))
    counts = [sum(count for of, count in topics if of == frame) for frame in range(frames)]
    first, end = row_ranges(decoded, "topics.partitions", frames)
    assert end.tolist() == list(accumulate(counts))
    assert (end - first).tolist() == counts


@given(st.lists(st.tuples(SMALL, SMALL, SMALL), max_size=6))
def test_a_session_can_hold_every_partition_that_its_connection_names(fetches: list[tuple[int, int, int]]) -> None:
    """fetches: connection, partitions requested, partitions returned."""
    listed = np.zeros(len(fetches), LISTED_FETCH)
    for row, (connection, requested, returned) in enumerate(fetches):
        listed[row]["connection"] = connection
        listed[row]["requested_from"], listed[row]["requested_to"] = 10, 10 + requested
        listed[row]["returned_from"], listed[row]["returned_to"] = 20, 20 + returned
    expected = [1 + sum(asked + got for of, asked, got in fetches if of == own) for own, _, _ in fetches]
    assert session_capacities(listed).tolist() == expected


@given(st.lists(st.tuples(st.sampled_from([-2, -1, 0, 2]), st.sampled_from([-1, 0, 3])), max_size=5))
def test_the_replica_is_that_of_the_request_or_of_its_tag(requests: list[tuple[int, int]]) -> None:
    top = level("", replica_id=[row[0] for row in requests], replica_state__replica_id=[row[1] for row in requests])
    assert replica_ids(frames_of({"": top})).tolist() == [tag if own == -1 else own for own, tag in requests]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2), st.integers(0, 2**62)), max_size=4))
def test_the_first_offset_of_records_is_that_of_a_whole_batch_header_of_format_2(
    fields: list[tuple[int, int, int]],
) -> None:
    """fields: bytes, magic and first offset of records."""
    parts = [
        (offset.to_bytes(8, "big") + bytes(8) + bytes([magic]) + bytes(40))[:size] for size, magic, offset in fields
    ]
    sizes = ints([len(part) for part in parts])
    arena = np.frombuffer(b"\xff" * 3 + b"".join(parts) + b"\xff" * 3, np.uint8)
    expected = [offset if size >= 17 and magic == 2 else NOWHERE for size, magic, offset in fields]
    assert first_offsets(arena, 3 + np.cumsum(sizes) - sizes, sizes).tolist() == expected
    assert first_offsets(arena, np.full(len(parts), NOWHERE), sizes).tolist() == [NOWHERE] * len(parts)


def test_records_have_their_size_null_ones_none_and_a_request_log_may_not_say() -> None:
    returned = level("responses.partitions", records__start=[5, 9, -1, -1], records__length=[40, -1, 30, -1])
    assert record_bytes(returned).tolist() == [40, 0, 30, UNKNOWN]


@given(st.lists(SMALL, max_size=4), st.data())
def test_aborted_transactions_are_lists_of_their_partition(counts: list[int], data: st.DataObject) -> None:
    path = "responses.partitions"
    parents = [row for row, count in enumerate(counts) for _ in range(count)]
    numbers = list(range(100, 100 + len(parents)))
    decoded = frames_of({
        path: level(path, error_code=[0] * len(counts)),
        f"{path}.aborted_transactions": level(f"{path}.aborted_transactions", parent=parents, producer_id=numbers),
    })  # fmt: skip
    rows = data.draw(st.lists(st.integers(NOWHERE, len(counts) - 1), max_size=5))
    of_row = [[n for n, parent in zip(numbers, parents, strict=True) if parent == row] or None for row in rows]
    assert aborted_lists(decoded, "producer_id", ints(rows)).to_pylist() == of_row


@given(st.lists(st.tuples(SMALL, st.booleans()), max_size=4))
def test_values_are_lists_of_their_parents_and_null_where_there_is_none(parents: list[tuple[int, bool]]) -> None:
    owner = [at for at, (count, _) in enumerate(parents) for _ in range(count)]
    values = list(range(len(owner)))
    expected = [
        [value for value, of in zip(values, owner, strict=True) if of == at] if is_there else None
        for at, (_, is_there) in enumerate(parents)
    ]
    there = np.array([is_there for _, is_there in parents], np.bool_)
    assert group_into_lists(pa.array(values, pa.int64()), ints(owner), there).to_pylist() == expected


def test_the_brokers_of_a_partition_are_written_behind_its_number() -> None:
    brokers = level("topics.partitions.broker_ids", parent=[0, 0, 2], value=[4, 5, 6])
    decoded = frames_of({"topics.partitions.broker_ids": brokers})
    assert assignment_texts(decoded, "topics.partitions", ints([7, 8, 9])).to_pylist() == ["7:4,5", "8:", "9:6"]


def test_a_count_in_a_response_is_null_if_the_response_has_none() -> None:
    answer = level("topics", num_partitions=[3, -1, 0])
    rows = ints([2, UNKNOWN, 0, 1])
    assert response_counts(answer, "num_partitions", rows).to_pylist() == [0, None, 3, None]


CONFIG_NAMES = ["max.message.bytes", "compression.type", "remote.storage.enable", "other"]
CONFIG_VALUES = [
    None,
    "",
    "zstd",
    "ZSTD",
    "producer",
    "true",
    "false",
    "TRUE",
    "12",
    "1048588",
    "-1",
    "1x",
    "9" * 10,
    "9" * 11,
]
CONFIGS = st.lists(st.tuples(SMALL, st.sampled_from(CONFIG_NAMES), st.sampled_from(CONFIG_VALUES)), max_size=5)


def plain_number(value: str) -> int | None:
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 10 else None


@given(CONFIGS)
def test_a_topic_has_the_last_usable_value_of_each_configuration(configs: list[tuple[int, str, str | None]]) -> None:
    configs.sort(key=lambda config: config[0])
    texts = Texts()
    columns: dict[str, Ints] = {"parent": ints([topic for topic, _, _ in configs])}
    for name, values in (("name", [of[1] for of in configs]), ("value", [of[2] for of in configs])):
        columns[f"{name}.start"], columns[f"{name}.length"] = texts.add(pa.array(values, pa.string()))
    exchanges: Any = SimpleNamespace(frames=SimpleNamespace(arena=texts.arena()), names=HashedNames())
    of_topics = Level("topics.configs", len(configs), columns)

    def last_of(name: str, known: dict[str, Any]) -> list[Any]:
        usable = {topic: known[value] for topic, key, value in configs if key == name and value in known}
        return [usable.get(topic) for topic in range(4)]

    numbers = {value: plain_number(value) for value in CONFIG_VALUES if value and plain_number(value) is not None}
    assert max_message_bytes(exchanges, 4, of_topics).to_pylist() == last_of("max.message.bytes", numbers)
    types = {word: word for word in COMPRESSION_TYPES}
    assert compression_types(exchanges, 4, of_topics).to_pylist() == last_of("compression.type", types)
    switches = {"true": True, "false": False}
    assert remote_storage(exchanges, 4, of_topics).to_pylist() == last_of("remote.storage.enable", switches)


@given(st.lists(st.none() | st.sampled_from(["", "a", "größe", "\0"]), max_size=4), st.integers(0, 2))
def test_texts_of_request_logs_are_found_in_their_arena(texts: list[str | None], first: int) -> None:
    held = Texts()
    held.add(pa.array(["before"]))
    column = pa.array([None] * first + texts, pa.string()).slice(first)
    starts, lengths = held.add(column)
    arena = held.arena()
    found = [
        None if length == NULL else arena[start : start + length].tobytes().decode()
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]
    assert found == texts
    assert held.size == len(arena)


IDS = [topic_id_text(bytes(range(16))), topic_id_text(b"\xff" * 16), "too short", "?" * 22, None]


@given(st.lists(st.sampled_from(IDS), max_size=5))
def test_ids_of_request_logs_are_sixteen_bytes_each(ids: list[str | None]) -> None:
    held = Texts()
    held.add(pa.array(["before"]))
    starts, lengths = held.add_ids(pa.array(ids, pa.string()))
    arena = held.arena()
    for text, start, length in zip(ids, starts.tolist(), lengths.tolist(), strict=True):
        raw = id_bytes(text) if text is not None else None
        if raw is None:
            assert length == (NULL if text is None else UNREADABLE_ID)
        else:
            assert (topic_id_text(raw), arena[start : start + length].tobytes()) == (text, raw)
    assert held.size == len(arena)


REPORTS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 5), st.booleans()), max_size=4, unique_by=lambda of: of[0]
)


@given(REPORTS, st.lists(SMALL, min_size=10, max_size=10), st.lists(st.integers(-1, 9), max_size=8, unique=True))
def test_an_exchange_has_the_last_report_of_its_connection_up_to_its_request(
    reported: list[tuple[int, int, bool]], owners: list[int], requests: list[int]
) -> None:
    """reported: request, software and whether it waits; owners: the connection of each request."""
    reported.sort()
    owners.sort()
    requests.sort()
    carried = 7
    reports = Reports(
        request=ints([UNKNOWN, *(of[0] for of in reported)]),
        connection=ints([0, *(owners[of[0]] for of in reported)]),
        is_open=np.array([False, *(of[2] for of in reported)]),
        hashes=np.stack([ints([carried, *(of[1] for of in reported)]), ints([70, *(10 * of[1] for of in reported)])]),
    )
    request = ints([UNKNOWN if of < 0 else of for of in requests])
    connection = ints([owners[max(of, 0)] for of in requests])
    name, version = np.zeros(len(requests), np.int64), np.zeros(len(requests), np.int64)
    _fill_software(request, connection, reports, name, version)

    def last_of(row: int) -> int:
        own = [software for of, software, _ in reported if of <= row and owners[of] == owners[row]]
        return own[-1] if own else carried if owners[row] == 0 and not any(of <= row for of, *_ in reported) else ABSENT

    expected = [last_of(row) if row >= 0 else ABSENT for row in requests]
    assert name.tolist() == expected
    assert version.tolist() == [10 * software for software in expected]


def test_what_a_client_reported_before_the_capture_comes_first_in_its_connection() -> None:
    reports = Reports(
        request=ints([UNKNOWN, 2, 5]),
        connection=ints([0, 1, 2]),
        is_open=np.array([False, True, True]),
        hashes=np.stack([ints([1, 2, 3]), ints([10, 20, 30])]),
    )
    requests = ints([0, 0, 1, 1, 2, 2, 3])  # the connection of each
    earlier = {3: ints([8, 80]), 1: ints([9, 90])}
    found = with_earlier(reports, requests, earlier)
    assert found.request.tolist() == [UNKNOWN, 2, 2, 5, 6]
    assert found.connection.tolist() == [0, 1, 1, 2, 3]
    assert found.is_open.tolist() == [False, False, True, True, False]
    assert found.hashes.tolist() == [[1, 9, 2, 3, 8], [10, 90, 20, 30, 80]]
    assert with_earlier(reports, requests, {}) is reports
    wanted = found.of_connections(ints([0, 2, 4]), ints([0, 1, 2]))
    assert wanted.tolist() == [[1, 2, ABSENT], [10, 20, ABSENT]]


def test_a_request_log_shows_the_software_that_a_connection_reported_last() -> None:
    software = (ints([ABSENT, 5, 6, ABSENT]), ints([ABSENT, 50, 60, ABSENT]))
    exchanges: Any = SimpleNamespace(
        frames=SimpleNamespace(connections=[0] * 3), software=software, connection=ints([0, 1, 1, 2])
    )
    carried = ClientSoftware(ints([4, 40]))
    assert logged_software(exchanges, carried).tolist() == [[4, 6, ABSENT], [40, 60, ABSENT]]
    assert carried.hashes.tolist() == [ABSENT, ABSENT]


@given(st.lists(st.integers(-3, 100) | st.just(UNKNOWN), max_size=6))
def test_an_api_has_its_name_and_an_unknown_one_none(keys: list[int]) -> None:
    names = {api.key: api.name for api in APIS}
    assert API_NAMES.take(api_codes(ints(keys))).to_pylist() == [names.get(key) for key in keys]


def test_the_bytes_of_a_frame_are_those_that_were_captured_with_its_size() -> None:
    of = {"size": ints([UNKNOWN, 10, 10]), "lacking": ints([0, 0, 3])}
    assert present_bytes(of).tolist() == [0, 14, 11]


def endpoint(last: int, port: int) -> bytes:
    return bytes(10) + b"\xff\xff" + bytes([10, 0, 0, last]) + port.to_bytes(2, "big")


def test_a_connection_is_identified_by_its_endpoints_and_which_time_it_is() -> None:
    ends = [endpoint(1, 9092) + endpoint(2, 50_000), endpoint(1, 9092) + endpoint(3, 50_001)]
    first = connection_ids(ends).tolist()
    assert first == [hash_of(of + bytes(8)) for of in ends]
    assert connection_ids(ends, np.array([0, 258])).tolist() == [first[0], hash_of(ends[1] + (258).to_bytes(8, "big"))]


def test_the_server_is_the_other_end_than_the_client() -> None:
    ends = [endpoint(1, 9092) + endpoint(2, 50_000)] * 3
    frames: Any = SimpleNamespace(endpoints=ends, connections={"client": ints([0, 1, -1])})
    servers, clients = endpoint_texts(frames)
    assert servers.to_pylist() == ["10.0.0.2:50000", "10.0.0.1:9092", None]
    assert clients.to_pylist() == ["10.0.0.1:9092", "10.0.0.2:50000", None]
    assert endpoint_addresses(clients).to_pylist() == ["10.0.0.1", "10.0.0.2", None]
