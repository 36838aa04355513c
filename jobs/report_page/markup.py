"""Texts as the page sets them: code, units and lines; all escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from jobs.terminal.lane_rows import BETWEEN
from jobs.terminal.screen import printable_text

_NO_BREAK = "\N{NO-BREAK SPACE}"
_UNIT = re.compile(r"(?<=\d) (?=(?:%|B|[KMG]iB|ms|s|min|h)\b|%)")
_CODE = re.compile(r"(`[^`]+`|--\w(?:[^\s;]*[^\s;:,.])?)")
FARTHER_IN = " " * 4


def with_code(sentence: str) -> Markup:
    """A sentence with its flags and commands set as code, and numbers kept on a line with their units; all escaped."""
    parts = _CODE.split(_UNIT.sub(_NO_BREAK, printable_text(sentence)))
    return Markup("").join(
        Markup("<code>{}</code>").format(part.strip("`")) if i % 2 else part for i, part in enumerate(parts)
    )


def setting_lines(cell: str) -> Markup:
    """A cell with each setting of a lane on a line of its own; all escaped."""
    return Markup("<br>").join(map(printable_text, cell.split(BETWEEN)))


def breakable_name(name: str) -> Markup:
    """The name of a column or setting, escaped, in which a browser may break the line behind each dot."""
    return Markup(".<wbr>").join(name.split("."))


def with_arrows(text: str) -> str:
    """A text with real arrows in the place of `->`, which every terminal can show."""
    return text.replace("->", "\N{RIGHTWARDS ARROW}")


def paragraphs(notes: Sequence[str]) -> list[str]:
    """A table's notes, each as one text: for the screen they are wrapped, with indented lines that continue a note."""
    collected: list[str] = []
    for note in notes:
        if collected and note.startswith(FARTHER_IN):
            collected[-1] += f" {note.strip()}"
        else:
            collected.append(note.strip())
    return [note if note.endswith(".") else f"{note}." for note in collected]
