"""The questions of the report, and which of them a run answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from jobs.captures.packets_needed import TOLD_BY_PACKETS, lacks_packets
from jobs.report_page.batch_split.refused_batches import COMPRESSED, REFUSED
from jobs.report_page.batch_split.splits import ESTIMATE, SAFE
from jobs.report_page.capture_contents import is_of_logs, missing_direction, missing_traffic
from jobs.report_page.consumer_memory.memory_pool import BOUNDED
from jobs.report_page.consumer_memory.needed_memory import NEEDED
from jobs.report_page.fetch_max_bytes.catch_up import CATCH_UP
from jobs.report_page.fetch_max_bytes.fairness import STARVING
from jobs.report_page.fetch_max_bytes.fetches import FOLLOWERS, SMALL_AND_MANY, THROWN_AWAY, TOO_LARGE
from jobs.report_page.partition_limits import HOW_MANY, REFUSED_TEAMS
from jobs.report_page.question import Findings, Query, Question, Unanswered
from jobs.report_page.session_cache.clients import BY_VERSION, NOT_FOUND
from jobs.report_page.session_cache.sessions import ENOUGH, WHILE_ROOM, WHO
from jobs.report_page.trust import TRUSTED
from jobs.scenarios.settings import ON_REQUEST, TRIES

FAMILIES: Mapping[str, tuple[Question, ...]] = {
    "Who is served: fetch limits": (STARVING, CATCH_UP, TOO_LARGE, SMALL_AND_MANY, THROWN_AWAY, FOLLOWERS),
    "Memory": (NEEDED, BOUNDED),
    "Fetch sessions": (ENOUGH, NOT_FOUND, WHO, WHILE_ROOM, BY_VERSION),
    "Batches and compression": (REFUSED, SAFE, COMPRESSED, ESTIMATE),
    "How many partitions": (HOW_MANY, REFUSED_TEAMS),
    "Version and capture": (TRUSTED,),
}
QUESTIONS = tuple(sorted((each for family in FAMILIES.values() for each in family), key=lambda each: each.number))


@dataclass(frozen=True)
class Answer:
    """The outcome of a question: a sentence. If there is no answer, it says why, and what to do."""

    question: Question
    sentence: str
    is_answered: bool


def answer_questions(findings: Findings) -> list[Answer]:
    """An answer to each question, in the order of the questions."""
    return [answer_question(findings, question) for question in QUESTIONS]


def answer_question(findings: Findings, question: Question) -> Answer:
    """The answer to one question."""
    if lacks := missing_traffic(findings):
        return Answer(question, lacks, False)
    for name in question.algorithms:
        if name not in findings.lanes:
            return Answer(question, not_replayed_text(findings, name), False)
    if question is not TRUSTED and (lacks := missing_direction(findings)):
        return Answer(question, lacks, False)
    try:
        return Answer(question, question.sentence(findings), True)
    except Unanswered as reason:
        return Answer(question, str(reason), False)


def not_replayed_text(findings: Findings, name: str) -> str:
    """Why a replay is missing, and what to do."""
    if refusal := refusal_text(findings, name):
        return refusal
    if leaves_out_usual(findings):
        return (
            f"The scenario of this run leaves {name} out: add `{name}:` under `replay:` in its file, and run "
            f"`pipeline` with it and --set={TRIES[name]}."
        )
    return f"This run has no replay of {name}: run `pipeline` on the captures with --set={TRIES[name]}."


def refusal_text(findings: Findings, name: str) -> str | None:
    """Why the capture was refused for a replay, or would be; None if nothing speaks against the replay."""
    if name in findings.refused:
        return findings.refused[name]
    return lacks_packets(name) if name in TOLD_BY_PACKETS and is_of_logs(findings) else None


def leaves_out_usual(findings: Findings) -> bool:
    """Whether a usual replay was not asked for. Then the scenario names its replays, and no flag adds another one."""
    return not {*TRIES} - ON_REQUEST <= {*findings.lanes, *findings.refused}


def queries_of(replays: Collection[str]) -> list[Query]:
    """The queries that the questions need for these replays, each once."""
    queries_needed: list[Query] = []
    for question in QUESTIONS:
        if all(name in replays for name in question.algorithms):
            queries_needed += question.queries
            queries_needed += [
                query for name, queries in question.beside.items() if name in replays for query in queries
            ]
    return list(dict.fromkeys(queries_needed))
