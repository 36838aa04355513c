"""How far the replays agree with the capture: question 20, and how far each answer can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.report_page.capture_contents import (
    NO_BYTES,
    is_of_logs,
    missing_direction,
    quality_row,
)
from jobs.report_page.other_brokers import other_brokers_text
from jobs.report_page.question import Axis, Findings, Plot, Question, rows_to_plot
from jobs.report_page.refusals import refusals_text
from jobs.report_page.semantics import semantics_text
from jobs.terminal.screen import Grid, share_text
from jobs.terminal.wording import LEAST_CASES, capitalized, percent, quantity
from schemas.tables.fidelity_reasons import reason_of
from schemas.tables.gold import FIDELITY
from schemas.tables.reason import FidelityReason
from schemas.tables.silver_quality import CAPTURE_QUALITY


@dataclass(frozen=True)
class Term:
    """A word in the table of fidelity, and its meaning."""

    word: str
    reason: FidelityReason


def fidelity_by_reason(own_rows: OwnRows) -> DataFrame:
    """(algorithm, reader, metric, reason, times, checked, agreed, unknown), over all readers and brokers of a kind.

    Each reader and metric has a row for each reason, or one row with null if there is no reason. The counts are those
    of the reader and metric, the same in all of its rows.
    """
    t = FIDELITY
    key = [str(column) for column in (t.algorithm, t.reader, t.metric)]
    sums = [F.sum(column).alias(column) for column in (t.checked, t.agreed, t.unknown)]
    rows = own_rows(t)
    reasons = rows.select(*key, F.explode(t.reasons).alias("reason", "times")).groupBy(*key, "reason")
    counts = rows.groupBy(*key).agg(*sums)
    by_reason = reasons.agg(F.sum("times").alias("times"))
    is_same = [F.col(f"c.{name}").eqNullSafe(F.col(f"r.{name}")) for name in key]
    joined = counts.alias("c").join(F.broadcast(by_reason).alias("r"), is_same, "left")
    return joined.select("c.*", "reason", "times").orderBy(*key, "reason")


def fidelity_by_metric(findings: Findings) -> list[Row]:
    """One of the rows of `fidelity_by_reason` for each algorithm, reader and metric. It has their counts."""
    t = FIDELITY
    by_kind = {(row[t.algorithm], row[t.reader], row[t.metric]): row for row in findings.of(fidelity_by_reason)}
    return list(by_kind.values())


def fidelity_table(findings: Findings) -> Grid:
    """How often the replay of the captured settings gives what was captured."""
    t = FIDELITY
    reasons: dict[tuple[str, str, str], Counter[str]] = {}
    for row in findings.of(fidelity_by_reason):
        if row["reason"] is not None:
            reasons.setdefault((row[t.algorithm], row[t.reader], row[t.metric]), Counter())[row["reason"]] += row[
                "times"
            ]
    table = [
        [
            row[t.reader] or "-", row[t.metric].replace("_", " "), f"{row[t.checked]:,}",
            share_text(row[t.agreed], row[t.checked]), f"{row[t.unknown]:,}",
            ", ".join(
                f"{times:,} {reason}"
                for reason, times in sorted(reasons.get((row[t.algorithm], row[t.reader], row[t.metric]), {}).items())
            ),
        ]
        for row in fidelity_by_metric(findings)
    ]  # fmt: skip
    return Grid(["reader", "what", "checked", "equal", "unknown", "reasons"], table, ("reader", "what", "reasons"))


def glossary(findings: Findings) -> list[Term]:
    """The reasons that this run gives, each once. Reasons of another version, which are not declared, are left out."""
    t = FIDELITY
    entries = {
        Term(row["reason"], reason)
        for row in findings.of(fidelity_by_reason)
        if row["reason"] and (reason := reason_of(row[t.algorithm], row[t.metric], row["reason"]))
    }
    return sorted(entries, key=lambda term: (term.word, term.reason.means))


def trust_answer(findings: Findings) -> str:
    """Question 20: how much of the capture is there, and how often the replays agree with it."""
    q, t = CAPTURE_QUALITY, FIDELITY
    row = findings.of(quality_row)[0]
    text = (
        NO_BYTES
        if is_of_logs(findings)
        else f"{percent(row[q.missing_share])} of the bytes on these connections are missing from the capture"
    )
    if others := other_brokers_text(row):
        text = f"With care: {others}. {capitalized(text)}"
    if lacks := missing_direction(findings):
        text = f"No: {lacks[0].lower()}{lacks[1:-1]}; {text}"
    if refused := refusals_text(findings):
        text = f"No: {refused}; {text.removeprefix('No: ')}"
    rows = fidelity_by_metric(findings)
    if not rows:
        return f"{text}. Nothing was replayed that could be compared with it."
    text += f". Replayed as Kafka {findings.kafka}"
    checked, agreed, unknown = (sum(of[name] for of in rows) for name in (t.checked, t.agreed, t.unknown))
    text += (
        f". Of {checked:,} results of replaying the captured settings that could be checked, "
        f"{share_text(agreed, checked)} agree with the capture. {unknown:,} could not be checked"
    )
    return f"{text}{least_agreeing_text(rows)}."


def least_agreeing_text(rows: Sequence[Row]) -> str:
    """What agrees least of all metrics with enough cases, and how many have fewer cases; empty if everything agrees."""
    t = FIDELITY
    rows = [row for row in rows if row[t.checked]]
    enough = [row for row in rows if row[t.checked] >= LEAST_CASES]
    if all(row[t.agreed] == row[t.checked] for row in rows):
        return ""
    if all(row[t.agreed] == row[t.checked] for row in enough):
        return f". All differences are in comparisons of fewer than {LEAST_CASES} cases"
    worst, few = min(enough, key=lambda row: row[t.agreed] / row[t.checked]), len(rows) - len(enough)
    left_out = f", {quantity(few, 'comparison')} of fewer than {LEAST_CASES} cases left out" if few else ""
    return (
        f". Agreement is lowest for {metric_and_reader(worst)}, {share_text(worst[t.agreed], worst[t.checked])} of "
        f"{worst[t.checked]:,}{left_out}"
    )


def agreement_bars(findings: Findings) -> Plot:
    """A bar for each algorithm, reader and metric: what agrees, what does not, what could not be checked."""
    t = FIDELITY
    rows = [
        {"metric": metric_and_reader(row), "share": part / whole, "verdict": verdict}
        for row in fidelity_by_metric(findings)
        if (whole := row[t.checked] + row[t.unknown])
        for verdict, part in (
            ("equal", row[t.agreed]), ("different", row[t.checked] - row[t.agreed]), ("unknown", row[t.unknown]),
        )
    ]  # fmt: skip
    return Plot(
        "Replay of the captured settings against the capture",
        "bar", rows_to_plot(rows, "nothing was replayed that could be compared"),
        Axis("share", "of all results, unknown ones too", "percent"), Axis("metric", "", "name"),
        Axis("verdict", "replay and capture are", "name"),
    )  # fmt: skip


def metric_and_reader(row: Row) -> str:
    """What is compared, and of whom."""
    t = FIDELITY
    metric: str = row[t.metric].replace("_", " ")
    return f"{metric} ({row[t.reader]})" if row[t.reader] else metric


def trust_line(findings: Findings, question: Question) -> str:
    """How far an answer can be trusted: the agreement of the metrics that it depends on; empty if there is none."""
    t = FIDELITY
    rows = [row for row in fidelity_by_metric(findings) if row[t.metric] in question.trust]
    return "; ".join(agreement_text(row) for row in rows if row[t.checked] or row[t.unknown])


def agreement_text(row: Row) -> str:
    """`session grants (consumer) 100 % of 15 and 2 unknown`."""
    t = FIDELITY
    checked = [f"{share_text(row[t.agreed], row[t.checked])} of {row[t.checked]:,}"] if row[t.checked] else []
    unknown = [f"{row[t.unknown]:,} unknown"] if row[t.unknown] else []
    return f"{metric_and_reader(row)} {' and '.join([*checked, *unknown])}"


def semantics_table(findings: Findings) -> Grid:
    """A row for each replay: whose semantics it follows, and how far it agrees with the capture."""
    t = FIDELITY
    cells = []
    for name in findings.lanes:
        rows = [row for row in fidelity_by_metric(findings) if row[t.algorithm] == name]
        checked, agreed, unknown = (sum(row[count] for row in rows) for count in (t.checked, t.agreed, t.unknown))
        cells.append(
            [name, semantics_text(findings, name), f"{checked:,}", share_text(agreed, checked), f"{unknown:,}"]
        )
    head = ("replay", "follows", "checked", "equal", "unknown")
    return Grid(head, cells, head[:2], ("What is compared, and why it differs, is under What to trust.",))


TRUSTED = Question(
    number=20,
    text="Can I trust this for my broker version and my capture?",
    about="",
    algorithms=(),
    queries=(),
    sentence=trust_answer,
    plots=(),
    table=semantics_table,
)
