"""The figures of a pool that have a range."""

from __future__ import annotations

from udfs.columns.records import new_records
from udfs.replay.consumer_memory.pool_ranges import FIGURES, figures_of
from udfs.replay.consumer_memory.state import POOL_OUTCOME


def test_times_are_by_the_clock_of_clients_and_shares_and_bytes_do_not_depend_on_it() -> None:
    """With twice the traffic, the clock of the outcomes is twice as fast as that of the clients."""
    outcome = new_records(
        POOL_OUTCOME,
        1,
        used_max=7,
        smallest_pool=8,
        waits=3,
        longest_us=4_000,
        depleted_us=250,
        began_at=100,
        ended_at=1_100,
    )
    assert [*FIGURES] == ["used_bytes_max", "smallest_pool_bytes", "waits", "wait_ms_max", "depleted_share"]
    assert figures_of(outcome, 1.0).tolist() == [[7, 8, 3, 4.0, 0.25]]
    assert figures_of(outcome, 2.0).tolist() == [[7, 8, 3, 2.0, 0.25]]
