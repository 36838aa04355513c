"""The capture sets of a lake, and which one a job works on: the named one, else the one written last."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.lake.delta_tables import different_values, has_table, identities_in, read_table, stored_rows, table_to_read
from jobs.lake.table_address import place_of_layers
from jobs.scenarios.scenario import Scenario, with_names
from jobs.terminal.screen import printable_text, with_rest_count
from jobs.terminal.wording import utc_time
from jobs.version import pseudonym_key_in
from schemas.tables.gold import RUNS
from schemas.tables.silver import CAPTURES
from udfs.errors import ArgumentError, LakeError
from udfs.facts.arrow_tables import arrow_schema
from udfs.facts.pseudonyms import Pseudonyms, is_given_pseudonym

BY_FLAG = "--capture=ID"
"""How a command line names a capture set."""
MOST_FILES, MOST_SETS, MOST_OTHERS = 3, 20, 3
"""The most that are shown: files of a set, sets in a list, other sets in the line that says which one is used."""
WRITTEN = "written"
_C = CAPTURES
_OF_FILES = tuple(map(str, (_C.capture_id, _C.file_no, _C.path, _C.first_time, _C.last_time)))


class CaptureSet(NamedTuple):
    """A capture set: its id, how many files it has, the paths of the first ones, and the times of its first and last
    packet or line in UTC, None if it has none.
    """

    capture_id: str
    files: int
    first_paths: Sequence[str]
    first_time: datetime | None
    last_time: datetime | None

    def __str__(self) -> str:
        names = with_rest_count((printable_text(PurePosixPath(path).name) for path in self.first_paths), self.files)
        return f"{self.capture_id} ({', '.join(names)}{self._times()})"

    def _times(self) -> str:
        if self.first_time is None or self.last_time is None:
            return ""
        return f"; {utc_time(self.first_time).removesuffix(' UTC')} to {utc_time(self.last_time)}"


@dataclass(frozen=True)
class KnownSets:
    """The capture sets of a lake: their ids, the one whose rows were written last first, and how sets are read."""

    ids: Sequence[str] = ()
    read: Callable[[Sequence[str]], list[CaptureSet]] = lambda _: []

    def of(self, ids: Iterable[str]) -> list[CaptureSet]:
        """The sets with these ids, each once, the one written last first. The rows of other sets are not read."""
        wanted = {*ids}
        return self.read([one for one in self.ids if one in wanted])


def check_names(spark: SparkSession, lake: str, pseudonyms: Pseudonyms | None) -> None:
    """Raises LakeError if the lake has a capture set with names of another kind: with pseudonyms under another key
    than these, or, without pseudonyms here, under any key.
    """
    t = CAPTURES
    if not has_table(spark, lake, t):
        return
    key_id = "" if pseudonyms is None else pseudonyms.key_id
    others = sorted(
        (capture_id, pseudonym_key_in(decoder))
        for capture_id, decoder in _decoders(spark, lake)
        if pseudonym_key_in(decoder) != key_id
    )
    if others:
        ids = ", ".join(with_rest_count((capture_id for capture_id, _ in others[:MOST_OTHERS]), len(others)))
        raise LakeError(_other_names_text(lake, ids, key_id, {key for _, key in others}))


def _decoders(spark: SparkSession, lake: str) -> set[tuple[str, str]]:
    """(capture_id, decoder) of each capture set of a lake that has the table `captures`."""
    t = CAPTURES
    values = different_values(spark, lake, t, (t.capture_id, t.decoder))
    return {(str(row[t.capture_id]), str(row[t.decoder])) for row in values.to_pylist()}


def decoder_of_set(spark: SparkSession, lake: str, capture_id: str) -> str:
    """What decoded the capture set, as in the table `captures`. Raises LakeError if there is no such set."""
    row = stored_rows(spark, lake, CAPTURES, capture_id).select(CAPTURES.decoder).first()
    if row is None:
        raise LakeError(f"{lake}: no capture set {capture_id}; run `ingest` with its captures and this --lake first")
    return str(row[0])


def check_topic_names(lake: str, decoded_by: str, scenario: Scenario) -> None:
    """Raises ArgumentError if a scenario's settings or aims name topics, clients or users of a pseudonymised capture
    set, because the table `runs` would then have these names.

    decoded_by: what decoded the capture set, as in the table `captures`.
    """
    named = {(kind, name) for aim in scenario.aims.values() for kind, names in aim.whom.items() for name in names}

    def noted(kind: str, name: str) -> str:
        named.add((kind, name))
        return name

    with_names(scenario, noted)
    real = sorted(name for kind, name in named if not is_given_pseudonym(kind, name))
    if pseudonym_key_in(decoded_by) and real:
        raise ArgumentError(
            f"{lake} has pseudonyms, and settings or aims of this run name {', '.join(map(printable_text, real))}. "
            "Name them by their pseudonyms, as silver tables do, or run `pipeline` with the captures and "
            "--pseudonymise=KEYFILE"
        )


def _other_names_text(lake: str, ids: str, key_id: str, keys: set[str]) -> str:
    if "" in keys:
        return (
            f"{lake} has names that are not pseudonymised, of capture {ids}. "
            "Files of earlier versions of its tables would keep them: name another folder by --lake"
        )
    state = f"{lake} has names that are pseudonymised, of capture {ids}"
    if not key_id:
        return (
            f"{state}, and real names would come beside them: give --pseudonymise=KEYFILE with the key of that "
            "capture, or name another folder by --lake"
        )
    return (
        f"{state}, under another key than --pseudonymise gives. One name would be two in it: give the file of that "
        "key, or name another folder by --lake"
    )


def check_captures(spark: SparkSession, lake: str) -> None:
    """Raises LakeError if the lake has no captures because only `size` has written it; the message says what it has."""
    if has_table(spark, lake, CAPTURES) or not has_table(spark, lake, RUNS):
        return
    runs = sorted(row[0] for row in identities_in(spark, lake, RUNS).collect())
    listed = ", ".join(with_rest_count(runs[:MOST_OTHERS], len(runs)))
    raise LakeError(
        f"{lake} has no captures, only runs of `size`: {listed}. The same `size` prints its answer again, and "
        f"{place_of_layers(lake, RUNS)[0]} has its tables; everything else is about captures: run `pipeline` with "
        "captures and this --lake first"
    )


def known_sets(spark: SparkSession, lake: str) -> KnownSets:
    """The capture sets of a lake. Raises LakeError if there is no table of captures.

    When a set was written is in Delta's log, and in no column, so that tables do not depend on the wall clock. It does
    not come from Delta's transactions, because the log forgets transactions after a month.
    """
    check_captures(spark, lake)
    local, column = table_to_read(spark, lake, CAPTURES), str(CAPTURES.capture_id)
    if local is None:
        sets = {one.capture_id: one for one in sets_of_files(_files_by_spark(spark, lake))}
        return KnownSets(tuple(sets), lambda ids: [sets[one] for one in ids])
    written, schema = local.written(column), pa.schema([arrow_schema(CAPTURES).field(name) for name in _OF_FILES])

    def read(ids: Sequence[str]) -> list[CaptureSet]:
        rows = local.rows(local.files_of(column, ids), schema, column)
        at = pa.array([written[str(one)] for one in rows[column].to_pylist()], pa.int64())
        return sets_of_files(rows.append_column(WRITTEN, at))

    return KnownSets(tuple(sorted(written, key=lambda one: (-written[one], one))), read)


def capture_sets(spark: SparkSession, lake: str) -> list[CaptureSet]:
    """The capture sets of a lake; the one whose rows were written last comes first. Raises LakeError if there is no
    table of captures.
    """
    sets = known_sets(spark, lake)
    return sets.of(sets.ids)


def capture_set(spark: SparkSession, lake: str, capture_id: str) -> CaptureSet:
    """The capture set with this id; without files if the lake has none. Raises LakeError as `stored_rows` does."""
    rows = stored_rows(spark, lake, CAPTURES, capture_id).select(*_OF_FILES, F.lit(0).alias(WRITTEN))
    return next(iter(sets_of_files(rows.toArrow())), CaptureSet(capture_id, 0, (), None, None))


def capture_ids(spark: SparkSession, lake: str) -> set[str]:
    """The ids of a lake's capture sets. Raises LakeError if there is no table of captures."""
    t = CAPTURES
    local = table_to_read(spark, lake, t)
    if local is not None:
        return set(local.values(str(t.capture_id)))
    return {row[0] for row in read_table(spark, lake, t).select(t.capture_id).distinct().collect()}


def sets_of_files(files: pa.Table) -> list[CaptureSet]:
    """The capture sets of files; the one that was written last comes first.

    files: columns of `captures`, and WRITTEN, when the file with the row was written.
    """
    t = CAPTURES
    in_order = files.sort_by([(str(t.capture_id), "ascending"), (str(t.file_no), "ascending")])
    sets = in_order.group_by(str(t.capture_id), use_threads=False).aggregate(
        [(str(t.path), "list"), (str(t.first_time), "min"), (str(t.last_time), "max"), (WRITTEN, "max")]
    )
    newest_first = sets.sort_by([(f"{WRITTEN}_max", "descending"), (str(t.capture_id), "ascending")])
    return [
        CaptureSet(
            row[t.capture_id], len(row[f"{t.path}_list"]), row[f"{t.path}_list"][:MOST_FILES],
            row[f"{t.first_time}_min"], row[f"{t.last_time}_max"],
        )
        for row in newest_first.to_pylist()
    ]  # fmt: skip


def _files_by_spark(spark: SparkSession, lake: str) -> pa.Table:
    """As `sets_of_files` takes them, in a lake that only Spark reaches."""
    stored = read_table(spark, lake, CAPTURES, with_files=True)
    if not stored.inputFiles():  # the case while the only set is ingested again
        return stored.select(*_OF_FILES, F.lit(0).alias(WRITTEN)).toArrow()
    return stored.select(*_OF_FILES, F.unix_micros("_metadata.file_modification_time").alias(WRITTEN)).toArrow()


def choose_capture(spark: SparkSession, lake: str, named: str | None, how: str = BY_FLAG) -> str:
    """The id of the named capture set, else of the one whose rows were written last.

    If the lake has several, stderr says which one is used. how: the flag or argument by which a user names another one.
    Raises LakeError if there is none, ArgumentError if the named one does not exist.
    """
    sets = known_sets(spark, lake)
    if not sets.ids:
        raise LakeError(f"{lake}: no capture was ingested; run `ingest` with captures and this --lake first")
    chosen = sets.ids[0] if named is None else named
    if chosen not in sets.ids:
        shown = with_rest_count(map(str, sets.of(sets.ids[:MOST_SETS])), len(sets.ids))
        raise ArgumentError("\n  ".join([f"{lake}: no capture set {named}; it has", *shown]))
    if len(sets.ids) > 1:
        why = "written last" if named is None else "as named"
        others = [one for one in sets.ids if one != chosen]
        texts = {one.capture_id: str(one) for one in sets.of([chosen, *others[:MOST_OTHERS]])}
        listed = ", ".join(with_rest_count([texts[one] for one in others[:MOST_OTHERS]], len(others)))
        sys.stderr.write(f"refetch: capture set {texts[chosen]}, {why}; {how} names another of this lake's: {listed}\n")
    return chosen
