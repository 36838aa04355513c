"""Every reason that the table `fidelity` gives, for all replays."""

from __future__ import annotations

from schemas.tables.fetch_reasons import CLOSED_FETCHES, FETCHERS, OPEN_FETCHES
from schemas.tables.limit_reasons import CHANGES
from schemas.tables.memory_reasons import BUFFERS, DRAINED, HELD, QUEUE
from schemas.tables.quota_reasons import THROTTLES
from schemas.tables.reason import FidelityReason
from schemas.tables.session_reasons import SESSIONS, SHARES
from schemas.tables.split_reasons import SPLITS

FIDELITY_REASONS = (
    OPEN_FETCHES, CLOSED_FETCHES, FETCHERS, THROTTLES, SESSIONS, SHARES, DRAINED, HELD, QUEUE, BUFFERS, SPLITS,
    CHANGES,
)  # fmt: skip


def reason_of(algorithm: str, metric: str, word: str) -> FidelityReason | None:
    """The reason that a row of `fidelity` gives; None if it is not declared, as in a lake of another version."""
    groups = (of for of in FIDELITY_REASONS if of.algorithm == algorithm and metric in (of.metrics or (metric,)))
    return next((of.words[word] for of in groups if word in of.words), None)
