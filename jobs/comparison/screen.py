"""What changed between two runs, in plain words on one screen; on request also everything as tables."""

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
    RunComparison,
)
from jobs.comparison.figures import Change, Figure, changes_beyond_noise
from jobs.comparison.metric_words import WORDS, figure_in_words, range_with_unit
from jobs.comparison.named_runs import ComparedRun
from jobs.comparison.predictions import Prediction
from jobs.comparison.traffic_figures import CLIENT, TOPIC
from jobs.comparison.upgrades import Upgrade
from jobs.lake.table_address import address_of
from jobs.report_page.verdict import labelled_lines, short_path
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.screen import Grid, grid_lines, with_rest_count
from jobs.terminal.wording import client_name, lane_phrase, quantity, utc_time
from schemas.tables.gold import RUNS
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from schemas.tables.values import CHANGE, WITHHELD

MOST_NAMES, MOST_ROWS = 4, 1_000
WAIT = "longest_wait_ms"
"""The metric whose predictions come first."""
NAME = 24
MOST_LINES = {TRAFFIC: 7, VERSIONS: 4, SETTINGS: 4, OUTCOMES_PART: 7, ADVICE: 4, AGREEMENT: 2}
MOST_OF_A_NAME, MOST_ON_PAGE = 2, 20
HEADS = {
    TRAFFIC: "TRAFFIC", VERSIONS: "VERSIONS", SETTINGS: "SETTINGS", OUTCOMES_PART: "OUTCOMES", ADVICE: "ADVICE",
    AGREEMENT: "AGREEMENT",
}  # fmt: skip
PREDICTED, NOISE = "PREDICTED", "NOISE"
MOST_OF_HEAD = {**{HEADS[part]: most for part, most in MOST_LINES.items()}, PREDICTED: 5, NOISE: 1}
"""How many lines of the first screen a part may have, by heading. Together they are at most 40."""
NOTHING = {
    TRAFFIC: "no client or topic came or went, and every rate is within the ranges of both",
    VERSIONS: "no client has another version than before (question 18)",
    SETTINGS: "the same in force",
    OUTCOMES_PART: "the same at the settings in force, within the ranges of both",
    ADVICE: "the same",
    AGREEMENT: "the replays equal their captures as often as before",
}


def screen_lines(compared: RunComparison) -> list[str]:
    """The first screen: at most 40 lines."""
    lines = lines_below_head("COMPARE", [run_text(compared.before)], MOST_OF_A_NAME)
    lines += lines_below_head("with", [run_text(compared.after)], MOST_OF_A_NAME)
    for head, sentences in sentences_by_part(compared):
        lines += lines_below_head(head, sentences, MOST_OF_HEAD[head])
    return [*lines, *lines_below_head("Tables", [place_of_predictions(compared)], MOST_OF_A_NAME)]


def sentences_by_part(compared: RunComparison) -> Iterator[tuple[str, Sequence[str]]]:
    """(heading, the sentences below it) for each part of a comparison."""
    for part in PARTS:
        yield HEADS[part], [*part_sentences(compared, part)] or [NOTHING[part]]
    yield PREDICTED, [*predicted_sentences(compared)]
    yield NOISE, [noise_text(compared)]


def page_parts(compared: RunComparison) -> Iterator[tuple[str, Sequence[str]]]:
    """(heading, the first sentences) for each part of a comparison, as a page shows them."""
    for head, sentences in sentences_by_part(compared):
        more = len(sentences) - MOST_ON_PAGE
        left = [f"and {more:,} more, which `compare --verbose` prints"] if more > 0 else []
        yield head.capitalize(), [*sentences[:MOST_ON_PAGE], *left]


def run_text(run: ComparedRun) -> str:
    """A run as text: its id, clock and captures."""
    return f"run {run.run_id}, {utc_time(run.run.rows[0][RUNS.run_at])}: capture {run.captures}"


def lines_below_head(head: str, sentences: Sequence[str], most: int) -> list[str]:
    """Sentences below a heading, on at most `most` lines; the last line says how many more sentences there are."""
    lines: list[str] = []
    for place_of, sentence in enumerate(sentences):
        own = labelled_lines("" if lines else head, sentence)
        room = most - len(lines) - (place_of + 1 < len(sentences))
        if lines and len(own) > room:
            return [*lines, *labelled_lines("", f"and {len(sentences) - place_of:,} more: --verbose")]
        lines += own[:room]
    return lines


def part_sentences(compared: RunComparison, part: str) -> Iterator[str]:
    """What changed in a part of the comparison, one sentence for each change."""
    changes = [one for one in compared.changes if one.part == part]
    both = changes_beyond_noise(one for one in changes if one.before is not None and one.after is not None)
    if part == TRAFFIC:
        yield from came_and_went_sentences(changes)
    if part == VERSIONS:
        yield from (sentence for one in compared.upgrades for sentence in upgrade_sentences(one))
    if part == SETTINGS:
        yield from (lone_setting_sentence(one) for one in changes if one.before is None or one.after is None)
    if part == OUTCOMES_PART and compared.replayed_once:
        yield f"replayed in one of the runs alone: {', '.join(compared.replayed_once)}"
    if part == ADVICE:
        yield from advice_sentences(changes)
        both = []
    yield from map(change_sentence, both)
    if compared.left_out.get(part):
        yield f"{compared.left_out[part]:,} smaller changes were not looked at"


def came_and_went_sentences(changes: Iterable[Change]) -> Iterator[str]:
    """Which clients and topics only one of the runs has."""
    lone = [change for change in changes if change.metric in LONE and (change.before is None or change.after is None)]
    for kind in (CLIENT, TOPIC):
        for judgement, word in (("new", "new"), ("gone", "gone")):
            of_kind = [change for change in lone if change.kind == kind and change.judgement == judgement]
            names = dict.fromkeys(
                client_name(change.scope) for change in sorted(of_kind, key=lambda change: -larger_number(change))
            )
            if names:
                first_names = ", ".join(with_rest_count([*names][:MOST_NAMES], len(names)))
                yield f"{quantity(len(names), kind)} {'is' if len(names) == 1 else 'are'} {word}: {first_names}"


def larger_number(change: Change) -> float:
    """The figure of the run that has it."""
    figure = change.before or change.after
    return figure.value or 0.0 if figure is not None else 0.0


def change_sentence(change: Change) -> str:
    """A figure before and after: `app  longest wait 122 ms -> 0 ms`."""
    subject = f"{client_name(change.scope) if change.kind == CLIENT else f'{change.kind} {change.scope}':<{NAME}}"
    before, after = figure_in_words(change, change.before), figure_in_words(change, change.after)
    return f"{subject}  {WORDS.get(change.metric, change.metric)} {before} -> {after}"


def lone_setting_sentence(change: Change) -> str:
    """A sentence on a setting that only one run takes."""
    which, figure = ("second", change.after) if change.before is None else ("first", change.before)
    return f"{change.scope}={figure.text if figure else ''}  taken by the {which} run alone"


def advice_sentences(changes: Iterable[Change]) -> Iterator[str]:
    """A sentence for each new recommendation. Advice to keep a value is new only if it was to change it before."""
    for change in sorted(
        changes, key=lambda change: (change.judgement != "exact", change.judgement == "gone", change.scope)
    ):
        texts = [(figure.text or "") if figure is not None else "" for figure in (change.before, change.after)]
        if any(text.startswith((CHANGE, WITHHELD)) for text in texts) or change.judgement == "exact":
            yield f"{change.scope}: {figure_in_words(change, change.before)} -> {figure_in_words(change, change.after)}"


def upgrade_sentences(upgrade: Upgrade) -> Iterator[str]:
    """Question 18: the versions, and how fetches changed beyond noise."""
    fetches = " -> ".join(f"{low}" if low == high else f"{low} to {high}" for low, high in upgrade.apis)
    yield f"{upgrade.name} {', '.join(upgrade.was)} -> {', '.join(upgrade.now)}, Fetch {fetches} (question 18)"
    real = [
        change
        for change in changes_beyond_noise(upgrade.changes)
        if change.before is not None and change.after is not None
    ]
    for change in real:
        before, after = figure_in_words(change, change.before), figure_in_words(change, change.after)
        yield f"its {WORDS[change.metric]} {before} -> {after}"
    if not real:
        yield "its fetches are as full, as often lost and as large as before"


def predicted_sentences(compared: RunComparison) -> Iterator[str]:
    """How the predictions of the first run came out. Those for changed settings are named one by one, misses first."""
    predictions = compared.checked.predictions
    new, same = (
        [prediction for prediction in predictions if prediction.is_changed is is_changed]
        for is_changed in (True, False)
    )
    if new:
        of_new = f"{number_of_hits(new)} of {quantity(len(new), 'figure')}"
        yield f"{of_new} under changed settings came as the first run predicted"
    if same:
        of_same = f"{number_of_hits(same)} of {quantity(len(same), 'figure')}"
        yield f"{of_same} under unchanged settings stayed in their ranges"
    for prediction in sorted(
        new, key=lambda prediction: (prediction.is_hit, prediction.metric != WAIT, prediction.scope)
    ):
        yield prediction_sentence(prediction)
    if compared.checked.without_lane:
        who = quantity(compared.checked.without_lane, "client or cluster", "clients or clusters")
        yield f"{who} with other settings than before: the first run has no lane with these settings"
    if not predictions and not compared.checked.without_lane:
        yield "nothing: no client and no replay is in both runs"
    if compared.in_all > len(new):
        figures = f"{compared.hits:,} of {compared.in_all:,} figures"
        yield f"in this lake so far {figures} under changed settings came as predicted"


def number_of_hits(predictions: Iterable[Prediction]) -> int:
    """How many of these predictions hit."""
    return sum(prediction.is_hit for prediction in predictions)


def prediction_sentence(prediction: Prediction) -> str:
    """`app  hit   longest wait 0 ms predicted, 0 ms seen, with fetch.max.bytes=1 MiB`."""
    as_change = Change(
        "predicted", prediction.kind, prediction.scope, prediction.metric, prediction.predicted, prediction.seen
    )
    whose = client_name(prediction.scope) if prediction.kind == CLIENT else prediction.kind
    lane = "" if prediction.lane == CAPTURED_LANE else f", {lane_phrase(prediction.lane)}"
    low, high = prediction.range
    predicted = (
        figure_in_words(as_change, prediction.predicted)
        if low == high
        else range_with_unit(prediction.metric, low, high)
    )
    value = figure_in_words(as_change, prediction.seen)
    came, what = "hit " if prediction.is_hit else "MISS", WORDS[prediction.metric]
    return f"{whose:<{NAME}}  {came}  {what} {predicted} predicted, {value} seen{lane}"


def noise_text(compared: RunComparison) -> str:
    """Text on how many differences are within their ranges."""
    count = sum(change.judgement == "noise" for change in compared.changes)
    return f"{quantity(count, 'other figure')} {'differs' if count == 1 else 'differ'} within the ranges of both runs"


def place_of_predictions(compared: RunComparison) -> str:
    """Text that says where the predictions are stored."""
    if not compared.checked.predictions:
        return "--verbose prints every difference; --json has the same for programs"
    path = short_path(str(address_of(compared.after.lake, PREDICTIONS_CHECKED)))
    return f"{path}; --verbose prints every difference, --json has them for programs"


def verbose_lines(compared: RunComparison) -> Iterator[str]:
    """Every change and every prediction as tables."""
    head = ("part", "of", "what", "before", "range", "after", "range after", "judged")
    for part in PARTS:
        changes = [one for one in compared.changes if one.part == part]
        if changes:
            cells = [
                change_cells(one) for one in sorted(changes, key=lambda one: (one.judgement == "noise", -one.size))
            ]
            yield from ("", HEADS[part].capitalize())
            yield from grid_lines(Grid(head[1:], cells, head[1:]), MOST_ROWS)
    if compared.checked.predictions:
        yield from ("", "Predicted")
        names = ("of", "what", "lane", "predicted", "range", "seen", "by", "came")
        cells = [prediction_cells(one) for one in compared.checked.predictions]
        yield from grid_lines(Grid(names, cells, names), MOST_ROWS)


def change_cells(change: Change) -> list[str]:
    """A change as cells of a table."""
    cells = [f"{change.kind} {client_name(change.scope)}", WORDS.get(change.metric, change.metric)]
    for figure in (change.before, change.after):
        cells += ["-", ""] if figure is None else [figure_in_words(change, figure), figure_range_text(change, figure)]
    return [*cells, "beyond both ranges" if change.judgement == "beyond" else change.judgement]


def figure_range_text(change: Change, figure: Figure) -> str:
    """A figure's range as text; empty if the figure is exact."""
    return "" if figure.range is None else range_with_unit(change.metric, *figure.range)


def prediction_cells(prediction: Prediction) -> list[str]:
    """A prediction as cells of a table."""
    as_change = Change(
        "predicted", prediction.kind, prediction.scope, prediction.metric, prediction.predicted, prediction.seen
    )
    return [
        client_name(prediction.scope) if prediction.kind == CLIENT else prediction.kind, WORDS[prediction.metric],
        prediction.lane, figure_in_words(as_change, prediction.predicted),
        range_with_unit(prediction.metric, *prediction.range), figure_in_words(as_change, prediction.seen),
        prediction.seen_by, "hit" if prediction.is_hit else "miss",
    ]  # fmt: skip
