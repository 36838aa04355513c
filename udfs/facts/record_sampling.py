"""Of which batches the records are read, for replays that need the sizes of records."""

from __future__ import annotations

from dataclasses import dataclass

SAMPLE_EVERY = 4
"""One of this many batches, chosen by its checksum, is compressed again, unless the user wants all of them."""


@dataclass(frozen=True)
class RecordSampling:
    """How records are read. every: one of this many produced batches is compressed again with all codecs."""

    every: int = SAMPLE_EVERY


def sufficient(needed: RecordSampling | None) -> tuple[RecordSampling | None, ...]:
    """The samplings whose rows have everything that is needed: the needed one, and those that read more."""
    ladder = (None, RecordSampling(), RecordSampling(every=1))
    return ladder[ladder.index(needed) :]
