"""The first screen of a run: whether it can be trusted, what to change, what to keep, and which questions are open."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath

from jobs.captures.clusters import BY_FLAG
from jobs.paths import COMMAND
from jobs.report_page.advice.aims import aim_settings
from jobs.report_page.advice.alike import (
    Alike,
    change_text,
    changes_together,
    confidence_text,
    enough_value_text,
    how_to_set_block,
    kept_together,
    owners_text,
    setting_names_text,
    value_now_text,
    withheld_together,
)
from jobs.report_page.advice.floors import low_fidelity, low_fidelity_text
from jobs.report_page.advice.in_force import summed_confidence
from jobs.report_page.advice.recommendation import Recommendation
from jobs.report_page.advice.withheld import flags_to_state
from jobs.report_page.capture_contents import captured_files, is_of_logs, quality_row, requests_by_api
from jobs.report_page.consumer_memory.growth import memory_by_traffic, memory_sureness
from jobs.report_page.fetch_max_bytes.fetchers import fetchers_by_lane, fetchers_sureness
from jobs.report_page.fetch_max_bytes.growth import growth_by_lane, growth_sureness
from jobs.report_page.fetch_max_bytes.producer_quota import producers_by_lane, producers_sureness
from jobs.report_page.fetch_max_bytes.quota import quota_sureness, throttling_by_lane
from jobs.report_page.fetch_max_bytes.rack_reads import rack_reads
from jobs.report_page.fetch_max_bytes.throttles import captured_throttles
from jobs.report_page.findings import KnownRun
from jobs.report_page.other_brokers import other_brokers_text
from jobs.report_page.question import Findings
from jobs.report_page.questions import Answer, answer_questions, leaves_out_usual, refusal_text
from jobs.report_page.refusals import refusals_text
from jobs.report_page.row_caps import IN_ALL
from jobs.report_page.run_window import window_flags, window_sentences
from jobs.report_page.session_cache.growth import slots_by_traffic, slots_sureness
from jobs.report_page.share_groups import share_groups_text
from jobs.report_page.trust import fidelity_by_metric
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import TRIES
from jobs.terminal.screen import WIDTH, printable_text, share_text, wrapped_lines
from jobs.terminal.wording import percent, quantity
from schemas.tables import algorithms
from schemas.tables.gold_aims import AIM_SETTINGS
from schemas.tables.silver import CAPTURES
from schemas.tables.silver_quality import CAPTURE_QUALITY
from schemas.tables.values import WITHHELD

HEAD, NAME = 10, 25
"""The characters of the first column, which says what a line is about, and of a setting's name if that is shorter."""
CONTINUED = " \\"
"""The end of a line that a shell continues on the next one."""
SCREEN_LINES = 40
"""The lines of the first screen, including those that say where report and tables are."""
MOST_CHANGE_LINES, MOST_WITHHELD, MOST_KEPT, MOST_LANES, MOST_ASKED, MOST_LOW, MOST_FILES = 18, 3, 6, 3, 3, 2, 2


@dataclass(frozen=True)
class Verdict:
    """A run, what its tables hold, and the recommendations that follow from that."""

    run: KnownRun
    findings: Findings
    made: Sequence[Recommendation]


def first_screen(lake: str, verdict: Verdict) -> list[str]:
    """The lines of the verdict. Those that say where report and tables are follow in `jobs/report.py`."""
    return [
        headline(verdict.findings),
        *replayed_cluster_lines(verdict.run),
        *(line for window_line in window_sentences(verdict.run) for line in labelled_lines("WINDOW", window_line)),
        *trust_lines(verdict.findings),
        *change_lines(verdict.made),
        *withheld_lines(verdict.made),
        *repeat_lines(lake, verdict),
        *keep_lines(verdict.made),
        *growth_lines(verdict.findings),
        *quota_lines(verdict.findings),
        *fetchers_lines(verdict.findings),
        *reads_lines(verdict.findings),
        *ask_lines(verdict.findings),
    ]


def headline(findings: Findings) -> str:
    """What was read: `refetch  starve.pcap  502 exchanges  Kafka 4.3`."""
    rows = findings.of(captured_files)
    names = [PurePosixPath(row[CAPTURES.path]).name for row in rows[:MOST_FILES]]
    more = rows[0][IN_ALL] - len(names) if rows else 0
    files = ", ".join([*names, *([f"{more:,} more"] if more > 0 else [])])
    exchanges = quantity(findings.of(quality_row)[0][CAPTURE_QUALITY.exchanges], "exchange")
    return "  ".join(["refetch", files, exchanges, f"Kafka {findings.kafka.partition(', ')[0]}"])[:WIDTH]


def replayed_cluster_lines(run: KnownRun) -> list[str]:
    """Which cluster is replayed, if the captures show several."""
    if run.cluster_id is None:
        return []
    told = f"only {run.cluster_id} is replayed, one of several that the captures show; {BY_FLAG} names another"
    return labelled_lines("CLUSTER", told)


def trust_lines(findings: Findings) -> Iterator[str]:
    """Whether the run can be trusted, and why not."""
    first, *others = trust_reasons(findings)
    yield from labelled_lines("TRUST", first)
    yield from (line for other in others for line in labelled_lines("", other))


def trust_reasons(findings: Findings) -> list[str]:
    """Sentences: `ok`, `partly` or `no` with the reason. Then, where they apply: that brokers are not Apache Kafka's,
    what agrees too seldom, that share groups are left out, and what the capture lacks.
    """
    low = [low_fidelity_text(row) for name in findings.lanes for row in low_fidelity(findings, name)]
    refused, row = refusals_text(findings), findings.of(quality_row)[0]
    others = [text] if (text := other_brokers_text(row)) else []
    left_out = share_groups_text(findings.of(requests_by_api))
    lines = [
        f"no: {refused}" if refused else f"{'partly' if low or others else 'ok'}: {agreement_share_text(findings)}",
        *others,
        *low[:MOST_LOW],
    ]
    if left_out:
        lines.append(left_out)
    if row[CAPTURE_QUALITY.missing_bytes] and not is_of_logs(findings):
        lost = percent(row[CAPTURE_QUALITY.missing_share])
        lines.append(f"{lost} of the bytes are missing from the capture")
    return lines


def agreement_share_text(findings: Findings) -> str:
    """How often the replay under the captured settings equals the capture, as text."""
    total = summed_confidence(fidelity_by_metric(findings))
    if not total.checked:
        return (
            f"nothing of the replay could be checked against the capture; {quantity(total.unknown, 'result')} unknown"
        )
    of_all = (
        f"all {total.checked:,}"
        if total.agreed == total.checked
        else f"{share_text(total.agreed, total.checked)} of {total.checked:,}"
    )
    return f"{of_all} results that could be checked equal the capture; {total.unknown:,} unknown"


def change_lines(made: Sequence[Recommendation]) -> Iterator[str]:
    """What to change: the settings of each change, then its gain, its cost and how sure that is.

    Only as many changes are shown as fit on a screen.
    """
    blocks = [[*block_lines(block)] for block in changes_together(made)]
    fitting = [n for n in range(len(blocks)) if n == 0 or sum(map(len, blocks[: n + 1])) <= MOST_CHANGE_LINES]
    yield from chain(*(blocks[n] for n in fitting))
    if len(blocks) > len(fitting):
        left = quantity(len(blocks) - len(fitting), "more change")
        yield from labelled_lines("", f"and {left}, in the report and in the tables")


def block_lines(block: list[Alike]) -> Iterator[str]:
    """The lines of one change."""
    first = block[0][0]
    for alike in block:
        yield from labelled_lines("CHANGE", f"{alike[0].name:<{NAME}}  {owners_text(alike)}  {change_text(alike[0])}")
    terms = (
        ("why", first.gain.text), ("cost", first.cost.text), ("sure", confidence_text(first)),
        ("set", how_to_set_block(block)),
    )  # fmt: skip
    for head, text in terms:
        if text:  # a change may cost nothing
            yield from labelled_lines("", f"{head:<4}  {text}")


def withheld_lines(made: Sequence[Recommendation]) -> Iterator[str]:
    """What is withheld because replays agree too seldom with the capture, or because a gate refused them."""
    alike = withheld_together(made)
    for together in alike[:MOST_WITHHELD]:
        yield from labelled_lines("WITHHELD", f"{setting_names_text(together)}: {together[0].reason}")
    if len(alike) > MOST_WITHHELD:
        yield from labelled_lines("", f"and {len(alike) - MOST_WITHHELD:,} more, in the report and in the tables")


def repeat_lines(lake: str, verdict: Verdict) -> Iterator[str]:
    """The lines of a command that may settle what is in doubt; none if nothing is. A shell reads them as one."""
    command = printable_text(repeat_command(lake, verdict))
    lines = wrapped_lines("RUN".ljust(HEAD), command, HEAD, WIDTH - len(CONTINUED)) if command else []
    for number, line in enumerate(lines, 1):
        # Within quotes the end of a line is a blank, and needs no mark.
        is_within_quotes = "".join(lines[:number]).count("'") % 2
        yield line if number == len(lines) or is_within_quotes else line + CONTINUED


def repeat_command(lake: str, verdict: Verdict) -> str:
    """The command that replays the run's lanes again, with a flag to fill in for each setting in force that nobody
    stated. Empty if nothing is in doubt.
    """
    findings, run = verdict.findings, verdict.run
    doubtful = dict.fromkeys(
        recommendation.algorithm
        for recommendation in verdict.made
        if recommendation.now.value is None
        or (
            recommendation.verdict == WITHHELD
            and low_fidelity(findings, recommendation.algorithm, recommendation.setting)
        )
    )
    flags = dict.fromkeys(flag for name in doubtful for flag in flags_to_state(findings, name))
    if not flags:
        return ""
    sets = [f"--set={key}={','.join(values)}" for key, values in run.varied.items()]
    aims = dict.fromkeys(f"--find={row[AIM_SETTINGS.aim]}" for row in findings.of(aim_settings))
    stated = [f"--captured={pair}" for pair in run.stated]
    of_cluster = [] if run.cluster_id is None else [f"--cluster-id={run.cluster_id}"]
    arguments = [*of_cluster, *sets, *aims, *stated, *window_flags(run), *flags]
    return shlex.join([COMMAND, "replay", f"--lake={short_path(lake)}", *arguments])


def keep_lines(made: Sequence[Recommendation]) -> Iterator[str]:
    """What to keep: a line for each setting and value, with the smallest value that would have been enough in this
    capture.
    """
    alike = kept_together(made)
    for together in alike[:MOST_KEPT]:
        first = together[0]
        yield from labelled_lines(
            "KEEP",
            f"{first.name:<{NAME}}  {owners_text(together)}  {value_now_text(first)}{enough_value_text(together)}",
        )
    if len(alike) > MOST_KEPT:
        yield from labelled_lines("", f"and {len(alike) - MOST_KEPT:,} more, in the report and in the tables")


def growth_lines(findings: Findings) -> Iterator[str]:
    """How consumers fare with more traffic, how much memory they need, and how many slots, if that was replayed."""
    yield from lane_lines("GROWTH", [*growth_by_lane(findings)], partial(growth_sureness, findings))
    yield from lane_lines("GROWTH", memory_by_traffic(findings), partial(memory_sureness, findings))
    yield from lane_lines("GROWTH", slots_by_traffic(findings), partial(slots_sureness, findings))


def quota_lines(findings: Findings) -> Iterator[str]:
    """Whom quotas throttled in the capture, and how clients fare with other quotas, if that was replayed."""
    for when, text in captured_throttles(findings):
        yield from labelled_lines("QUOTA", f"{when}  {text}")
    yield from lane_lines("QUOTA", [*throttling_by_lane(findings)], partial(quota_sureness, findings))
    yield from lane_lines("QUOTA", [*producers_by_lane(findings)], partial(producers_sureness, findings))


def fetchers_lines(findings: Findings) -> Iterator[str]:
    """How followers fare with another number of fetchers, if that was replayed."""
    yield from lane_lines("FETCHERS", [*fetchers_by_lane(findings)], partial(fetchers_sureness, findings))


def reads_lines(findings: Findings) -> Iterator[str]:
    """What consumers read across racks, and what they would read and brokers would serve with and without
    fetch-from-follower.
    """
    for text in rack_reads(findings):
        yield from labelled_lines("READS", text)


def lane_lines(head: str, lanes: Sequence[tuple[str, str]], sure_of: Callable[[], str]) -> Iterator[str]:
    """A line for each of the first lanes with its outcome, and how sure these are; no lines without lanes."""
    for lane, outcome in lanes[:MOST_LANES]:
        yield from labelled_lines(head, f"{lane}  {outcome}")
    if lanes:
        yield from labelled_lines("", f"sure  {sure_of()}")


def ask_lines(findings: Findings) -> Iterator[str]:
    """The questions without an answer, and what would answer them."""
    lines = [*next_requests(findings)]
    yield from (line for text in lines[:MOST_ASKED] for line in labelled_lines("ASK", text))
    if len(lines) > MOST_ASKED:
        yield from labelled_lines("", f"and {len(lines) - MOST_ASKED:,} more, in the report")


def next_requests(findings: Findings) -> Iterator[str]:
    """What to ask for next: a line for each replay that the run lacks, and one for what the capture does not answer."""
    without = [reply for reply in answer_questions(findings) if not reply.is_answered]
    lacking = {name: numbers for name in TRIES if (numbers := questions_lacking(findings, without, name))}
    for name, numbers in lacking.items():
        flag = f"--set={TRIES[name]}"
        if leaves_out_usual(findings):
            flag += f", with `{name}:` under `replay:` in the scenario's file"
        yield f"{questions_text(numbers)}: {refusal_text(findings, name) or flag}"
    if tuple(findings.lanes.get(algorithms.FETCH_MAX_BYTES, ())) == (CAPTURED_LANE,):
        yield f"what other fetch limits would do: --set={TRIES[algorithms.FETCH_MAX_BYTES]}"
    others = [reply.question.number for reply in without if reply.question.number not in {*chain(*lacking.values())}]
    if others:
        yield f"{questions_text(others)}: not answered by this capture; --verbose and the report say why"


def questions_lacking(findings: Findings, without: Iterable[Answer], name: str) -> list[int]:
    """The numbers of the questions that lack this replay."""
    return [
        reply.question.number
        for reply in without
        if next((needed for needed in reply.question.algorithms if needed not in findings.lanes), None) == name
    ]


def questions_text(numbers: Sequence[int]) -> str:
    """`question 4`, `questions 3, 15`."""
    return f"question{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def labelled_lines(label: str, text: str) -> list[str]:
    """A text as lines. The label is in the first column of the first line only."""
    return wrapped_lines(label.ljust(HEAD), printable_text(text), HEAD)


def short_path(path: str) -> str:
    """A path relative to the current folder, if it is inside that folder."""
    current_folder = Path.cwd()
    return str(Path(path).relative_to(current_folder)) if Path(path).is_relative_to(current_folder) else path
