"""A run for programs: `summary.json` beside the page, with the verdict, the answers, and how far the replays agree.

schemas/summary.schema.json is its JSON Schema, made from the models here by `python -m jobs.doc_pages`. A new field
leaves `schema_version` unchanged; a field that is removed, or gets another meaning, raises it.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict

from jobs.report_page.advice.how_to_set import how_to_set
from jobs.report_page.advice.recommendation import Effect, Ends, Recommendation
from jobs.report_page.capture_contents import captured_files
from jobs.report_page.questions import answer_questions
from jobs.report_page.refusals import refusals_text
from jobs.report_page.trust import fidelity_by_metric
from jobs.report_page.verdict import Verdict
from jobs.scenarios.moment import Moment
from jobs.version import VERSION
from schemas.tables.gold import FIDELITY, RUNS
from schemas.tables.silver import CAPTURES
from schemas.tables.values import CHANGE

NAME = "summary.json"


class SummaryPart(BaseModel):
    """What all parts have in common: they do not change, and have no other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TableEffect(SummaryPart):
    """What a change gains or costs, as a sentence and by a metric.

    before: the metric in the lane `captured`. after: the metric with the change. before_range, after_range: the lower
    and upper ends of their ranges when the pace of clients and brokers is drawn anew.
    """

    sentence: str
    metric: str | None
    before: float | None
    before_range: Ends
    after: float | None
    after_range: Ends


class Advised(SummaryPart):
    """Advice on one setting: a row of gold/recommendations.

    docs/tables.md explains its columns, and docs/advice.md has the rules. how_to_set: for a change, where the value is
    set, and when it takes effect; null for other verdicts, and for settings that no release has.
    """

    verdict: Literal["change", "keep", "withheld"]
    algorithm: str
    scope_kind: str
    scope: str
    setting: str
    value_now: str | None
    source: str
    recommended: str | None
    enough: str | None
    gain: TableEffect
    cost: TableEffect
    checked: int
    agreed: int
    unknown: int
    reason: str
    is_proposal: bool
    how_to_set: str | None


class Answered(SummaryPart):
    """A question of the report with its answer. If it has no answer, the sentence says why, and what to do."""

    number: int
    question: str
    is_answered: bool
    sentence: str


class Fidelity(SummaryPart):
    """How often the replay of the settings in force gives what the capture shows, by metric.

    checked: how many results could be checked. agreed: how many of these agree. unknown: how many could not be checked.
    """

    algorithm: str
    reader: str | None
    metric: str
    checked: int
    agreed: int
    unknown: int


class CountedWindow(SummaryPart):
    """The part of the capture that counts, in UTC.

    begin: what comes before it only prepared the state; null if the window begins with the capture. end: what comes
    from it on is left out; null if the window ends with the capture.
    """

    begin: str | None
    end: str | None


class Summary(SummaryPart):
    """The results of a run.

    run_at: when the run was last asked for. captures: the names of the capture files. kafka: the release of Kafka whose
    rules are replayed, and how it is known. lanes: by replay, the lanes that were replayed. window: the part of the
    capture that counts. not_replayed: for each replay that could not be made, what the captures lack for it.
    refused_by: what gates refused, by which rules; null if they refused nothing.
    """

    schema_version: Literal[1] = 1
    refetch_version: str
    run_id: str
    capture_id: str
    run_at: str
    captures: list[str]
    kafka: str
    lanes: dict[str, list[str]]
    window: CountedWindow
    not_replayed: dict[str, str]
    refused_by: str | None
    recommendations: list[Advised]
    answers: list[Answered]
    fidelity: list[Fidelity]


def time_with_zone(at: Moment | None) -> str | None:
    """A time as --from and --to take it."""
    return None if at is None else str(at)


def write_summary(path: Path, verdict: Verdict) -> None:
    """Write the file; the same tables give the same bytes."""
    path.write_text(summary_of(verdict).model_dump_json(indent=2) + "\n", encoding="utf-8")


def summary_of(verdict: Verdict) -> Summary:
    """What the file says of a run."""
    run, findings, f = verdict.run, verdict.findings, FIDELITY
    return Summary(
        refetch_version=VERSION,
        run_id=run.run_id,
        capture_id=run.capture_id,
        run_at=run.rows[0][RUNS.run_at].isoformat(),
        captures=[PurePosixPath(row[CAPTURES.path]).name for row in findings.of(captured_files)],
        kafka=findings.kafka,
        lanes={name: [*lanes] for name, lanes in findings.lanes.items()},
        window=CountedWindow(begin=time_with_zone(run.window[0]), end=time_with_zone(run.window[1])),
        not_replayed=dict(run.refused),
        refused_by=refusals_text(findings) or None,
        recommendations=[recommendation_part(one) for one in verdict.made],
        answers=[
            Answered(
                number=reply.question.number,
                question=reply.question.text,
                is_answered=reply.is_answered,
                sentence=reply.sentence,
            )
            for reply in answer_questions(findings)
        ],
        fidelity=[
            Fidelity(**{str(name): row[name] for name in
                        (f.algorithm, f.reader, f.metric, f.checked, f.agreed, f.unknown)})
            for row in fidelity_by_metric(findings)
        ],
    )  # fmt: skip


def recommendation_part(one: Recommendation) -> Advised:
    """A recommendation."""
    return Advised(
        verdict=one.verdict, algorithm=one.algorithm, scope_kind=one.scope.kind, scope=one.scope.name,
        setting=one.setting, value_now=one.now.value, source=one.now.source, recommended=one.recommended,
        enough=one.enough, gain=effect_part(one.gain), cost=effect_part(one.cost), checked=one.sure.checked,
        agreed=one.sure.agreed, unknown=one.sure.unknown, reason=one.reason, is_proposal=one.is_proposal,
        how_to_set=(how_to_set([one]) or None) if one.verdict == CHANGE else None,
    )  # fmt: skip


def effect_part(change_effect: Effect) -> TableEffect:
    """What a change gains or costs, as JSON has it."""
    return TableEffect(
        sentence=change_effect.text, metric=change_effect.metric,
        before=change_effect.before, before_range=change_effect.before_range,
        after=change_effect.after, after_range=change_effect.after_range,
    )  # fmt: skip
