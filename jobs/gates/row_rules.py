"""Rules about single rows, checked in the pass that writes a table. Refused rows go to quarantine.

If a warning or critical rule refuses a silver row that belongs to an exchange, the row is taken out of its table;
`quarantine` then has the whole row and accounts for its bytes. Rows of other silver tables stay where they are, because
the sums of bytes are made from them. Gold rows stay too: they have no bytes to account for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from jobs.gates.rules import Gates, RowRule
from jobs.gates.set_rules import example_texts
from jobs.gates.views import Subject, expression_with_lanes, rows_to_check
from jobs.lake.declared_columns import spark_schema
from jobs.lake.delta_tables import has_table
from schemas.tables.silver import EXCHANGES, QUARANTINE
from schemas.tables.table import Table

VIOLATIONS, CHECKED = "violations", "rows checked"
REFUSED_ROW = "row"
"""quarantine.direction of a row that a gate refused."""
BETWEEN_RULES = ", "
"""The separator in quarantine.reason if several rules refused the same row."""
JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
"""Options with which Spark's JSON keeps microseconds."""


@dataclass(frozen=True)
class Counts:
    """How many rows of a table were checked, and how many each rule refused."""

    checked: int
    refused: Mapping[str, int]


@dataclass
class Watch:
    """The rules on the rows of tables that are being written, and what they found."""

    gates: Gates = field(default_factory=Gates)
    lanes: tuple[str, ...] = ()
    _scanned: dict[Table, Counts] = field(default_factory=dict)
    _seen: dict[Table, Observation] = field(default_factory=dict)
    _marked: dict[Table, DataFrame] = field(default_factory=dict)

    def has_rules(self, table: Table) -> bool:
        """Whether there are rules on rows of this table."""
        return bool(self.gates.row_rules(table))

    def over(self, rows: DataFrame, table: Table) -> DataFrame:
        """The rows to write instead of these: without those that rules take out. Rows are counted while they are
        written.
        """
        rules, observation = self.gates.row_rules(table), Observation()
        self._seen[table] = observation
        marked = rows.withColumn(VIOLATIONS, violated_rules(rules, self.lanes))
        marked = marked.observe(
            observation, F.count(F.lit(1)).alias(CHECKED), *(_count_violations(rule) for rule in rules)
        )
        out = self._taken_out_by(table)
        if out:
            self._marked[table] = marked
            marked = marked.where(~F.arrays_overlap(VIOLATIONS, F.array(*map(F.lit, out))))
        return marked.drop(VIOLATIONS)

    def note(self, table: Table, rows: int) -> None:
        """Count these rows of a table as written and not refused by any rule."""
        self._seen.pop(table, None)
        self._scanned[table] = Counts(rows, {rule.name: 0 for rule in self.gates.row_rules(table)})

    def with_rows_to_take_out(self, written: Mapping[Table, DataFrame], rows: Mapping[Table, int]) -> list[Table]:
        """The tables with rows that have to be taken out. Counts what rules refuse in each table.

        written: the rows of tables whose files are already written, by table. rows: how many rows each table has.
        """
        for table in written:
            self.note(table, rows[table])
        watched = {table: (own, self.gates.row_rules(table)) for table, own in written.items() if rows[table]}
        counts = count_refused({table: (own, rules) for table, (own, rules) in watched.items() if rules}, self.lanes)
        self._scanned |= counts
        return [table for table in counts if any(counts[table].refused[name] for name in self._taken_out_by(table))]

    def counts(self) -> dict[Table, Counts]:
        """What was found in the tables that have been written so far."""
        by_table = {table: dict(observation.get) for table, observation in self._seen.items()}
        return self._scanned | {table: Counts(counts.pop(CHECKED), counts) for table, counts in by_table.items()}

    def refused_rows(self) -> DataFrame | None:
        """Rows of `quarantine` for all rows taken out of the tables so far; None if none were."""
        counts, refused = self.counts(), []
        for table, rows in self._marked.items():
            out = self._taken_out_by(table)
            if any(counts[table].refused[name] for name in out):
                by = rows.withColumn(VIOLATIONS, F.array_intersect(VIOLATIONS, F.array(*map(F.lit, out))))
                refused.append(rows_for_quarantine(by.where(F.size(VIOLATIONS) > 0), table))
        return reduce(DataFrame.unionByName, refused) if refused else None

    def _taken_out_by(self, table: Table) -> list[str]:
        return [rule.name for rule in self.gates.row_rules(table) if is_taken_out(rule, table)]


def is_taken_out(rule: RowRule, table: Table) -> bool:
    """Whether the rule puts a row of this table into quarantine."""
    return _holds_exchanges(table) and rule.severity != "info"


def _holds_exchanges(table: Table) -> bool:
    """Whether a row belongs to an exchange. Its bytes can then be accounted for in quarantine."""
    return table.layer == "silver" and EXCHANGES.exchange_no in table.columns


def violated_rules(rules: Sequence[RowRule], lanes: Iterable[str]) -> Column:
    """The names of the rules that a row does not satisfy, in their order. A rule that gives null is not satisfied."""
    lanes = tuple(lanes)
    names = [F.when(~_is_satisfied(rule, lanes), F.lit(rule.name)) for rule in rules]
    return F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")


def _is_satisfied(rule: RowRule, lanes: Iterable[str]) -> Column:
    return F.coalesce(F.expr(expression_with_lanes(rule, lanes)), F.lit(False))


def _count_violations(rule: RowRule) -> Column:
    return F.count_if(F.array_contains(VIOLATIONS, rule.name)).alias(rule.name)


def rows_for_quarantine(rows: DataFrame, table: Table) -> DataFrame:
    """Rows of `quarantine` from rows of the table with their violations."""
    t, x = QUARANTINE, EXCHANGES
    values = {
        t.direction: F.lit(REFUSED_ROW),
        t.reason: F.array_join(VIOLATIONS, BETWEEN_RULES),
        t.bytes: F.col(x.request_bytes) + F.col(x.response_bytes) if table == EXCHANGES else F.lit(0),
        t.missing_bytes: F.col(x.missing_bytes) if table == EXCHANGES else F.lit(0),
        t.time: _first_of_columns(table, x.request_time, x.response_time),
        t.packet: _first_of_columns(table, x.request_packet, x.response_packet, x.log_line),
        t.refused_from: F.lit(table.name),
        t.refused_row: F.to_json(F.struct(*table.columns), JSON),
    }
    own = {t.capture_id, t.connection_id, t.exchange_no}
    cells = {c: F.col(c) if c in own else values.get(c, F.lit(None)) for c in t.columns}
    return rows.select(*(cell.cast(column.type).alias(column) for column, cell in cells.items()))


def _first_of_columns(table: Table, *columns: str) -> Column:
    """The first of these columns that the table has and that is not null."""
    return F.coalesce(*(F.col(column) for column in columns if column in table.columns), F.lit(None))


def count_by_scan(
    spark: SparkSession, lake: str, gates: Gates, subject: Subject, among: Collection[Table]
) -> dict[Table, Counts]:
    """The counts of the tables that the lake has and about which the gate has rules. They include the rows that were
    taken out when the tables were written.

    among: only these tables are counted.
    """
    tables = dict.fromkeys(table for _, table in gates.pairs(subject.gate) if table in among)
    return count_refused(
        {
            table: (rows_as_decoded(spark, lake, subject, table), gates.row_rules(table))
            for table in tables
            if has_table(spark, lake, table)
        },
        subject.lanes,
    )


def count_refused(
    tables: Mapping[Table, tuple[DataFrame, Sequence[RowRule]]], lanes: Sequence[str]
) -> dict[Table, Counts]:
    """How many rows each table has and how many each rule refuses, by table, counted in one Spark job."""
    counts = []
    for table, (rows, rules) in tables.items():
        each = F.array(F.count(F.lit(1)), *(F.count_if(~_is_satisfied(rule, lanes)) for rule in rules))
        counts.append(rows.agg(each.alias("counts")).select(F.lit(table.name), "counts"))
    by_name: dict[str, list[int]] = dict(reduce(DataFrame.unionAll, counts).collect()) if counts else {}
    return {
        table: Counts(by_name[table.name][0], dict(zip([r.name for r in rules], by_name[table.name][1:], strict=True)))
        for table, (_, rules) in tables.items()
    }


def refused_examples(spark: SparkSession, lake: str, rule: RowRule, table: Table, subject: Subject) -> list[str]:
    """Some rows that a rule refuses, each as text with its key columns."""
    keys = [column for column in table.key if column != table.replaced_by]
    rows = rows_as_decoded(spark, lake, subject, table).where(~_is_satisfied(rule, subject.lanes))
    return example_texts(rows.select(*keys))


def rows_as_decoded(spark: SparkSession, lake: str, subject: Subject, table: Table) -> DataFrame:
    """A table's rows, including those that a gate took out."""
    rows = rows_to_check(spark, lake, subject, table)
    if not _holds_exchanges(table):
        return rows
    t = QUARANTINE
    out = rows_to_check(spark, lake, subject, t).where(F.col(t.refused_from) == table.name)
    whole = out.select(F.from_json(t.refused_row, spark_schema(table), JSON).alias("row")).select("row.*")
    return rows.unionByName(whole)
