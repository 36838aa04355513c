"""Rows as lines of a screen."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.units import format_bytes

MOST_LINES = 20
WIDTH = 120
"""The most characters of a line, and of a cell."""
BELOW = " " * 4
"""The indent of what is written below a table."""
_LONGEST_NAME, _KEPT = 249, 60
"""The length of the longest topic name that Kafka accepts, and how many characters of each end of a longer word are
shown."""
_TOO_LONG = re.compile(rf"\S{{{_LONGEST_NAME + 1},}}")


OF_CAPTURED = ("lane", CAPTURED_LANE)
"""Column and cell of the lane that replays the settings in force."""
AS_CAPTURED = "replayed as captured"


@dataclass(frozen=True)
class Grid:
    """A table, on the screen or on the page: cells as text. The columns named in `texts` are aligned to the left.

    Below it are the notes, whole sentences on the table, and then what columns show, by their names in `head`.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: Collection[str]
    notes: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def display_rows(self) -> list[list[str]]:
        """The rows. The captured lane has a name that says what it is: the replay of the settings in force."""
        return [
            [AS_CAPTURED if (name, cell) == OF_CAPTURED else cell for name, cell in zip(self.head, row, strict=True)]
            for row in self.rows
        ]


def aligned_lines(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: Collection[str],
    most: int = MOST_LINES,
) -> list[str]:
    """The rows as lines with aligned columns, at most `most` rows. Columns named in `texts` are aligned to the left,
    the others to the right.
    """
    cells = [head, *([shortened_text(printable_text(cell)) for cell in row] for row in rows[:most])]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = (c.ljust(widths[i]) if head[i] in texts else c.rjust(widths[i]) for i, c in enumerate(row))
        return ("  " + "  ".join(padded)).rstrip()

    lines = [line(row) for row in cells]
    more = [f"  ... {len(rows) - most:,} more in the tables"] if len(rows) > most else []
    return [*lines, *more]


def grid_lines(grid: Grid, most: int = MOST_LINES, width: int = WIDTH) -> list[str]:
    """A table as lines of a screen, with at most `most` rows. width: of what is below the table."""
    lines = aligned_lines(grid.head, grid.display_rows, grid.texts, most)
    longest = max(map(len, grid.columns), default=0)
    heads = [(BELOW, note) for note in grid.notes]
    heads += [(f"{BELOW}{name.ljust(longest)}  ", text) for name, text in grid.columns.items()]
    return [*lines, *(line for head, text in heads for line in wrapped_lines(head, text, width=width))]


def wrapped_lines(head: str, text: str, indent: int | None = None, width: int = WIDTH) -> list[str]:
    """A paragraph that begins with `head`. Further lines are indented by `indent`, or by the length of the head."""
    after = " " * (len(head) if indent is None else indent)
    return textwrap.wrap(
        with_short_words(text), width, initial_indent=head, subsequent_indent=after, break_on_hyphens=False
    )


def printable_text(text: str) -> str:
    """A text in which all characters that control a terminal are escaped, such as those that move the cursor or change
    the writing direction: topics and clients may have any name.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def with_short_words(text: str) -> str:
    """A text in which words longer than any name in Kafka are cut in the middle: they would fill the screen."""
    return _TOO_LONG.sub(lambda word: f"{word[0][:_KEPT]}…{word[0][-_KEPT:]}", text)


def shortened_text(text: str) -> str:
    """A text that is cut to the length of a line."""
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def with_rest_count(texts: Iterable[str], in_all: int) -> list[str]:
    """These texts, and one more that says how many others there are. in_all: the total number.

    >>> with_rest_count(["a", "b"], 5)
    ['a', 'b', '3 more']
    """
    first = list(texts)
    return [*first, f"{in_all - len(first):,} more"] if in_all > len(first) else first


def share_text(part: int, whole: int) -> str:
    """A share in percent. It is 100 only if `part` is all of `whole`, and 0.00 only if `part` is 0."""
    if whole == 0:
        return "-"
    if part in (0, whole):
        return "100 %" if part else "0.00 %"
    return f"{min(max(100 * part / whole, 0.01), 99.99):.2f} %"


def size_text(value: int | None) -> str:
    """Bytes with a unit, rounded so that they are easy to read."""
    if value is None:
        return "-"
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:,.1f} {name}"
    return format_bytes(value) if value == 0 else f"{value:,} B"


def rounded_size(count: float) -> str:
    """As `size_text`, for a number of bytes that may not be whole."""
    return size_text(round(count))
