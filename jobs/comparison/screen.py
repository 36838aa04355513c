"""What changed between two runs, in plain words on one screen; all of it as tables, where that is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jobs.comparison.comparison import (
    ADVICE,
    AGREEMENT,
    LONE,
    OUTCOMES_PART,
    PARTS,
    SETTINGS,
    TRAFFIC,
    VERSIONS,
    Compared,
)
from jobs.comparison.figures import Change, Figure, changed
from jobs.comparison.metric_words import WORDS, figure_said, said_range
from jobs.comparison.named_runs import ComparedRun
from jobs.comparison.predictions import Prediction
from jobs.comparison.traffic_figures import CLIENT, TOPIC
from jobs.comparison.upgrades import Upgrade
from jobs.lake.delta_tables import table_path
from jobs.report_page.verdict import labelled, shown_path
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.screen import Grid, grid_lines, with_rest
from jobs.terminal.wording import counted, lane_said, moment, name_of
from schemas.tables.gold import RUNS
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.values import CHANGE, WITHHELD

MOST_NAMES, MOST_ROWS = 4, 1_000
WAIT = "longest_wait_ms"
"""What comes first of what was predicted."""
NAME = 24
MOST_LINES = {TRAFFIC: 7, VERSIONS: 4, SETTINGS: 4, OUTCOMES_PART: 7, ADVICE: 4, AGREEMENT: 2}
MOST_OF_A_NAME, MOST_ON_PAGE = 2, 20
HEADS = {
    TRAFFIC: "TRAFFIC", VERSIONS: "VERSIONS", SETTINGS: "SETTINGS", OUTCOMES_PART: "OUTCOMES", ADVICE: "ADVICE",
    AGREEMENT: "AGREEMENT",
}  # fmt: skip
PREDICTED, NOISE = "PREDICTED", "NOISE"
MOST_OF_HEAD = {**{HEADS[part]: most for part, most in MOST_LINES.items()}, PREDICTED: 5, NOISE: 1}
"""Lines of the first screen that each part may have: with the rest it has no more than 40."""
NOTHING = {
    TRAFFIC: "no client or topic came or went, and every rate is within the ranges of both",
    VERSIONS: "no client has another version than before (question 18)",
    SETTINGS: "the same in force",
    OUTCOMES_PART: "the same at the settings in force, within the ranges of both",
    ADVICE: "the same",
    AGREEMENT: "the replays equal their captures as often as before",
}


def screen_lines(of: Compared) -> list[str]:
    """The first screen: at most 40 lines."""
    lines = block("COMPARE", [described(of.before)], MOST_OF_A_NAME)
    lines += block("with", [described(of.after)], MOST_OF_A_NAME)
    for head, sentences in parts(of):
        lines += block(head, sentences, MOST_OF_HEAD[head])
    return [*lines, *block("Tables", [place(of)], MOST_OF_A_NAME)]


def parts(of: Compared) -> Iterator[tuple[str, Sequence[str]]]:
    """By head what is said of each part of a comparison."""
    for part in PARTS:
        yield HEADS[part], [*part_sentences(of, part)] or [NOTHING[part]]
    yield PREDICTED, [*predicted_sentences(of)]
    yield NOISE, [noise(of)]


def page_parts(of: Compared) -> Iterator[tuple[str, Sequence[str]]]:
    """The same as a page has it: the first sentences of each part."""
    for head, sentences in parts(of):
        more = len(sentences) - MOST_ON_PAGE
        left = [f"and {more:,} more, which `compare --verbose` prints"] if more > 0 else []
        yield head.capitalize(), [*sentences[:MOST_ON_PAGE], *left]


def described(of: ComparedRun) -> str:
    """A run: its id, clock and captures."""
    return f"run {of.run_id}, {moment(of.run.rows[0][RUNS.run_at])}: capture {of.captures}"


def block(head: str, sentences: Sequence[str], most: int) -> list[str]:
    """Sentences below a head, on so many lines at most; the last says how many more there are."""
    lines: list[str] = []
    for place_of, sentence in enumerate(sentences):
        own = labelled("" if lines else head, sentence)
        room = most - len(lines) - (place_of + 1 < len(sentences))
        if lines and len(own) > room:
            return [*lines, *labelled("", f"and {len(sentences) - place_of:,} more: --verbose")]
        lines += own[:room]
    return lines


def part_sentences(of: Compared, part: str) -> Iterator[str]:
    """What changed in a part of the comparison, a sentence each."""
    own = [one for one in of.changes if one.part == part]
    both = changed(one for one in own if one.before is not None and one.after is not None)
    if part == TRAFFIC:
        yield from came_and_went(own)
    if part == VERSIONS:
        yield from (sentence for one in of.upgrades for sentence in upgrade_sentences(one))
    if part == SETTINGS:
        yield from (lone_setting(one) for one in own if one.before is None or one.after is None)
    if part == OUTCOMES_PART and of.replayed_once:
        yield f"replayed in one of the runs alone: {', '.join(of.replayed_once)}"
    if part == ADVICE:
        yield from advice_sentences(own)
        both = []
    yield from map(change_sentence, both)
    if of.left_out.get(part):
        yield f"{of.left_out[part]:,} smaller changes were not looked at"


def came_and_went(changes: Iterable[Change]) -> Iterator[str]:
    """Which clients and topics one run alone has."""
    lone = [one for one in changes if one.metric in LONE and (one.before is None or one.after is None)]
    for kind in (CLIENT, TOPIC):
        for judgement, word in (("new", "new"), ("gone", "gone")):
            own = [one for one in lone if one.kind == kind and one.judgement == judgement]
            names = dict.fromkeys(name_of(one.scope) for one in sorted(own, key=lambda one: -largest(one)))
            if names:
                shown = ", ".join(with_rest([*names][:MOST_NAMES], len(names)))
                yield f"{counted(len(names), kind)} {'is' if len(names) == 1 else 'are'} {word}: {shown}"


def largest(one: Change) -> float:
    """The figure of the run that has it."""
    of = one.before or one.after
    return of.value or 0.0 if of is not None else 0.0


def change_sentence(one: Change) -> str:
    """A figure before and after: `app  longest wait 122 ms -> 0 ms`."""
    of = f"{name_of(one.scope):<{NAME}}" if one.kind == CLIENT else f"{f'{one.kind} {one.scope}':<{NAME}}"
    return f"{of}  {WORDS.get(one.metric, one.metric)} {figure_said(one, one.before)} -> {figure_said(one, one.after)}"


def lone_setting(one: Change) -> str:
    """A setting that one run alone takes."""
    which, of = ("second", one.after) if one.before is None else ("first", one.before)
    return f"{one.scope}={of.text if of else ''}  taken by the {which} run alone"


def advice_sentences(changes: Iterable[Change]) -> Iterator[str]:
    """What is recommended now and was not before; to keep something is news where it was to be changed."""
    for one in sorted(changes, key=lambda one: (one.judgement != "exact", one.judgement == "gone", one.scope)):
        texts = [(of.text or "") if of is not None else "" for of in (one.before, one.after)]
        if any(text.startswith((CHANGE, WITHHELD)) for text in texts) or one.judgement == "exact":
            yield f"{one.scope}: {figure_said(one, one.before)} -> {figure_said(one, one.after)}"


def upgrade_sentences(one: Upgrade) -> Iterator[str]:
    """Question 18: the versions, and what of the fetches changed by more than chance."""
    fetches = " -> ".join(f"{low}" if low == high else f"{low} to {high}" for low, high in one.apis)
    yield f"{one.name} {', '.join(one.was)} -> {', '.join(one.now)}, Fetch {fetches} (question 18)"
    real = [of for of in changed(one.changes) if of.before is not None and of.after is not None]
    for of in real:
        yield f"its {WORDS[of.metric]} {figure_said(of, of.before)} -> {figure_said(of, of.after)}"
    if not real:
        yield "its fetches are as full, as often lost and as large as before"


def predicted_sentences(of: Compared) -> Iterator[str]:
    """How the predictions of the first run came out; those for changed settings one by one, misses first."""
    predictions = of.checked.predictions
    new, same = ([one for one in predictions if one.is_changed is is_changed] for is_changed in (True, False))
    if new:
        yield f"{hits(new)} of {counted(len(new), 'figure')} under changed settings came as the first run predicted"
    if same:
        yield f"{hits(same)} of {counted(len(same), 'figure')} under unchanged settings stayed in their ranges"
    for one in sorted(new, key=lambda one: (one.is_hit, one.metric != WAIT, one.scope)):
        yield prediction_sentence(one)
    if of.checked.without_lane:
        who = counted(of.checked.without_lane, "client or cluster", "clients or clusters")
        yield f"{who} with other settings than before: the first run has no lane with these settings"
    if not predictions and not of.checked.without_lane:
        yield "nothing: no client and no replay is in both runs"
    if of.in_all > len(new):
        yield f"in this lake so far {of.hits:,} of {of.in_all:,} figures under changed settings came as predicted"


def hits(predictions: Iterable[Prediction]) -> int:
    """How many hit."""
    return sum(one.is_hit for one in predictions)


def prediction_sentence(one: Prediction) -> str:
    """`app  hit   longest wait 0 ms predicted, 0 ms seen, with fetch.max.bytes=1 MiB`."""
    as_change = Change("predicted", one.kind, one.scope, one.metric, one.predicted, one.seen)
    whose = name_of(one.scope) if one.kind == CLIENT else one.kind
    lane = "" if one.lane == CAPTURED_LANE else f", {lane_said(one.lane)}"
    low, high = one.range
    predicted = figure_said(as_change, one.predicted) if low == high else said_range(one.metric, low, high)
    value = figure_said(as_change, one.seen)
    came, what = "hit " if one.is_hit else "MISS", WORDS[one.metric]
    return f"{whose:<{NAME}}  {came}  {what} {predicted} predicted, {value} seen{lane}"


def noise(of: Compared) -> str:
    """How many differences are within ranges."""
    count = sum(one.judgement == "noise" for one in of.changes)
    return f"{counted(count, 'other figure')} {'differs' if count == 1 else 'differ'} within the ranges of both runs"


def place(of: Compared) -> str:
    """Where the predictions are kept."""
    if not of.checked.predictions:
        return "--verbose prints every difference; --json has the same for programs"
    path = shown_path(table_path(of.after.lake, PREDICTIONS_CHECKED))
    return f"{path}; --verbose prints every difference, --json has them for programs"


def verbose_lines(of: Compared) -> Iterator[str]:
    """Every change and every prediction as tables."""
    head = ("part", "of", "what", "before", "range", "after", "range after", "judged")
    for part in PARTS:
        own = [one for one in of.changes if one.part == part]
        if own:
            cells = [change_cells(one) for one in sorted(own, key=lambda one: (one.judgement == "noise", -one.size))]
            yield from ("", HEADS[part].capitalize())
            yield from grid_lines(Grid(head[1:], cells, head[1:]), MOST_ROWS)
    if of.checked.predictions:
        yield from ("", "Predicted")
        names = ("of", "what", "lane", "predicted", "range", "seen", "by", "came")
        cells = [prediction_cells(one) for one in of.checked.predictions]
        yield from grid_lines(Grid(names, cells, names), MOST_ROWS)


def change_cells(one: Change) -> list[str]:
    """A change as cells of a table."""
    cells = [f"{one.kind} {name_of(one.scope)}", WORDS.get(one.metric, one.metric)]
    for of in (one.before, one.after):
        cells += ["-", ""] if of is None else [figure_said(one, of), range_of(one, of)]
    return [*cells, "beyond both ranges" if one.judgement == "beyond" else one.judgement]


def range_of(one: Change, of: Figure) -> str:
    """A figure's range; nothing where it is exact."""
    return "" if of.range is None else said_range(one.metric, *of.range)


def prediction_cells(one: Prediction) -> list[str]:
    """A prediction as cells of a table."""
    as_change = Change("predicted", one.kind, one.scope, one.metric, one.predicted, one.seen)
    return [
        name_of(one.scope) if one.kind == CLIENT else one.kind, WORDS[one.metric], one.lane,
        figure_said(as_change, one.predicted), said_range(one.metric, *one.range), figure_said(as_change, one.seen),
        one.seen_by, "hit" if one.is_hit else "miss",
    ]  # fmt: skip
