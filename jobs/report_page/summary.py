"""The text that a run prints at its end: what was read and lost, fidelity, and the answers.

If captures are only ingested, it has what was read and lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobs.lake.table_address import place_of_layers
from jobs.paths import SHOWN_DOCS
from jobs.replays.algorithms import ALGORITHMS
from jobs.report_page.capture_contents import lost_lines, missing_traffic, read_lines
from jobs.report_page.findings import KnownRun
from jobs.report_page.question import Findings
from jobs.report_page.questions import Answer, answer_questions
from jobs.report_page.refusals import refusal_lines
from jobs.report_page.run_window import window_sentences
from jobs.report_page.trust import fidelity_by_metric, fidelity_table, glossary
from jobs.terminal.screen import grid_lines, printable_text, with_short_words, wrapped_lines
from schemas.tables.gold import RUNS
from schemas.tables.silver import CAPTURES

ANSWER_INDENT = " " * 6


def run_summary(lake: str, run: KnownRun, findings: Findings) -> str:
    """The screen as text. For captures without Kafka traffic, which answer nothing, it says what they hold. Why a
    replay was refused is said among the answers, by the questions that need it.
    """
    if missing_traffic(findings):
        return capture_summary(lake, run.capture_id, findings, run.run_id)
    read, lost = capture_parts(findings)
    parts = [
        [
            *read,
            *cluster_lines(run),
            *(f"  {window_line}" for window_line in (*window_sentences(run), *run.from_capture)),
        ],
        lost,
        [
            "Fidelity: the replay of the captured settings against the capture",
            *grid_lines(fidelity_table(findings), most=len(fidelity_by_metric(findings))),
            *([f"  What a reason means, and what to do: {SHOWN_DOCS}/reasons.md"] if glossary(findings) else []),
            *(line for window_line in refusal_lines(findings) for line in wrapped_lines("  ", window_line)),
        ],
        ["Answers", *reply_lines(answer_questions(findings))],
    ]
    for name, algorithm in ALGORITHMS.items():
        if name in findings.lanes:
            of_queries = {asks: findings.of(query) for asks, query in algorithm.queries.items()}
            parts.append([algorithm.title, *algorithm.lines(of_queries, findings.lanes[name])])
    return text_of_parts([*parts, tables_part(lake, run.capture_id, run.run_id)])


def cluster_lines(run: KnownRun) -> list[str]:
    """Which cluster is replayed, if the captures show several."""
    if run.cluster_id is None:
        return []
    return [f"  only cluster {run.cluster_id} is replayed, one of several that the captures show"]


def capture_summary(lake: str, capture_id: str, findings: Findings, run_id: str | None = None) -> str:
    """The screen of a capture set that is not replayed, or whose replay has no results to show."""
    return text_of_parts([*capture_parts(findings), tables_part(lake, capture_id, run_id)])


def tables_part(lake: str, capture_id: str, run_id: str | None) -> list[str]:
    """Where the tables are, and which of their rows belong to the capture set, and to the run if there is one."""
    layers = place_of_layers(lake, *([CAPTURES, RUNS] if run_id else [CAPTURES]))
    of_run = f"run {run_id}, " if run_id else ""
    return ["Tables", *(f"  {place}" for place in layers), f"  {of_run}capture {capture_id}"]


def capture_parts(findings: Findings) -> tuple[list[str], list[str]]:
    """What was read from the captures, and what could not be read."""
    return ["Read", *read_lines(findings)], ["Lost", *lost_lines(findings)]


def text_of_parts(parts: Iterable[Iterable[str]]) -> str:
    """Parts as text, with an empty line before each."""
    return "\n".join(with_short_words(printable_text(line)) for part in parts for line in ("", *part)) + "\n"


def reply_lines(replies: Iterable[Answer]) -> Iterable[str]:
    """Each question with its answer, and why the capture or the run does not answer the others."""
    without: dict[str, list[int]] = {}
    for answer in replies:
        if answer.is_answered:
            yield from wrapped_lines(f"{answer.question.number:>4}  ", answer.question.text)
            yield from wrapped_lines(ANSWER_INDENT, answer.sentence)
        else:
            without.setdefault(answer.sentence, []).append(answer.question.number)
    yield from unanswered_lines(without)


def unanswered_lines(without: Mapping[str, list[int]]) -> Iterable[str]:
    """Why questions have no answer. Questions with the same reason are named together."""
    for reason, numbers in without.items():
        yield from wrapped_lines(f"  not answered: {', '.join(map(str, numbers))}  ", reason, indent=6)
