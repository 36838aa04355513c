"""Texts as HTML for the page: code, units and lines; all escaped."""

from __future__ import annotations

import re

from markupsafe import Markup

from jobs.terminal.lane_rows import BETWEEN
from jobs.terminal.screen import printable_text

_NO_BREAK = "\N{NO-BREAK SPACE}"
_UNIT = re.compile(r"(?<=\d) (?=(?:%|B|[KMG]iB|ms|s|min|h)\b|%)")
_CODE = re.compile(r"(`[^`]+`|--\w(?:[^\s;]*[^\s;:,.])?)")


def with_code(sentence: str) -> Markup:
    """A sentence with flags and commands as code, and numbers on the same line as their units; all escaped."""
    parts = _CODE.split(_UNIT.sub(_NO_BREAK, printable_text(sentence)))
    return Markup("").join(
        Markup("<code>{}</code>").format(part.strip("`")) if i % 2 else part for i, part in enumerate(parts)
    )


def setting_lines(cell: str) -> Markup:
    """A cell with each setting of a lane on a line of its own; all escaped."""
    return Markup("<br>").join(map(printable_text, cell.split(BETWEEN)))


def breakable_name(name: str) -> Markup:
    """The name of a column or setting, escaped; a browser may break the line after each dot."""
    return Markup(".<wbr>").join(name.split("."))


def with_arrows(text: str) -> str:
    """A text with real arrows instead of `->`, which is in texts because every terminal can show it."""
    return text.replace("->", "\N{RIGHTWARDS ARROW}")
