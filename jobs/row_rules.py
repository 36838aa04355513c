"""Rules about single rows, checked in the pass that writes a table: what is refused goes to quarantine.

A silver row of an exchange that a warning or critical rule refuses is taken out of its table; `quarantine` then has it
whole, and its bytes. Rows of other tables stay where they are, for the sums of bytes are made of them, and so do gold
rows, which have no bytes to account for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from jobs.gate_rules import Gates, RowRule
from jobs.gate_views import Subject, expression_of, rows_to_check
from jobs.set_rules import MOST_EXAMPLES, example, examples
from schemas.tables.silver import EXCHANGES, QUARANTINE
from schemas.tables.table import Table

VIOLATIONS, CHECKED = "violations", "rows checked"
REFUSED_ROW = "row"
"""quarantine.direction of a row that a gate refused."""
BETWEEN_RULES = ", "
"""In quarantine.reason, where several rules refused the same row."""


@dataclass(frozen=True)
class Counts:
    """Of a table: the rows that were checked, and those that each rule refused."""

    checked: int
    refused: Mapping[str, int]


@dataclass
class Watch:
    """The rules on the rows of tables that are being written, and what they found."""

    gates: Gates = field(default_factory=Gates)
    lanes: tuple[str, ...] = ()
    _seen: dict[Table, Observation] = field(default_factory=dict)
    _taken_out: dict[Table, DataFrame] = field(default_factory=dict)

    def over(self, rows: DataFrame, table: Table) -> DataFrame:
        """The rows to be written in the place of these; counts them while they are."""
        rules, seen = self.gates.row_rules(table), Observation()
        self._seen[table] = seen
        marked = rows.withColumn(VIOLATIONS, violated(rules, self.lanes))
        marked = marked.observe(seen, F.count(F.lit(1)).alias(CHECKED), *(_count(rule) for rule in rules))
        out = [rule.name for rule in rules if is_taken_out(rule, table)]
        if out:
            is_out = F.arrays_overlap(VIOLATIONS, F.array(*map(F.lit, out)))
            self._taken_out[table] = marked.where(is_out)
            marked = marked.where(~is_out)
        return marked.drop(VIOLATIONS)

    def counts(self) -> dict[Table, Counts]:
        """What was found in the tables that are written by now."""
        found = {table: dict(seen.get) for table, seen in self._seen.items()}
        return {table: Counts(counts.pop(CHECKED), counts) for table, counts in found.items()}

    def refused_rows(self) -> DataFrame | None:
        """Rows of `quarantine`, of all that was taken out of the tables written by now; None where nothing was."""
        counts = self.counts()
        out = {
            table: rows
            for table, rows in self._taken_out.items()
            if any(
                counts[table].refused[rule.name] for rule in self.gates.row_rules(table) if is_taken_out(rule, table)
            )
        }
        found = [quarantined(rows, table) for table, rows in out.items()]
        return reduce(DataFrame.unionByName, found) if found else None


def is_taken_out(rule: RowRule, table: Table) -> bool:
    """Whether the rule puts a row of this table into quarantine."""
    return table.layer == "silver" and EXCHANGES.exchange_no in table.columns and rule.severity != "info"


def violated(rules: Sequence[RowRule], lanes: Iterable[str]) -> Column:
    """The names of the rules that a row does not satisfy, in their order; what is null is not satisfied."""
    lanes = tuple(lanes)
    names = [F.when(~_satisfies(rule, lanes), F.lit(rule.name)) for rule in rules]
    return F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")


def _satisfies(rule: RowRule, lanes: Iterable[str]) -> Column:
    return F.coalesce(F.expr(expression_of(rule, lanes)), F.lit(False))


def _count(rule: RowRule) -> Column:
    return F.count_if(F.array_contains(VIOLATIONS, rule.name)).alias(rule.name)


def quarantined(rows: DataFrame, table: Table) -> DataFrame:
    """Rows of `quarantine` from rows of the table with their violations."""
    t, x = QUARANTINE, EXCHANGES
    values = {
        t.direction: F.lit(REFUSED_ROW),
        t.reason: F.array_join(VIOLATIONS, BETWEEN_RULES),
        t.bytes: F.col(x.request_bytes) + F.col(x.response_bytes) if table == EXCHANGES else F.lit(0),
        t.missing_bytes: F.col(x.missing_bytes) if table == EXCHANGES else F.lit(0),
        t.time: _first(table, x.request_time, x.response_time),
        t.packet: _first(table, x.request_packet, x.response_packet, x.log_line),
        t.refused_from: F.lit(table.name),
        t.refused_row: F.to_json(F.struct(*table.columns), {"ignoreNullFields": "false"}),
    }
    own = {t.capture_id, t.connection_id, t.exchange_no}
    cells = {c: F.col(c) if c in own else values.get(c, F.lit(None)) for c in t.columns}
    return rows.select(*(cell.cast(column.type).alias(column) for column, cell in cells.items()))


def _first(table: Table, *columns: str) -> Column:
    """The first of these columns that the table has and that is not null."""
    return F.coalesce(*(F.col(column) for column in columns if column in table.columns), F.lit(None))


def scanned(
    spark: SparkSession, lake: str, gates: Gates, subject: Subject, tables: Iterable[Table]
) -> dict[Table, Counts]:
    """The counts of tables that were written before, with what is in quarantine for a rule's sake."""
    wanted = list(dict.fromkeys(tables))
    if not wanted:
        return {}
    rules = {table: gates.row_rules(table) for table in wanted}
    counts = []
    for table in wanted:
        marked = rows_to_check(spark, lake, subject, table).withColumn(
            VIOLATIONS, violated(rules[table], subject.lanes)
        )
        each = F.array(F.count(F.lit(1)), *(_count(rule) for rule in rules[table]))
        counts.append(marked.agg(each.alias("counts")).select(F.lit(table.name), "counts"))
    out = taken_out_before(spark, lake, subject) if subject.gate == "silver" else {}
    found = {name: values for name, values in reduce(DataFrame.unionAll, counts).collect()}
    return {table: _with_quarantine(found[table.name], rules[table], out.get(table.name, {})) for table in wanted}


def _with_quarantine(counts: list[int], rules: Sequence[RowRule], out: Mapping[str, int]) -> Counts:
    """out: rows in quarantine by the rules that refused them, as quarantine.reason has them."""
    refused = {rule.name: count for rule, count in zip(rules, counts[1:], strict=True)}
    for reason, count in out.items():
        for name in set(reason.split(BETWEEN_RULES)) & set(refused):
            refused[name] += count
    return Counts(counts[0] + sum(out.values()), refused)


def taken_out_before(spark: SparkSession, lake: str, subject: Subject) -> dict[str, dict[str, int]]:
    """Rows in quarantine by the table they were in, and the rules that refused them."""
    t = QUARANTINE
    rows = rows_to_check(spark, lake, subject, t).where(F.col(t.refused_from).isNotNull())
    found: dict[str, dict[str, int]] = {}
    for table, reason, count in rows.groupBy(t.refused_from, t.reason).count().collect():
        found.setdefault(table, {})[reason] = count
    return found


def refused_examples(spark: SparkSession, lake: str, rule: RowRule, table: Table, subject: Subject) -> list[str]:
    """Keys of rows that a rule refuses, from quarantine and from the table itself."""
    keys = [column for column in table.key if column != table.replaced_by]
    found: list[str] = []
    if is_taken_out(rule, table):
        t = QUARANTINE
        is_its = F.array_contains(F.split(t.reason, BETWEEN_RULES), rule.name) & (F.col(t.refused_from) == table.name)
        out = rows_to_check(spark, lake, subject, t).where(is_its).orderBy(t.refused_row).select(t.refused_row)
        rows = [json.loads(row[0]) for row in out.limit(MOST_EXAMPLES).collect()]
        found = [example({key: row[key] for key in keys}) for row in rows]
    if len(found) < MOST_EXAMPLES:
        there = rows_to_check(spark, lake, subject, table).where(~_satisfies(rule, subject.lanes))
        found += examples(there.select(*keys))
    return found[:MOST_EXAMPLES]
