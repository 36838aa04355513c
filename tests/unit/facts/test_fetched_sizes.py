"""What fetched batches are without compression, where a replay asks for it."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from tests.unit.facts.brokers import tables, turns
from tests.unit.facts.test_fact_rows import fetched, returned, wanted
from tests.unit.wire.test_record_batches import record_batch
from udfs.facts.asked_records import Asked

GZIP, CONTENT = 1, b"a" * 500
PLAIN = record_batch(base_offset=100)
COMPRESSED = record_batch(base_offset=103, attributes=GZIP, records=gzip.compress(CONTENT))
UNREADABLE = record_batch(base_offset=106, attributes=GZIP, records=b"no gzip")
CUT = COMPRESSED[:-1]


def sizes(records: Asked | None, **request: Any) -> list[tuple[int | None, str | None]]:
    answer = [returned(b"t", (0, PLAIN + COMPRESSED + UNREADABLE + CUT))]
    rows = tables(*turns(*fetched([wanted(b"t", 0)], answer, **request)), records=records)["record_batches"]
    in_order = sorted(rows, key=lambda row: int(row["position"]))
    return [(row["uncompressed_bytes"], row["records_fault"]) for row in in_order]


def test_a_compressed_batch_that_a_consumer_fetched_is_measured_and_a_cut_one_is_not() -> None:
    assert sizes(Asked()) == [(None, None), (len(CONTENT), None), (None, "unreadable"), (None, None)]


@pytest.mark.parametrize(("records", "of"), [(None, {}), (Asked(), {"replica_id": 2})])
def test_nothing_is_measured_unasked_nor_what_a_follower_fetched(records: Asked | None, of: dict[str, int]) -> None:
    assert sizes(records, **of) == [(None, None)] * 4
