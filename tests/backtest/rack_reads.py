"""Reads across racks (KIP-392): predictions of what each broker serves with and without fetch-from-follower, compared
with what it then serves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from schemas.tables import algorithms
from schemas.tables.gold_racks import RACK_READS
from tests.backtest.figures import Figures
from tests.backtest.rack_traffic import LAYOUTS, NO_RACK, WITH, WITHOUT, file_of, racks_of_clients
from tests.backtest.replays import Rows, replayed

T = RACK_READS


CAPTURED, LEADERS, PREFERRED = T.broker_rack, T.leader_rack, T.preferred_rack
"""The rack of the broker that serves."""
PREDICTED = ((WITHOUT, WITH, PREFERRED), (NO_RACK, WITH, PREFERRED), (WITH, WITHOUT, LEADERS))
"""(the capture from which a prediction is made, the capture with which it is compared, who serves there)."""


def compared(work: Path, repeats: int) -> Iterator[tuple[str, Figures]]:
    """What brokers would serve and what would cross racks, predicted from captures without and with the selector."""
    for name in LAYOUTS:
        runs = {how: rows(work, name, how, repeats) for how in (WITHOUT, NO_RACK, WITH)}
        for how, other, by in PREDICTED:
            seen, predicted = served(runs[other], CAPTURED, other), served(runs[how], by, how)
            yield f"{name}: {how} -> {other}", Figures([served(runs[how], CAPTURED, how)], [predicted], [seen])


@cache
def rows(work: Path, name: str, how: str, repeats: int) -> Rows:
    """What consumers read, and from which broker they would read. Consumers that name no rack get a stated one."""
    stated = racks_of_clients(name, how, repeats) if how == NO_RACK else {}
    captured = [f"client.{client}.client.rack={rack}" for client, rack in stated.items()]
    return replayed(algorithms.FETCH_MAX_BYTES, file_of(work, name, how), captured=captured).rows(RACK_READS)


def served(reads: Rows, rack: str, how: str) -> dict[str, Any]:
    """The bytes that brokers in each rack serve, and each consumer's bytes across racks, by name of figure."""
    of_racks, across = Counter[str](), Counter[str]()
    for row in reads:
        of_racks[row[rack]] += row[T.bytes]
        across[row[T.client_id].replace(f"-{how}", "")] += row[T.bytes] * (row[rack] != row[T.client_rack])
    racks = {f"bytes of brokers in {name}": count for name, count in sorted(of_racks.items())}
    return racks | {f"across racks, {client}": across[client] for client in sorted(across)}
