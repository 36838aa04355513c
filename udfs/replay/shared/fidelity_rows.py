"""Rows of `fidelity`: how often the replay of the captured settings agrees with the capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.gold import FIDELITY
from schemas.tables.reason import FidelityReasons
from udfs.columns.arrays import Ints
from udfs.columns.arrow_columns import repeated_text_column
from udfs.facts.arrow_tables import TYPES, make_rows

AGREED = 0
"""The verdict on a case that agrees, as a number; any other verdict is the code of a declared reason."""
NO_REASON = ""
"""The verdict on a case that agrees, as a word."""


class FidelityCounts(NamedTuple):
    """How many cases of a metric could be checked, how many of these agree, and how many could not be checked.

    reasons: how often each reason was given. broker, client_id, client_address, reader: to whom the cases belong, None
    if it does not apply.
    """

    metric: str
    checked: int
    agreed: int
    unknown: int
    reasons: Mapping[str, int]
    broker: str | None = None
    client_id: str | None = None
    client_address: str | None = None
    reader: str | None = None


def count_cases(metric: str, verdicts: Mapping[str, int], reasons: FidelityReasons) -> FidelityCounts:
    """The counts of a metric, from how often each word of its reasons was given; NO_REASON is agreement.

    A word counts as its declaration says: as unknown, as an agreement, or as a disagreement.

    >>> from schemas.tables.fetch_reasons import OPEN_FETCHES
    >>> count_cases("empty_fetches", {"": 5, "throttled": 2, "more_bytes": 1}, OPEN_FETCHES)[1:5]
    (6, 5, 2, {'throttled': 2, 'more_bytes': 1})
    """
    unknown, agreeing = reasons.counted_as("unknown"), reasons.counted_as("equal")
    not_checked = sum(count for reason, count in verdicts.items() if reason in unknown)
    agreed = sum(count for reason, count in verdicts.items() if reason == NO_REASON or reason in agreeing)
    given = {str(reason): count for reason, count in verdicts.items() if reason != NO_REASON}
    return FidelityCounts(metric, sum(verdicts.values()) - not_checked, agreed, not_checked, given)


def count_codes(metric: str, verdicts: Ints, reasons: FidelityReasons) -> FidelityCounts:
    """The counts of a metric, from how often each verdict was given: int64[1 + words], by code."""
    words = (NO_REASON, *reasons.words)
    given = {word: count for word, count in zip(words, verdicts.tolist(), strict=True) if count}
    return count_cases(metric, given, reasons)


def fidelity_rows(comparisons: Sequence[FidelityCounts], algorithm: str, run_id: str) -> pa.RecordBatch:
    """Rows of `fidelity`: one for each of these."""

    def texts(column: str) -> pa.Array[Any]:
        return pa.array([getattr(each, column) for each in comparisons], pa.string())

    def counts(column: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([getattr(each, column) for each in comparisons], np.int64)

    t = FIDELITY
    return make_rows(
        t,
        {
            t.run_id: repeated_text_column(run_id, len(comparisons)),
            t.algorithm: repeated_text_column(algorithm, len(comparisons)),
            **{column: texts(column) for column in (t.metric, t.broker, t.client_id, t.client_address, t.reader)},
            **{column: counts(column) for column in (t.checked, t.agreed, t.unknown)},
            t.reasons: pa.array([list(each.reasons.items()) for each in comparisons], TYPES["map<string,bigint>"]),
        },
    )
