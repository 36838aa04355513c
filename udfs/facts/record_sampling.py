"""What ingest is to learn of records, for a replay that asks for it."""

from __future__ import annotations

from dataclasses import dataclass

SAMPLE_EVERY = 4
"""One batch of so many, by its checksum, is compressed anew, unless all are asked for."""


@dataclass(frozen=True)
class Asked:
    """What is to be learned of records. every: compress each so-many-th produced batch anew in all codecs."""

    every: int = SAMPLE_EVERY


def sufficient(asked: Asked | None) -> tuple[Asked | None, ...]:
    """What was learned where it is enough for what is asked: as much or more."""
    ladder = (None, Asked(), Asked(every=1))
    return ladder[ladder.index(asked) :]
