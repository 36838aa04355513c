"""What an earlier run predicted for the settings that are now in force, and what a later capture shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import pyarrow as pa

from jobs.comparison.figures import Figure, range_of_share
from jobs.scenarios.settings import Value, setting_of, settings
from jobs.terminal.lane_rows import settings_in_name
from jobs.units import none_if_infinite
from schemas.tables.gold_predictions import PREDICTIONS_CHECKED
from udfs.facts.arrow_tables import arrow_schema
from udfs.replay.shared.lanes import KAFKA_RELEASE

BY_CAPTURE, BY_REPLAY = "capture", "replay"
NEARLY_MS = 0.1
"""A time counts as within a range if its distance from the range is at most this, ms."""
InForce = Mapping[str, str]
"""Values of settings as text, by key; several values of a client have commas between them."""


@dataclass(frozen=True)
class Prediction:
    """A figure as an earlier run predicted it, and as it was seen later.

    lane: of the earlier run. is_changed: other settings are in force than before. seen_by: BY_CAPTURE or BY_REPLAY.
    """

    algorithm: str
    lane: str
    is_changed: bool
    kind: str
    scope: str
    metric: str
    predicted: Figure
    seen: Figure
    seen_by: str

    @property
    def range(self) -> tuple[float, float]:
        """The range in which 80 % should lie; only the predicted value if it is exact."""
        of, value = self.predicted, figure_number(self.predicted)
        if of.cases is not None and self.seen.cases:
            # Both shares are samples, so their difference has the variance of both.
            both = 1 / (1 / max(of.cases, 1) + 1 / self.seen.cases)
            return range_of_share(value, both)
        return (value, value) if of.low is None or of.high is None else (of.low, of.high)

    @property
    def is_hit(self) -> bool:
        """Whether what was seen lies within the range."""
        (low, high), value = self.range, figure_number(self.seen)
        nearly = NEARLY_MS if self.metric.endswith("_ms") else 0.0
        return low - nearly <= value <= high + nearly


def figure_number(figure: Figure) -> float:
    """A figure's value; inf for an infinite time."""
    return inf if figure.value is None else figure.value


def settings_in_force(
    algorithm: str, captured: Mapping[str, Value], release: str, by_capture: InForce, apart_from: Iterable[str] = ()
) -> InForce:
    """The value in force of every setting that a replay takes: as a capture shows it, else as stated, else Kafka's
    default.

    captured: the run's values, stated or default. release: that of the brokers. apart_from: settings that are set on
    one of these are left out.
    """
    others = tuple(apart_from)
    wanted = [
        key for key, setting in settings().items() if algorithm in setting.algorithms and setting.set_on not in others
    ]
    wanted += [key for key in captured if algorithm in setting_of(key).algorithms and key not in wanted]
    known = {KAFKA_RELEASE: release, **{key: str(value) for key, value in captured.items()}, **by_capture}
    return {key: known.get(key, default_text(key)) for key in wanted if setting_of(key).set_on not in others}


def default_text(key: str) -> str:
    """Kafka's default as text; empty for settings that captures show."""
    value = setting_of(key).default_value
    return "" if value is None else str(value)


def lane_values(lane: str) -> InForce:
    """The values that a lane sets, by key.

    >>> lane_values("consumer.fetch.max.bytes=1MiB")
    {'consumer.fetch.max.bytes': '1048576'}
    """
    return {key: str(setting_of(key).parse(text)) for key, text in settings_in_name(lane).items()}


def lane_in_force(lanes: Mapping[str, InForce], before: InForce, after: InForce) -> str | None:
    """The first lane of an earlier run whose settings are in force in the later run; None if no lane has them.

    lanes: the values that each lane sets, by name; the captured lane comes first.
    """
    settings_after = {**dict.fromkeys(before, ""), **after}
    for name, changed in lanes.items():
        of_lane = {**before, **{key: value for key, value in changed.items() if key in before}}
        if all(setting_of(key).is_in_production for key in changed) and of_lane == settings_after:
            return name
    return None


def check_id(predicted_by: str, run_id: str) -> str:
    """The identity of a comparison, under which its rows are stored."""
    return f"{predicted_by}-{run_id}"


def prediction_rows(predicted_by: str, run_id: str, predictions: Sequence[Prediction]) -> pa.Table:
    """The rows of the table `predictions_checked`."""
    t = PREDICTIONS_CHECKED
    rows: list[dict[str, object]] = [
        {
            t.check_id: check_id(predicted_by, run_id), t.run_id: run_id, t.predicted_by: predicted_by,
            t.algorithm: prediction.algorithm, t.scenario: prediction.lane, t.is_changed: prediction.is_changed,
            t.scope_kind: prediction.kind, t.scope: prediction.scope, t.metric: prediction.metric,
            t.predicted: none_if_infinite(figure_number(prediction.predicted)),
            t.p10: none_if_infinite(prediction.range[0]),
            t.p90: none_if_infinite(prediction.range[1]), t.seen: none_if_infinite(figure_number(prediction.seen)),
            t.seen_by: prediction.seen_by, t.is_hit: prediction.is_hit,
        }
        for prediction in predictions
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=arrow_schema(t))
