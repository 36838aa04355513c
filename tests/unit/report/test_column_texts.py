"""Below a table of lanes stands what its columns show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from jobs.replays.batch_split import answers as batch_split
from jobs.replays.consumer_memory import answers as consumer_memory
from jobs.replays.consumer_memory import queue_answers
from jobs.replays.fetch_max_bytes import answers as fetch_max_bytes
from jobs.replays.fetch_max_bytes import producer_answers
from jobs.replays.partition_limits import answers as partition_limits
from jobs.replays.session_cache import answers as session_cache
from jobs.replays.session_cache import share_answers
from jobs.terminal.screen import Grid, grid_lines

TABLES: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = {
    "open loop": (fetch_max_bytes.OPEN_HEAD, fetch_max_bytes.OPEN_COLUMNS),
    "closed loop": (fetch_max_bytes.CLOSED_HEAD, fetch_max_bytes.CLOSED_COLUMNS),
    "quotas of producers": (producer_answers.PRODUCER_HEAD, producer_answers.PRODUCER_COLUMNS),
    "memory": (consumer_memory.HEAD, consumer_memory.COLUMNS),
    "queues": (queue_answers.HEAD, queue_answers.COLUMNS),
    "sessions": (session_cache.HEAD, session_cache.COLUMNS),
    "share sessions": (share_answers.SHARE_HEAD, share_answers.SHARE_COLUMNS),
    "splits": (batch_split.HEAD, batch_split.COLUMNS),
    "partition limits": (partition_limits.HEAD, partition_limits.COLUMNS),
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_that_are_explained_are_in_the_table_and_in_its_order(name: str) -> None:
    head, columns = TABLES[name]
    assert [of for of in head if of in columns] == [*columns]


def test_the_screen_has_the_notes_and_then_what_each_column_shows_beside_its_name() -> None:
    grid = Grid(("lane", "held"), [["captured", "1 B"]], ("lane",), ("A note.",), {"held": "bytes " * 20, "lane": "x"})
    assert grid_lines(grid, width=60)[2:] == [
        "    A note.",
        "    held  bytes bytes bytes bytes bytes bytes bytes bytes",
        "          bytes bytes bytes bytes bytes bytes bytes bytes",
        "          bytes bytes bytes bytes",
        "    lane  x",
    ]
