"""What a comparison says on one screen, as tables and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from jobs.comparison.checked_predictions import CheckedPredictions
from jobs.comparison.comparison import PARTS, RunComparison, setting_changes
from jobs.comparison.comparison_json import Comparison, comparison_json
from jobs.comparison.figures import Change, Figure
from jobs.comparison.named_runs import ComparedRun
from jobs.comparison.predictions import BY_CAPTURE, Prediction
from jobs.comparison.screen import screen_lines, verbose_lines
from jobs.comparison.upgrades import find_upgrades
from jobs.doc_pages.json_schemas import COMPARISON_SCHEMA, schema_text
from jobs.lake.capture_sets import CaptureSet
from jobs.report_page.findings import KnownRun
from jobs.terminal.screen import WIDTH
from schemas.tables.algorithms import FETCH_MAX_BYTES
from schemas.tables.gold import RUNS
from tests.unit.comparison.software_rows import JAVA, fetched
from tests.unit.report.findings import AT, row_of

MOST_LINES = 40
WAIT = "longest_wait_ms"


def run_of(run_id: str, file: str) -> ComparedRun:
    row = row_of(RUNS, run_id=run_id, capture_id=f"of-{run_id}", run_at=AT, algorithm=FETCH_MAX_BYTES)
    captures = CaptureSet(f"of-{run_id}", 1, [f"/captures/{file}"], AT, AT)
    return ComparedRun("/lake", KnownRun((row,), (row,)), captures, Mock())


def compared(
    changes: Sequence[Change] = (), checked: CheckedPredictions | None = None, is_upgraded: bool = False
) -> RunComparison:
    before, after = [fetched(JAVA, "3.9.0", 16, 40)], [fetched(JAVA, "4.1.0", 17, 300)]
    one, two = run_of("one", f"{'monday-' * 40}.pcap"), run_of("two", "tuesday.pcap")
    upgraded = find_upgrades(before, after) if is_upgraded else ()
    return RunComparison(one, two, changes, {}, upgraded, (), checked or CheckedPredictions())


def change(part: str, scope: str, before: Figure | None, after: Figure | None, metric: str = WAIT) -> Change:
    return Change(part, "client", scope, metric, before, after)


def predicted(scope: str, seen: float, is_changed: bool = True) -> Prediction:
    lane = "consumer.fetch.max.bytes=1MiB" if is_changed else "captured"
    figure = Figure(110.0, 78.0, 219.0)
    return Prediction(FETCH_MAX_BYTES, lane, is_changed, "client", scope, WAIT, figure, Figure(seen), BY_CAPTURE)


def crowd() -> RunComparison:
    """Two runs that differ in everything, with names as long as Kafka accepts."""
    names = [f"{'very-long-name-of-a-client-' * 9}{number}" for number in range(50)]
    changes = [change(part, name, Figure(100.0), Figure(200.0)) for part in PARTS for name in names]
    changes += [change("traffic", name, None, Figure(2.0), "requests_per_s") for name in names]
    changes += [change("advice", f"{name}", Figure(text="keep 1"), Figure(text="change 2"), "recommended")
                for name in [f"consumer.fetch.max.bytes of {name}" for name in names]]  # fmt: skip
    checked = CheckedPredictions(tuple(predicted(name, 90.0) for name in names), 3, 7)
    return compared(changes, checked, is_upgraded=True)


def test_the_first_screen_is_one_screen_however_much_changed() -> None:
    lines = screen_lines(crowd())
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH
    assert sum("more: --verbose" in line for line in lines) >= len(PARTS) - 1


def test_changes_are_shown_and_the_rest_is_counted_as_noise() -> None:
    changes = [
        change("outcomes", "app", Figure(122.0, 78.0, 219.0), Figure(0.0, 0.0, 0.0)),
        change("outcomes", "quiet", Figure(122.0, 78.0, 219.0), Figure(90.0, 60.0, 100.0)),
        change("traffic", "late", None, Figure(3.0), "requests_per_s"),
        change("traffic", "early", Figure(3.0), None, "requests_per_s"),
        change("settings", "app", Figure(text="199680"), Figure(text="1048576"), "consumer.fetch.max.bytes"),
        *setting_changes({"kafka": "4.3", "slots": "8"}, {"kafka": "4.3", "slots": "16"}),
    ]
    text = "\n".join(screen_lines(compared(changes)))
    assert "  longest wait 122 ms -> 0 ms" in text
    assert "TRAFFIC   1 client is new: late\n          1 client is gone: early\n" in text
    assert "  consumer.fetch.max.bytes 195 KiB -> 1 MiB" in text
    assert "setting slots             is 8 -> 16" in text
    assert "quiet" not in text
    assert "NOISE     1 other figure differs within the ranges of both runs" in text
    assert "ADVICE    the same" in text
    (noise,) = [line for line in verbose_lines(compared(changes)) if "quiet" in line]
    assert noise.split()[-1] == "noise"
    assert "78 to 219 ms" in noise


def test_an_upgrade_is_shown_as_the_answer_to_question_18() -> None:
    text = "\n".join(screen_lines(compared(is_upgraded=True)))
    assert f"VERSIONS  {JAVA} 3.9.0 -> 4.1.0, Fetch 16 -> 17 (question 18)\n" in text
    assert "its full fetches 4.0 % -> 30.0 %" in text
    assert "VERSIONS  no client has another version than before (question 18)" in "\n".join(screen_lines(compared()))


def test_predictions_are_shown_misses_first() -> None:
    checked = CheckedPredictions(
        (predicted("hit", 90.0), predicted("miss", 900.0), predicted("same", 90.0, is_changed=False)), 1
    )
    text = " ".join(" ".join(screen_lines(compared(checked=checked))).split())
    assert "PREDICTED 1 of 2 figures under changed settings came as the first run predicted" in text
    assert text.index("MISS longest wait 78 to 219 ms predicted, 900 ms seen, with fetch.max.bytes=1 MiB") < (
        text.index("hit longest wait 78 to 219 ms predicted, 90 ms seen")
    )
    assert "1 of 1 figure under unchanged settings" in text
    assert "1 client or cluster with other settings than before: the first run has no lane" in text


@pytest.mark.parametrize("of", [compared(), crowd()], ids=["nothing", "everything"])
def test_the_models_read_the_json_back(of: RunComparison) -> None:
    told = comparison_json(of).model_dump_json()
    assert Comparison.model_validate_json(told) == comparison_json(of)
    assert len(json.loads(told)["changes"]) == len(of.changes)


def test_the_schema_is_current(repository: Path) -> None:
    assert (repository / COMPARISON_SCHEMA).read_text(encoding="utf-8") == schema_text(COMPARISON_SCHEMA), (
        "make it anew: python -m jobs.doc_pages"
    )
