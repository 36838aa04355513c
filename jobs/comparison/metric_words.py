"""The names of figures in sentences, and how their values are written."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from jobs.comparison.figures import Change, Figure
from jobs.comparison.outcome_figures import ADVISED, OF
from jobs.report_page.advice.recommendation import value_text
from jobs.scenarios.settings import settings
from jobs.terminal.wording import duration, percent, range_text, short_size

WORDS: Mapping[str, str] = {
    "requests_per_s": "requests a second",
    "bytes_per_s": "bytes a second",
    "produced_bytes_per_s": "produced a second",
    "consumed_bytes_per_s": "consumed a second",
    "full_fetch_share": "full fetches",
    "not_found_share": "sessions not found",
    "refused_share": "sessions refused",
    "bytes_a_request": "bytes a request",
    "bytes_a_response": "bytes a response",
    "software": "software",
    "fetch_version": "Fetch version",
    "produce_version": "Produce version",
    "longest_wait_ms": "longest wait",
    "catch_up_ms": "catch-up",
    "held_bytes": "memory held",
    "used_bytes_max": "most memory used",
    "producer_used_bytes_max": "most of buffer.memory used",
    "waiting_batch_share": "batches that wait for memory",
    "live_sessions": "most fetch sessions",
    "zero_harm_slots": "slots needed",
    "split_share": "batches split",
    "failed_batches": "batches that fail",
    "batch_bytes_max": "largest batch",
    "partitions": "replicas",
    "agreement": "results that equal the capture",
    "value": "is",
    "recommended": "advice",
}
"""The name of a metric in a sentence, by metric."""
NOT_READ_TO_END = "not read to its end"


def figure_in_words(one: Change, figure: Figure | None) -> str:
    """A figure as text: `122 ms`, `1 MiB`, `12 %`, `not read to its end`."""
    if figure is None:
        return "nothing"
    if figure.text is not None:
        return text_with_unit(one, figure.text)
    return number_with_unit(one.metric, inf if figure.value is None else figure.value)


def text_with_unit(one: Change, text: str) -> str:
    """A text figure with its unit: a setting's value, or advice about one."""
    if one.metric == ADVISED:
        verdict, _, value = text.partition(" ")
        return f"{verdict} {value_text(one.scope.partition(OF)[0], value)}"
    return value_text(one.metric, text) if one.metric in settings() else text


def number_with_unit(metric: str, value: float) -> str:
    """A number with its unit, which follows from the metric's name: ms, for example, if it ends in `_ms`."""
    if value == inf:
        return NOT_READ_TO_END
    if metric.endswith("_ms"):
        return duration(value)
    if metric.endswith("share") or metric == "agreement":
        return percent(value)
    if "bytes" in metric:
        return short_size(value)
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:,.2g}"


def range_with_unit(metric: str, low: float, high: float) -> str:
    """Both ends of a range; a common unit is written once: `78 to 219 ms`."""
    return range_text(number_with_unit(metric, low), number_with_unit(metric, high))
