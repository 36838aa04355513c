"""The report: one HTML page that contains its styles, its script and its plots. It is made from the tables only."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pyspark.sql import Row

from jobs.report_page.advice.aims import aim_text, lanes_of_aim
from jobs.report_page.aim_lines import aim_sentences, rows_by_aim, trade_off_grid
from jobs.report_page.capture_contents import captured_files, is_of_logs, lost_lines, quality_row, read_lines
from jobs.report_page.cards import (
    advice_cards,
    clients_ranked,
    fetchers_cards,
    growth_cards,
    quota_cards,
    reads_cards,
)
from jobs.report_page.charts import plot_svg
from jobs.report_page.findings import KnownRun
from jobs.report_page.markup import breakable_name, setting_lines, with_arrows, with_code
from jobs.report_page.other_runs import OtherRuns
from jobs.report_page.question import Findings, Plot, Question, Unplotted
from jobs.report_page.questions import FAMILIES, Answer, answer_question, answer_questions
from jobs.report_page.refusals import refusal_lines
from jobs.report_page.row_caps import IN_ALL
from jobs.report_page.run_window import window_sentences
from jobs.report_page.semantics import semantics_text
from jobs.report_page.trade_off_plot import trade_off_plot
from jobs.report_page.trust import agreement_bars, fidelity_table, glossary, trust_line
from jobs.report_page.verdict import Verdict, next_requests, repeat_command, trust_reasons
from jobs.terminal.screen import Grid, printable_text, size_text
from jobs.terminal.wording import duration, lanes_phrase, percent, printable_value, utc_time
from schemas.tables.gold import RUNS
from schemas.tables.gold_aims import AIM_SETTINGS
from schemas.tables.metrics import METRICS
from schemas.tables.silver import CAPTURES
from schemas.tables.silver_quality import CAPTURE_QUALITY

MOST_ROWS = 200
"""The most rows of a table on the page; the lake has all."""
TEMPLATES = Path(__file__).parent


@dataclass(frozen=True)
class DrawnPlot:
    """A plot on the page. why_not: why there is nothing to see, if there is nothing."""

    says: str
    svg: Markup
    why_not: str = ""


@dataclass(frozen=True)
class QuestionPart:
    """A question on the page: its answer and, if it has one, the plots and the table behind it."""

    answer: Answer
    follows: str
    trust: str
    figures: list[DrawnPlot]
    grid: Grid | None


@dataclass(frozen=True)
class AimPart:
    """An aim on the page: its text, its result, and the trade-off."""

    asks: str
    sentences: list[str]
    figure: DrawnPlot
    grid: Grid


@dataclass(frozen=True)
class Tile:
    """A number in the panel on the capture's quality, and whether it should worry the reader."""

    number: str
    of: str
    is_bad: bool = False


NO_OTHERS = OtherRuns()


def write_page(path: Path, lake: str, verdict: Verdict, others: OtherRuns = NO_OTHERS) -> None:
    """Write the page; the same tables give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page_text(lake, verdict, others), encoding="utf-8")


def page_text(lake: str, verdict: Verdict, others: OtherRuns = NO_OTHERS) -> str:
    """The page as text."""
    run, findings = verdict.run, verdict.findings
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=printable_value,
    )
    environment.filters |= {
        "arrows": with_arrows,
        "broken": breakable_name,
        "coded": with_code,
        "lines": setting_lines,
    }
    environment.globals["most_rows"] = MOST_ROWS
    template, script = environment.get_template("page.html.j2"), bundled_text("page.js")
    return template.render(
        lake=lake, run=facts_of_run(run, findings), runs=[entry_in_run_list(row) for row in run.newest],
        style=bundled_text("page.css"),
        script=script, script_hash=script_digest(script),
        tiles=list(quality_tiles(findings)), read=[line.strip() for line in read_lines(findings)],
        lost=[line.strip() for line in lost_lines(findings)], fidelity=fidelity_table(findings),
        refused=list(refusal_lines(findings)),
        agreement=figure_or_reason(agreement_bars, findings), compared=list(metrics_compared(findings)),
        glossary=glossary(findings),
        glance=answer_questions(findings), trust=trust_reasons(findings), again=repeat_command(lake, verdict),
        cards=[
            *advice_cards(verdict.made), *growth_cards(findings), *quota_cards(findings), *fetchers_cards(findings),
            *reads_cards(findings),
        ],
        ask=list(next_requests(findings)), ranked=clients_ranked(verdict.made),
        others=others, trends=[*map(draw_figure, others.plots)],
        aims=[aim_part(findings, rows) for rows in rows_by_aim(findings)],
        families={name: [question_part(findings, each) for each in family] for name, family in FAMILIES.items()},
    )  # fmt: skip


def bundled_text(name: str) -> Markup:
    """The style sheet or the script. Both are our own text."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


def script_digest(script: str) -> str:
    """The hash by which a Content-Security-Policy names the only script that may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def question_part(findings: Findings, question: Question) -> QuestionPart:
    """A question with what is behind its answer."""
    reply = answer_question(findings, question)
    if not reply.is_answered:
        # The table is shown anyway if it has rows, such as those of brokers if there is no consumer.
        grid = (
            table_if_rows(findings, question) if all(name in findings.lanes for name in question.algorithms) else None
        )
        return QuestionPart(reply, "", "", [], grid)
    follows = "; ".join(semantics_text(findings, name) for name in question.algorithms)
    figures = [figure_or_reason(plotted, findings) for plotted in question.plots]
    return QuestionPart(
        reply, follows, trust_line(findings, question), list(dict.fromkeys(figures)), table_if_rows(findings, question)
    )


def aim_part(findings: Findings, rows: Sequence[Row]) -> AimPart:
    """An aim of the run. rows: those of its settings."""
    first = rows[0]
    asks = f"{first[AIM_SETTINGS.algorithm]}: {aim_text(first)}"
    plotted = figure_or_reason(partial(trade_off_plot, row=first), findings)
    return AimPart(
        asks, list(aim_sentences(findings, rows)), plotted, trade_off_grid(first, lanes_of_aim(findings, first))
    )


def table_if_rows(findings: Findings, question: Question) -> Grid | None:
    """The table behind an answer; None if it has no rows."""
    grid = question.table(findings)
    return grid if grid.rows else None


def figure_or_reason(plotted: Callable[[Findings], Plot], findings: Findings) -> DrawnPlot:
    """A plot, drawn; or why it is not drawn."""
    try:
        plot = plotted(findings)
    except Unplotted as reason:
        return DrawnPlot("", Markup(), str(reason))
    return draw_figure(plot)


def draw_figure(plot: Plot) -> DrawnPlot:
    """A plot for the page."""
    # With the role, a screen reader announces one picture instead of every tick. Vega escapes its text.
    named = Markup('<svg role="img" aria-label="{}"').format(printable_text(plot.says))
    return DrawnPlot(plot.says, named + Markup(plot_svg(plot).removeprefix("<svg")))  # noqa: S704


def quality_tiles(findings: Findings) -> Iterator[Tile]:
    """The capture's quality in a few numbers."""
    q, row = CAPTURE_QUALITY, findings.of(quality_row)[0]
    yield Tile(f"{row[q.exchanges]:,}", "exchanges (request and response) decoded")
    if is_of_logs(findings):
        yield Tile("unknown", "bytes missing: request logs do not show them", True)
    else:
        yield Tile(percent(row[q.missing_share]), "of the bytes missing", bool(row[q.missing_bytes]))
        yield Tile(size_text(row[q.quarantined_bytes]), "of payload in no Kafka frame", bool(row[q.quarantined_bytes]))
    lost = row[q.unanswered_requests] + row[q.orphan_responses]
    yield Tile(f"{lost:,}", "requests or responses without the other")
    undecoded = row[q.cut_exchanges] + row[q.undecoded_exchanges]
    yield Tile(f"{undecoded:,}", "cut or not decoded", bool(undecoded))
    unknown = row[q.fetches_of_unknown_sessions]
    label = "fetches in sessions from before the capture that may read more than it shows"
    yield Tile(f"{unknown:,} of {row[q.fetches]:,}", label, bool(unknown))


def metrics_compared(findings: Findings) -> Iterator[tuple[str, str]]:
    """(a metric of fidelity, when two results agree by it) for each metric of the replays that were made."""
    for algorithm in findings.lanes:
        yield from ((metric.replace("_", " "), text) for metric, text in METRICS.get(algorithm, {}).items())


def facts_of_run(run: KnownRun, findings: Findings) -> dict[str, object]:
    """What was captured and when, and what was replayed, by the names in the page's template."""
    t, r, rows = CAPTURES, RUNS, findings.of(captured_files)
    left_out = rows[0][IN_ALL] - len(rows) if rows else 0
    first = min((row[t.first_time] for row in rows if row[t.first_time]), default=None)
    last = max((row[t.last_time] for row in rows if row[t.last_time]), default=None)
    span = (
        "" if first is None or last is None else f"{utc_time(first)}, {duration((last - first).total_seconds() * 1000)}"
    )
    return {
        "id": run.run_id, "capture": run.capture_id, "files": [Path(row[t.path]).name for row in rows], "span": span,
        "more_files": f" and {left_out:,} more" if left_out else "",
        "at": utc_time(run.rows[0][r.run_at]), "version": run.rows[0][r.refetch_version],
        "assumed": run.assumed, "seen": run.from_capture, "cluster": run.cluster_id, "stated": run.stated,
        "window": list(window_sentences(run)),
        "lanes": {name: lanes_phrase(lanes) for name, lanes in findings.lanes.items()},
    }  # fmt: skip


def entry_in_run_list(row: Row) -> dict[str, str]:
    """A run of the lake as an entry of the page's list of runs."""
    t = RUNS
    return {
        "id": row[t.run_id],
        "at": utc_time(row[t.run_at]),
        "capture": row[t.capture_id],
        "replays": ", ".join(row["replays"]),
    }
