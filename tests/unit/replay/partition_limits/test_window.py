"""A window counts only the changes in it. Topics from before it exist."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import (
    LIMIT_TABLES,
    PARTITION_LIMIT_CURVE,
    PARTITION_LIMIT_HEADROOM,
    PARTITION_LIMIT_REFUSALS,
    PARTITION_LIMITS,
    PARTITIONS_PER_BROKER,
)
from schemas.tables.table import Table
from tests.packed import unpack
from tests.unit.replay.partition_limits.clusters import (
    BROKERS,
    CLUSTER_LIMIT,
    SEED,
    Row,
    Rows,
    changing,
    created,
    event_table,
    settings_of,
    shown,
)
from tests.unit.replay.partition_limits.test_replay import LANES, RICH
from udfs.replay.partition_limits.replay import replay_topics
from udfs.replay.shared.window import Window

P, R, H = PARTITION_LIMITS, PARTITION_LIMIT_REFUSALS, PARTITION_LIMIT_HEADROOM


def replay_in(begin: int | None, end: int | None, rows: Rows = RICH, lanes: Any = LANES) -> dict[Table, Rows]:
    whole = Window()
    window = Window(whole.begin if begin is None else begin, whole.end if end is None else end)
    settings = settings_of(lanes)._replace(window=window)
    found: dict[Table, Rows] = {table: [] for table in (FIDELITY, *LIMIT_TABLES)}
    by_name = {table.name: table for table in found}
    for packed in replay_topics(event_table([*BROKERS, *rows]).to_batches(), settings, "run", SEED):
        for name, one in zip(packed["table"].to_pylist(), range(packed.num_rows), strict=True):
            for part in unpack([packed.slice(one, 1)]):
                found[by_name[str(name)]] += part.to_pylist()
    return found


def counts(found: dict[Table, Rows]) -> Counter[tuple[Any, ...]]:
    """All counts: by lane, kind, prefix and client, and by metric of fidelity and client."""
    sums, f = Counter[tuple[Any, ...]](), FIDELITY
    keys = (P.scenario, P.kind, P.topic_prefix, P.client_id)
    for row in found[P]:
        sums.update({(*(row[k] for k in keys), c): v for c, v in row.items() if isinstance(v, int)})
    for row in found[f]:
        sums.update({(row[f.metric], row[f.client_id], c): row[c] for c in (f.checked, f.agreed, f.unknown)})
    return +sums


def refusals(found: dict[Table, Rows]) -> list[Row]:
    return sorted(found[R], key=lambda row: (row[R.scenario], row[R.exchange_no]))


def test_a_window_over_everything_is_no_window() -> None:
    assert replay_in(-1_000, 1_000) == replay_in(None, None)


@pytest.mark.parametrize("cut", range(2, 14))
def test_the_counts_before_a_time_and_from_it_on_add_up(cut: int) -> None:
    before, after, whole = replay_in(None, cut), replay_in(cut, None), replay_in(None, None)
    assert counts(before) + counts(after) == counts(whole)
    assert refusals({R: before[R] + after[R]}) == refusals(whole)
    curve = PARTITION_LIMIT_CURVE
    assert [row for row in whole[curve] if (row[curve.exchange_no] or 99) >= cut] == after[curve]


def test_topics_from_before_the_window_take_room() -> None:
    """With four replicas already there, a topic of seven does not fit into a limit of ten."""
    rows = [*shown("old", [[1], [2], [3], [1]]), created(5, "a", 7)]
    found = replay_in(4, None, rows, {"ten": {CLUSTER_LIMIT: 10}})
    assert [(row[R.present], row[R.asked]) for row in found[R]] == [(4, 7)]


def test_topics_that_were_there_take_room_in_a_window_before_all_changes() -> None:
    rows = [*shown("old", [[1], [2], [3], [1]]), created(5, "a", 7)]
    found = replay_in(None, 3, rows, {"ten": {CLUSTER_LIMIT: 10}})
    assert [(row[H.partitions], row[H.headroom]) for row in found[H]] == [(4, 6)]
    assert found[P] == found[R] == []


def test_headroom_is_that_of_the_windows_end() -> None:
    lanes = {"later": {CLUSTER_LIMIT: changing(20, (8, 50))}}
    rows = [created(2, "a", 4), created(6, "b", 5), created(9, "c", 6)]
    found = replay_in(4, 8, rows, lanes)
    assert [(row[H.limit_value], row[H.partitions], row[H.headroom]) for row in found[H]] == [(20, 9, 11)]
    b = PARTITIONS_PER_BROKER
    assert {row[b.at].microsecond for row in found[b]} == {5, 6}
