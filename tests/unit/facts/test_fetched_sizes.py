"""The uncompressed sizes of fetched batches, for runs that sample records."""

from __future__ import annotations

import gzip
from functools import partial
from typing import Any

import pytest

from schemas.wire.produce import PRODUCE_REQUEST
from tests.unit.capture.conversations import asks
from tests.unit.facts.brokers import asked, tables, turns
from tests.unit.facts.test_fact_rows import fetched, returned, wanted
from tests.unit.wire.encoding import record
from tests.unit.wire.test_record_batches import message, record_batch
from udfs.facts import record_batch_rows, record_sizes
from udfs.facts.record_sampling import SAMPLE_EVERY, RecordSampling
from udfs.wire.records import Budget

GZIP, CONTENT = 1, b"a" * 500
PLAIN = record_batch(base_offset=100)
COMPRESSED = record_batch(base_offset=103, attributes=GZIP, records=gzip.compress(CONTENT))
UNREADABLE = record_batch(base_offset=106, attributes=GZIP, records=b"no gzip")
CUT = COMPRESSED[:-1]


def sizes(records: RecordSampling | None, **request: Any) -> list[tuple[int | None, str | None]]:
    answer = [returned(b"t", (0, PLAIN + COMPRESSED + UNREADABLE + CUT))]
    rows = tables(*turns(*fetched([wanted(b"t", 0)], answer, **request)), records=records)["record_batches"]
    in_order = sorted(rows, key=lambda row: int(row["position"]))
    return [(row["uncompressed_bytes"], row["records_fault"]) for row in in_order]


def test_a_compressed_batch_that_a_consumer_fetched_is_measured_and_a_cut_one_is_not() -> None:
    assert sizes(RecordSampling()) == [(None, None), (len(CONTENT), None), (None, "unreadable"), (None, None)]


@pytest.mark.parametrize(("records", "of"), [(None, {}), (RecordSampling(), {"replica_id": 2})])
def test_no_batch_is_read_without_sampling_or_if_a_follower_fetched_it(
    records: RecordSampling | None, of: dict[str, int]
) -> None:
    assert sizes(records, **of) == [(None, None)] * 4


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_decompressed_bytes_are_limited_for_each_message_wherever_chunks_end(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(record_batch_rows, "Budget", partial(Budget, 3 * len(CONTENT)))
    answer = [returned(b"t", (0, 2 * COMPRESSED))], [returned(b"t", (0, 4 * COMPRESSED))]
    frames = [fetched([wanted(b"t", 0)], topics, correlation_id=i) for i, topics in enumerate((*answer, *answer))]
    segments = turns(*(part for pair in frames for part in pair))
    found = tables(*segments, rows=rows, records=RecordSampling())["record_batches"]
    faults = [(row["exchange_no"], row["position"]) for row in found if row["records_fault"] == "excessive"]
    assert sorted(faults) == [(1, 3), (3, 3)]
    assert len([row for row in found if row["uncompressed_bytes"] == len(CONTENT)]) == 2 * (2 + 3)


@pytest.mark.parametrize("together", [1, 1 << 20])
def test_sizes_of_records_do_not_depend_on_how_many_are_held_at_a_time(
    monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(record_sizes, "HELD_BYTES", together)
    records = b"".join(record(at, at, None, b"value") for at in range(3))
    sent = (
        record_batch(records=records, count=3) + UNREADABLE,
        message(1, 0),
        record_batch(records=records, count=3),
    )
    data = [{"index": index, "records": batch} for index, batch in enumerate(sent)]
    request = asked(PRODUCE_REQUEST, 7, 1, acks=-1, topic_data=[{"name": b"t", "partition_data": data}])
    found = tables(asks(request), records=RecordSampling())["record_batches"]
    told = {(row["partition"], row["position"]): (row["record_sizes"], row["records_fault"]) for row in found}
    sizes = [len(record(0, 0, None, b"value")) - 4] * 3
    assert told == {
        (0, 0): (sizes, None),
        (0, 1): (None, "unreadable"),
        (1, 0): (None, "old_format"),
        (2, 0): (sizes, None),
    }


def test_some_produced_batches_chosen_by_their_checksums_are_compressed_again() -> None:
    records = [b"".join(record(at, 0, None, bytes([n])) for at in range(16)) for n in range(12)]
    sent = [record_batch(records=gzip.compress(some, mtime=0), attributes=GZIP, count=16) for some in records]
    data = [{"index": index, "records": batch} for index, batch in enumerate(sent)]
    request = asked(PRODUCE_REQUEST, 7, 1, acks=-1, topic_data=[{"name": b"t", "partition_data": data}])
    found = tables(asks(request), records=RecordSampling())["record_batches"]
    anew = {row["partition"] for row in found if row["recompressed_bytes"] is not None}
    checksums = [int.from_bytes(batch[17:21], "big") for batch in sent]
    assert anew == {index for index, checksum in enumerate(checksums) if checksum % SAMPLE_EVERY == 0}
    assert 0 < len(anew) < len(sent)
