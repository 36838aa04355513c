"""Rows of `fidelity`: how often the replay of the captured settings gives what the capture shows."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.gold import FIDELITY
from udfs.columns.arrow_columns import repeated
from udfs.facts.arrow_tables import TYPES, rows_of

NO_REASON = ""
"""Of a case that agrees, among verdicts by their reasons."""


class Compared(NamedTuple):
    """The cases of a metric: those that could be checked, that agree, that could not; and how often which reason was
    given. Whose they are is None where they are no one's.
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


def compared(
    metric: str, verdicts: Mapping[str, int], unknown: Container[str], agreeing: Container[str] = ()
) -> Compared:
    """From how often each reason was given, NO_REASON for agreement: those of `unknown` say why a case could not be
    checked, those of `agreeing` go with an agreement, all others with a disagreement.

    >>> compared("order", {"": 5, "cut": 2, "later": 1}, unknown={"cut"})[1:5]
    (6, 5, 2, {'cut': 2, 'later': 1})
    """
    not_checked = sum(count for reason, count in verdicts.items() if reason in unknown)
    agreed = sum(count for reason, count in verdicts.items() if reason == NO_REASON or reason in agreeing)
    reasons = {str(reason): count for reason, count in verdicts.items() if reason != NO_REASON}
    return Compared(metric, sum(verdicts.values()) - not_checked, agreed, not_checked, reasons)


def fidelity_rows(found: Sequence[Compared], algorithm: str, run_id: str) -> pa.RecordBatch:
    """A row for the cases of each metric and of whom they are."""

    def texts(column: str) -> pa.Array[Any]:
        return pa.array([getattr(each, column) for each in found], pa.string())

    def counts(column: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([getattr(each, column) for each in found], np.int64)

    t = FIDELITY
    return rows_of(
        t,
        {
            t.run_id: repeated(run_id, len(found)),
            t.algorithm: repeated(algorithm, len(found)),
            **{column: texts(column) for column in (t.metric, t.broker, t.client_id, t.client_address, t.reader)},
            **{column: counts(column) for column in (t.checked, t.agreed, t.unknown)},
            t.reasons: pa.array([list(each.reasons.items()) for each in found], TYPES["map<string,bigint>"]),
        },
    )
