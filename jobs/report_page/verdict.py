"""The first screen of a run: whether it can be trusted, what to change, what to keep, and what was not answered."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath

from jobs.paths import COMMAND
from jobs.report_page.advice.aims import aim_settings
from jobs.report_page.advice.floors import low_fidelity, said_low
from jobs.report_page.advice.in_force import summed
from jobs.report_page.advice.recommendation import Recommendation, said_value
from jobs.report_page.advice.withheld import corrected
from jobs.report_page.fetch_max_bytes.growth import growth, sureness
from jobs.report_page.fetch_max_bytes.quota import quota_sureness, throttling
from jobs.report_page.findings import KnownRun
from jobs.report_page.question import Findings
from jobs.report_page.questions import Answer, answers, leaves_out_usual
from jobs.report_page.refusals import refused_by
from jobs.report_page.row_caps import IN_ALL
from jobs.report_page.run_window import window_flags, window_told
from jobs.report_page.trust import captures, compared, is_of_logs, quality
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import TRIES, setting_of
from jobs.terminal.screen import WIDTH, printable, share, wrapped
from jobs.terminal.wording import counted, name_of, percent
from schemas.tables import algorithms
from schemas.tables.gold_aims import AIM_SETTINGS
from schemas.tables.silver import CAPTURE_QUALITY, CAPTURES
from schemas.tables.values import CHANGE, KEEP, OF_CLIENT, OF_CLUSTER, WITHHELD

HEAD, NAME = 10, 25
"""Characters of the first column, which says what a line is about, and of the name of a setting, if it is short."""
MOST_CHANGE_LINES, MOST_WITHHELD, MOST_KEPT, MOST_LANES, MOST_ASKED, MOST_LOW, MOST_FILES = 14, 3, 6, 3, 3, 2, 2
Alike = list[Recommendation]
"""Recommendations that say the same of several clients; the first gains most."""


@dataclass(frozen=True)
class Verdict:
    """A run, what its tables hold of it, and what it recommends."""

    run: KnownRun
    findings: Findings
    made: Sequence[Recommendation]


def first_screen(lake: str, verdict: Verdict) -> list[str]:
    """The lines of the verdict. Those that say where report and tables are follow in `jobs/report.py`."""
    return [
        headline(verdict.run, verdict.findings),
        *(line for window_line in window_told(verdict.run) for line in labelled("WINDOW", window_line)),
        *trust_lines(verdict.findings),
        *change_lines(verdict.made),
        *withheld_lines(verdict.made),
        *again_lines(lake, verdict),
        *keep_lines(verdict.made),
        *growth_lines(verdict.findings),
        *quota_lines(verdict.findings),
        *ask_lines(verdict.findings),
    ]


def headline(run: KnownRun, findings: Findings) -> str:
    """What was read: `refetch  starve.pcap  502 exchanges  Kafka 4.3`."""
    rows = findings.of(captures)
    names = [PurePosixPath(row[CAPTURES.path]).name for row in rows[:MOST_FILES]]
    more = rows[0][IN_ALL] - len(names) if rows else 0
    files = ", ".join([*names, *([f"{more:,} more"] if more > 0 else [])])
    of_cluster = [] if run.cluster_id is None else [f"cluster {run.cluster_id} alone, one of several"]
    exchanges = counted(findings.of(quality)[0][CAPTURE_QUALITY.exchanges], "exchange")
    return "  ".join(["refetch", files, exchanges, f"Kafka {findings.kafka.partition(', ')[0]}", *of_cluster])[:WIDTH]


def trust_lines(findings: Findings) -> Iterator[str]:
    """Whether the run can be trusted, and why not."""
    first, *others = trust(findings)
    yield from labelled("TRUST", first)
    yield from (line for other in others for line in labelled("", other))


def trust(findings: Findings) -> list[str]:
    """`ok`, `partly` or `no`, and why; then what agrees too seldom, and what the capture lacks."""
    low = [said_low(row) for name in findings.lanes for row in low_fidelity(findings, name)]
    refused = refused_by(findings)
    lines = [f"no: {refused}" if refused else f"{'partly' if low else 'ok'}: {equal(findings)}", *low[:MOST_LOW]]
    row = findings.of(quality)[0]
    if row[CAPTURE_QUALITY.missing_bytes] and not is_of_logs(findings):
        lost = percent(row[CAPTURE_QUALITY.missing_share])
        lines.append(f"{lost} of the bytes are missing from the capture")
    return lines


def equal(findings: Findings) -> str:
    """How often the replay as captured equals the capture."""
    total = summed(compared(findings))
    if not total.checked:
        return f"nothing of the replay could be checked against the capture; {counted(total.unknown, 'result')} unknown"
    of_all = (
        f"all {total.checked:,}"
        if total.agreed == total.checked
        else f"{share(total.agreed, total.checked)} of {total.checked:,}"
    )
    return f"{of_all} results that could be checked equal the capture; {total.unknown:,} unknown"


def change_lines(made: Sequence[Recommendation]) -> Iterator[str]:
    """What to change: the settings of each change, then its gain, its cost and how sure that is.

    Only as many changes are shown as a screen holds.
    """
    blocks = [[*block_lines(block)] for block in changes(made)]
    shown = [n for n in range(len(blocks)) if n == 0 or sum(map(len, blocks[: n + 1])) <= MOST_CHANGE_LINES]
    yield from chain(*(blocks[n] for n in shown))
    if len(blocks) > len(shown):
        left = counted(len(blocks) - len(shown), "more change")
        yield from labelled("", f"and {left}, in the report and in the tables")


def block_lines(block: list[Alike]) -> Iterator[str]:
    """The lines of one change."""
    first = block[0][0]
    for alike in block:
        yield from labelled("CHANGE", f"{alike[0].name:<{NAME}}  {whose(alike)}  {from_to(alike[0])}")
    for head, text in (("why", first.gain.text), ("cost", first.cost.text), ("sure", sure(first))):
        if text:  # a change may cost nothing
            yield from labelled("", f"{head:<4}  {text}")


def changes(made: Sequence[Recommendation]) -> list[list[Alike]]:
    """The changes, a block each. A block has the changes that one lane makes together; clients for which all of these
    are the same share a block.
    """
    of_scope: dict[object, list[Recommendation]] = {}
    for recommendation in made:
        if recommendation.verdict == CHANGE:
            of_scope.setdefault((recommendation.algorithm, recommendation.scope), []).append(recommendation)
    blocks: dict[object, list[Alike]] = {}
    for together in of_scope.values():
        key = tuple(
            (recommendation.setting, recommendation.now, recommendation.recommended) for recommendation in together
        )
        for alike, recommendation in zip(blocks.setdefault(key, [[] for _ in together]), together, strict=True):
            alike.append(recommendation)
    return list(blocks.values())


def whose(alike: Alike) -> str:
    """Who has the setting: `app`, `app and 3 more clients`, `brokers`."""
    first, others = alike[0], len(alike) - 1
    if first.scope.kind == OF_CLUSTER:
        return "the cluster" if (set_on := setting_of(first.setting).set_on) is None else f"{set_on}s"
    name = name_of(first.scope.name) if first.scope.kind == OF_CLIENT else first.scope.name
    return f"{name} and {counted(others, f'more {first.scope.kind}')}" if others else name


def from_to(recommendation: Recommendation) -> str:
    """`195 KiB (captured) -> 1 MiB`."""
    return f"{now(recommendation)} -> {said_value(recommendation.setting, recommendation.recommended)}"


def now(recommendation: Recommendation) -> str:
    """The value in force, and where that is known from."""
    value = said_value(recommendation.setting, recommendation.now.value)
    return value if recommendation.now.value is None else f"{value} ({recommendation.now.source})"


def sure(recommendation: Recommendation) -> str:
    """How far the replay agrees with the capture."""
    confidence = recommendation.sure
    if not confidence.checked:
        return "not checked"
    of_all = (
        f"all {confidence.checked:,}"
        if confidence.agreed == confidence.checked
        else f"{confidence.agreed:,} of {confidence.checked:,}"
    )
    return f"{of_all} results equal the capture{f', {confidence.unknown:,} unknown' if confidence.unknown else ''}"


def withheld_lines(made: Sequence[Recommendation]) -> Iterator[str]:
    """What is withheld, because replays agree too seldom with the capture or a gate refused them."""
    alike = not_carried(made)
    for together in alike[:MOST_WITHHELD]:
        yield from labelled("WITHHELD", f"{settings_of_all(together)}: {together[0].reason}")
    if len(alike) > MOST_WITHHELD:
        yield from labelled("", f"and {len(alike) - MOST_WITHHELD:,} more, in the report and in the tables")


def not_carried(made: Sequence[Recommendation]) -> list[Alike]:
    """What is withheld, those with the same reason together."""
    by_reason: dict[tuple[str, str], Alike] = {}
    for recommendation in made:
        if recommendation.verdict == WITHHELD:
            by_reason.setdefault((recommendation.algorithm, recommendation.reason), []).append(recommendation)
    return list(by_reason.values())


def settings_of_all(alike: Alike) -> str:
    """The settings that these recommendations are about."""
    return ", ".join(dict.fromkeys(recommendation.name for recommendation in alike))


def again_lines(lake: str, verdict: Verdict) -> Iterator[str]:
    """The command that may carry what is withheld."""
    if command := again(lake, verdict):
        yield from labelled("RUN", command)


def again(lake: str, verdict: Verdict) -> str:
    """The command that replays the run's lanes once more, with what was in force and nobody stated; empty where nothing
    is in doubt.
    """
    findings, run = verdict.findings, verdict.run
    doubtful = dict.fromkeys(
        recommendation.algorithm
        for recommendation in verdict.made
        if recommendation.now.value is None
        or (recommendation.verdict == WITHHELD and low_fidelity(findings, recommendation.algorithm))
    )
    flags = dict.fromkeys(flag for name in doubtful for flag in corrected(findings, name))
    if not flags:
        return ""
    sets = [f"--set={key}={','.join(values)}" for key, values in run.varied.items()]
    aims = dict.fromkeys(f"--find={row[AIM_SETTINGS.aim]}" for row in findings.of(aim_settings))
    stated = [f"--captured={pair}" for pair in run.stated]
    arguments = [*sets, *aims, *stated, *window_flags(run), *flags]
    return shlex.join([COMMAND, "replay", f"--lake={shown_path(lake)}", *arguments])


def keep_lines(made: Sequence[Recommendation]) -> Iterator[str]:
    """What to keep: a line a setting and value, with the smallest value that would do."""
    alike = kept(made)
    for together in alike[:MOST_KEPT]:
        first = together[0]
        yield from labelled("KEEP", f"{first.name:<{NAME}}  {whose(together)}  {now(first)}{enough(together)}")
    if len(alike) > MOST_KEPT:
        yield from labelled("", f"and {len(alike) - MOST_KEPT:,} more, in the report and in the tables")


def growth_lines(findings: Findings) -> Iterator[str]:
    """What becomes of consumers under more traffic, where that was replayed."""
    return lane_lines("GROWTH", [*growth(findings)], partial(sureness, findings))


def quota_lines(findings: Findings) -> Iterator[str]:
    """What becomes of consumers under a bandwidth quota, where that was replayed."""
    return lane_lines("QUOTA", [*throttling(findings)], partial(quota_sureness, findings))


def lane_lines(head: str, lanes: Sequence[tuple[str, str]], sure_of: Callable[[], str]) -> Iterator[str]:
    """A line for each of the first lanes with its outcome, and how sure these are; none without lanes."""
    for lane, outcome in lanes[:MOST_LANES]:
        yield from labelled(head, f"{lane}  {outcome}")
    if lanes:
        yield from labelled("", f"sure  {sure_of()}")


def kept(made: Sequence[Recommendation]) -> list[Alike]:
    """What is to be kept, those of one setting and value together."""
    by_value: dict[tuple[str, str | None], Alike] = {}
    for recommendation in made:
        if recommendation.verdict == KEEP:
            by_value.setdefault((recommendation.setting, recommendation.now.value), []).append(recommendation)
    return list(by_value.values())


def enough(alike: Alike) -> str:
    """The end of a line on what to keep: the smallest value that would do for all of them, if it is known, and that the
    setting is only proposed, if it is.
    """
    values = [int(recommendation.enough) for recommendation in alike if recommendation.enough is not None]
    would_do = f"; {said_value(alike[0].setting, str(max(values)))} would do" if values else ""
    return f"{would_do}{'; a proposal, in no release' if alike[0].is_proposal else ''}"


def ask_lines(findings: Findings) -> Iterator[str]:
    """Which questions have no answer, and what would answer them."""
    lines = [*to_ask(findings)]
    yield from (line for text in lines[:MOST_ASKED] for line in labelled("ASK", text))
    if len(lines) > MOST_ASKED:
        yield from labelled("", f"and {len(lines) - MOST_ASKED:,} more, in the report")


def to_ask(findings: Findings) -> Iterator[str]:
    """What to ask for next: a line for each replay that is not there, and one for what the capture does not answer."""
    without = [reply for reply in answers(findings) if not reply.is_answered]
    lacking = {name: numbers for name in TRIES if (numbers := lacks(findings, without, name))}
    for name, numbers in lacking.items():
        reply = findings.refused.get(name) or f"--set={TRIES[name]}"
        if name not in findings.refused and leaves_out_usual(findings):
            reply += f", with `{name}:` under `replay:` in the scenario's file"
        yield f"{questions(numbers)}: {reply}"
    if tuple(findings.lanes.get(algorithms.FETCH_MAX_BYTES, ())) == (CAPTURED_LANE,):
        yield f"what other fetch limits would do: --set={TRIES[algorithms.FETCH_MAX_BYTES]}"
    others = [reply.question.number for reply in without if reply.question.number not in {*chain(*lacking.values())}]
    if others:
        yield f"{questions(others)}: not answered by this capture; --verbose and the report say why"


def lacks(findings: Findings, without: Iterable[Answer], name: str) -> list[int]:
    """The numbers of the questions that lack this replay."""
    return [
        reply.question.number
        for reply in without
        if next((needed for needed in reply.question.algorithms if needed not in findings.lanes), None) == name
    ]


def questions(numbers: Sequence[int]) -> str:
    """`question 4`, `questions 3, 15`."""
    return f"question{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def labelled(label: str, text: str) -> list[str]:
    """A line, or more of them, below a label."""
    return wrapped(label.ljust(HEAD), printable(text), HEAD)


def shown_path(path: str) -> str:
    """A path relative to the current folder, where it is inside."""
    current_folder = Path.cwd()
    return str(Path(path).relative_to(current_folder)) if Path(path).is_relative_to(current_folder) else path
