"""Which batches have their records read, for replays that need the sizes of records."""

from __future__ import annotations

from dataclasses import dataclass

SAMPLE_EVERY = 4
"""One batch of so many, chosen by its checksum, is compressed anew, unless the user wants all of them to be."""


@dataclass(frozen=True)
class RecordSampling:
    """Records are to be read. every: one of so many produced batches is compressed anew with all codecs."""

    every: int = SAMPLE_EVERY


def sufficient(needed: RecordSampling | None) -> tuple[RecordSampling | None, ...]:
    """The samplings whose rows have all that the one needed would give: itself, and those that read more."""
    ladder = (None, RecordSampling(), RecordSampling(every=1))
    return ladder[ladder.index(needed) :]
