"""Checks that the clients or topics that an aim is for are in the replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.find.lane_outcomes import KIND, NAME, READER, readers_of, rows_that_count, sums_by_scope, with_lanes
from jobs.find.scopes import judged_outcomes
from jobs.replays.algorithm import Algorithm, Source
from jobs.scenarios.aims import COLUMNS, Aim, is_meant
from jobs.terminal.screen import printable_text, with_rest_count
from schemas.tables.values import OF_CLUSTER
from udfs.errors import ArgumentError

MOST_NAMES = 20


def check_whom(source: Source, algorithm: Algorithm, aim: Aim) -> None:
    """Raises ArgumentError, with the existing names, if the replay as captured has no client or topic that the aim is
    for.
    """
    if not aim.whom:
        return
    packed = algorithm.packed(with_lanes(source, aim.algorithm, ())).persist()
    try:
        names = names_of(packed, aim)
        for kind, patterns in aim.whom.items():
            if not any(is_meant(name, patterns) for name in names[kind]):
                raise ArgumentError(nobody_of(kind, patterns, names[kind]))
        if sums_by_scope(packed, judged_outcomes(aim), rows_that_count(aim), {}).isEmpty():
            raise ArgumentError(f"--find: no producer that `{aim}` is for produces to a topic that it is for")
    finally:
        packed.unpersist()


def names_of(packed: DataFrame, aim: Aim) -> Mapping[str, list[str]]:
    """For each kind of scope that the aim is for, the names of the clients or topics in the rows."""
    by = {kind: COLUMNS[kind] for kind in aim.whom}
    rows = sums_by_scope(packed, judged_outcomes(aim), {READER: readers_of(aim)}, by).where(F.col(KIND) != OF_CLUSTER)
    pairs = sorted((row[KIND], row[NAME]) for row in rows.select(KIND, NAME).distinct().collect() if row[NAME])
    return {kind: [name for of, name in pairs if of == kind] for kind in by}


def nobody_of(kind: str, patterns: Sequence[str], names: Sequence[str]) -> str:
    """The message if no name matches the patterns, with the existing names."""
    there = ", ".join(with_rest_count(map(printable_text, names[:MOST_NAMES]), len(names))) or "none with a name"
    meant = " or ".join(f"`{printable_text(pattern)}`" for pattern in patterns)
    return f"--find: no {kind} in this replay is {meant}; there are {there}"
