"""Rows of small batches are packed together; none is lost, and they keep their order."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.silver import CONNECTIONS
from schemas.tables.table import Table
from tests.packed import unpack
from udfs.columns.arrow_columns import repeated_text_column
from udfs.facts import arrow_tables
from udfs.facts.arrow_tables import HELD_BATCHES, arrow_schema, make_rows, pack_tables, plain_rows


def connections(first: int, count: int) -> tuple[Table, pa.RecordBatch]:
    rows: list[dict[str, int]] = [{CONNECTIONS.connection_id: number} for number in range(first, first + count)]
    return CONNECTIONS, pa.RecordBatch.from_pylist(rows, schema=arrow_schema(CONNECTIONS))


def fidelity(reader: str, count: int) -> tuple[Table, pa.RecordBatch]:
    """Rows with dictionary columns, as replays make them: each batch has each text once."""
    columns = {f.name: pa.nulls(count, f.type) for f in arrow_schema(FIDELITY)}
    return FIDELITY, make_rows(FIDELITY, {**columns, FIDELITY.reader: repeated_text_column(reader, count)})


@pytest.mark.parametrize(("together", "packs"), [(1, 4), (3, 2), (100, 1)])
def test_small_batches_of_a_table_are_packed_together(together: int, packs: int) -> None:
    found = list(pack_tables([connections(first, 1 + first % 2) for first in (0, 1, 3, 4)], together))
    assert len(found) == packs
    numbers = [row[CONNECTIONS.connection_id] for batch in unpack(found) for row in batch.to_pylist()]
    assert numbers == [0, 1, 2, 3, 4, 4]


def test_a_few_large_rows_are_packed_without_waiting_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_tables, "HELD_BYTES", 2 * connections(0, 1)[1].get_total_buffer_size())
    assert len(list(pack_tables(connections(number, 1) for number in range(6)))) == 3


def test_rows_of_batches_with_different_dictionaries_keep_their_texts() -> None:
    made = [fidelity("consumer", 2), connections(0, 1), fidelity("follower", 1), fidelity("consumer", 1)]
    found = {batch["table"][0].as_py(): batch for batch in pack_tables(made)}
    assert set(found) == {"fidelity", "connections"}
    readers = [row[FIDELITY.reader] for batch in unpack([found["fidelity"]]) for row in batch.to_pylist()]
    assert readers == ["consumer", "consumer", "follower", "consumer"]


def test_a_batch_with_plain_texts_may_precede_one_with_a_dictionary() -> None:
    table, plain = fidelity("follower", 1)
    decoded = pa.RecordBatch.from_arrays(
        [c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in plain.columns],
        names=plain.schema.names,
    )
    found = unpack(pack_tables([(table, decoded), fidelity("consumer", 1)]))
    assert [row[FIDELITY.reader] for batch in found for row in batch.to_pylist()] == ["follower", "consumer"]


@pytest.mark.parametrize("empty", [fidelity("consumer", 0), connections(0, 0)])
def test_many_batches_are_joined_into_one_whether_or_not_some_are_empty(empty: tuple[Table, pa.RecordBatch]) -> None:
    readers = [f"reader {number}" for number in range(3 * HELD_BATCHES)]
    (found,) = pack_tables(made for reader in readers for made in (empty, fidelity(reader, 1)))
    assert [row[FIDELITY.reader] for batch in unpack([found]) for row in batch.to_pylist()] == readers


@pytest.mark.parametrize(("most", "batches"), [(6 * len("consumer"), 1), (6 * len("consumer") - 1, 2)])
def test_rows_are_cut_only_if_their_texts_may_exceed_what_a_column_can_have(
    monkeypatch: pytest.MonkeyPatch, most: int, batches: int
) -> None:
    monkeypatch.setattr(arrow_tables, "MOST_TEXT_BYTES", most)
    monkeypatch.setattr(arrow_tables, "PACKED_ROWS", 3)
    found = list(plain_rows(fidelity("consumer", 6)[1]))
    assert len(found) == batches
    assert [row[FIDELITY.reader] for batch in found for row in batch.to_pylist()] == ["consumer"] * 6
