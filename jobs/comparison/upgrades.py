"""Question 18 over two runs: what changed when a client changed versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.comparison.figures import Change, Figure
from schemas.tables.silver import EXCHANGES

SOFTWARE_ROW = ("fetches", "full", "not_found", "sessions", "request_bytes", "response_bytes")


@dataclass(frozen=True)
class Upgrade:
    """A client's software that fetches with other versions than before, and how its fetches changed.

    was: the versions that are gone; all versions of the first run if none is gone. now: the new versions. apis: the
    oldest and the newest version of Fetch that they use.
    """

    name: str
    was: tuple[str, ...]
    now: tuple[str, ...]
    apis: tuple[tuple[int, int], tuple[int, int]]
    changes: tuple[Change, ...]


def find_upgrades(before: Sequence[Any], after: Sequence[Any]) -> list[Upgrade]:
    """An upgrade for each software that has new versions in the second run.

    before, after: rows of the query `fetching_software`.
    """
    x = EXCHANGES
    names = sorted(
        {row[x.client_software_name] for row in before} & {row[x.client_software_name] for row in after} - {None}
    )
    all_of = (upgrade_of_software(name, rows_by_version(name, before), rows_by_version(name, after)) for name in names)
    return [upgraded for upgraded in all_of if upgraded is not None]


def rows_by_version(name: str, rows: Iterable[Any]) -> dict[str, Any]:
    """The rows of one software, by version."""
    x = EXCHANGES
    return {row[x.client_software_version] or "": row for row in rows if row[x.client_software_name] == name}


def upgrade_of_software(name: str, before: dict[str, Any], after: dict[str, Any]) -> Upgrade | None:
    """What changed for one software; None if no version is new."""
    now = [version for version in after if version not in before]
    was = [version for version in before if version not in after] or list(before)
    if not now:
        return None
    old, new = [before[version] for version in was], [after[version] for version in now]
    apis = tuple((min(row["oldest"] for row in rows), max(row["newest"] for row in rows)) for rows in (old, new))
    return Upgrade(name, tuple(sorted(was)), tuple(sorted(now)), (apis[0], apis[1]), fetch_changes(name, old, new))


def fetch_changes(name: str, old: Sequence[Any], new: Sequence[Any]) -> tuple[Change, ...]:
    """How fetches of the old and the new versions differ."""
    was, now = fetch_figures(old), fetch_figures(new)
    return tuple(Change("versions", "software", name, metric, was[metric], now[metric]) for metric in was)


def fetch_figures(rows: Sequence[Any]) -> dict[str, Figure]:
    """Shares of fetches and sizes of fetches, over some versions together."""
    sums = {name: sum(row[name] for row in rows) for name in SOFTWARE_ROW}
    fetches = sums["fetches"]
    return {
        "full_fetch_share": Figure(sums["full"] / fetches, cases=fetches),
        "not_found_share": Figure(sums["not_found"] / fetches, cases=fetches),
        "bytes_a_request": Figure(sums["request_bytes"] / fetches),
        "bytes_a_response": Figure(sums["response_bytes"] / fetches),
    }
