"""What a declaration of a reason consists of: a word in tables, screen and report, and its explanation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

WHOLE = (
    "Capture whole packets (`-s 0`), lose none (`-B`), and let the capture run until the clients have their responses."
)
"""What to do about responses that a capture lacks."""
NOT_SHOWN = "Nothing: packets do not show it."
"""What to do about an order that no capture shows."""
DIRECTION = "Compare lanes with the lane `captured`, and take these readers' times as a direction only."
"""What to do about a closed loop that diverges from the capture."""
Counts = Literal["unknown", "different", "equal"]
"""How `fidelity` counts a result with a reason: `unknown`; `different`, which is in `checked` only; or `equal`, which
is also in `agreed`."""


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
    """The reasons of an algorithm's metrics; of all its metrics if none are named. Each word is also an attribute. The
    verdicts of kernels and the rows of `fidelity` are derived from these declarations.
    """

    title: str
    algorithm: str
    metrics: tuple[str, ...]
    words: Mapping[str, FidelityReason]

    def __getattr__(self, word: str) -> str:
        """The word itself, so that code says `SPLITS.near_limit` instead of repeating a literal."""
        if word in self.__dict__.get("words", {}):
            return word
        raise AttributeError(f"{self.__dict__.get('title')} has no reason {word!r}")

    @property
    def codes(self) -> Mapping[str, int]:
        """The code of each word in kernels: its place among all words, from 1. 0 means agreement."""
        return {word: code for code, word in enumerate(self.words, 1)}

    def counted_as(self, counts: Counts) -> frozenset[str]:
        """The words that are counted in one way."""
        return self._words_by_counts.get(counts, frozenset())

    @cached_property
    def _words_by_counts(self) -> Mapping[Counts, frozenset[str]]:
        ways = {reason.counts for reason in self.words.values()}
        return {way: frozenset(word for word, of in self.words.items() if of.counts == way) for way in ways}


@dataclass(frozen=True)
class FaultReasons:
    """The words of a column that says what could not be read: `column` is TABLE.COLUMN."""

    title: str
    column: str
    words: Mapping[str, Reason]


SEVERAL_PROCESSES = FidelityReason(
    "Several processes share the `client.id` and address, and it is not known which of them sent the batch.",
    "Give each process a `client.id` of its own, or leave `enable.idempotence` on: then the producer id in its batches "
    "tells it apart.",
    "unknown",
)
"""Why the batches of a producer are not replayed, in whatever replay of producers."""
