"""What a declaration of a reason consists of: a word that tables, screen and report give, and what it tells a user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Counts = Literal["unknown", "different", "equal"]
"""As what `fidelity` counts what a reason is given for: as `unknown`, among `checked` or among `agreed`."""


@dataclass(frozen=True)
class Reason:
    """means: what the word says. do: what a user can do about it. Both are whole sentences."""

    means: str
    do: str


@dataclass(frozen=True)
class FidelityReason(Reason):
    """A reason in `fidelity.reasons`."""

    counts: Counts


@dataclass(frozen=True)
class FidelityReasons:
    """The reasons that an algorithm's metrics give; all of its metrics where none are named."""

    title: str
    algorithm: str
    metrics: tuple[str, ...]
    words: Mapping[str, FidelityReason]


@dataclass(frozen=True)
class FaultReasons:
    """The words of a column that says what could not be read: `column` is TABLE.COLUMN."""

    title: str
    column: str
    words: Mapping[str, Reason]
