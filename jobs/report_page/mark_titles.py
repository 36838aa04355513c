"""The SVG titles of a plot's marks: whose a mark is, and its values. They are for the pointer and the page's filter."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from jobs.report_page.question import Axis, Plot
from jobs.terminal.screen import size_text
from jobs.terminal.wording import duration, percent

SAID = "said"
"""The field of a plot's rows with the title."""
WHOSE = "whose"
"""The field of a plot's rows that says whose a mark is, if no axis does."""
UNDER_POINTER: Mapping[str, Any] = {"description": {"field": SAID, "type": "nominal"}}
"""The channel that gives a mark the text in SAID."""
_AS_WRITTEN: Mapping[str, Callable[[Any], str]] = {
    "bytes": lambda value: size_text(round(value)),
    "ms": duration,
    "percent": percent,
    "time": "{:,g}".format,
    "count": "{:,g}".format,
    "ratio": "{:.2f}".format,
    "name": str,
}
_MARK = re.compile(r'<(\w+) aria-label="([^"]*)" role="graphics-symbol"([^>]*?)/>')
_FOR_READERS = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')


def mark_text(plot: Plot, row: Mapping[str, Any]) -> str:
    """`captured; time since its first fetch: 20 ms; bytes held: 1.2 MiB`: whose it is, names, then what is measured."""
    axes = [axis for axis in (plot.y, plot.colour, plot.x) if axis is not None and row.get(axis.field) is not None]
    names = [axis_value_text(axis, row[axis.field]) for axis in axes if axis.scale == "name"]
    values = [
        measure_text(axis, row) for axis in (plot.x, plot.y, plot.colour) if axis in axes and axis.scale != "name"
    ]
    return "; ".join([*([str(row[WHOSE])] if WHOSE in row else []), *names, *values])


def measure_text(axis: Axis, row: Mapping[str, Any]) -> str:
    """A value with what it is, and the ends of its interval or histogram bar if there are any."""
    value = axis_value_text(axis, row[axis.field])
    if "low" in row:
        value += f" ({axis_value_text(axis, row['low'])} to {axis_value_text(axis, row['high'])})"
    elif axis.log and "until" in row:
        value += f" to {axis_value_text(axis, row['until'])}"
    return f"{axis.title}: {value}" if axis.title else value


def axis_value_text(axis: Axis, value: Any) -> str:
    """A value of an axis, with its unit."""
    return _AS_WRITTEN[axis.scale](value)


def with_titles(drawn: str) -> str:
    """Vega's SVG with each mark's description as a title, which browsers show under the pointer.

    The marks' own texts for screen readers are removed, because the plot has one text as a whole.
    """
    return _FOR_READERS.sub("", _MARK.sub(r"<\1\3><title>\2</title></\1>", drawn))
