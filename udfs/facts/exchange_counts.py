"""What the exchanges of a capture lack, counted as they are decoded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.steps import EXCHANGE_COUNTS
from udfs.capture.segments import UNKNOWN
from udfs.columns.arrays import Bools, Ints
from udfs.facts.arrow_tables import rows_of
from udfs.facts.exchanges import ORPHAN_RESPONSE, UNANSWERED, Exchanges


def count_rows(exchanges: Exchanges) -> pa.RecordBatch:
    """A row of EXCHANGE_COUNTS for each connection of the chunk, whose exchanges have all columns filled in."""
    connections = len(exchanges.frames.connections)

    def counted(which: Bools) -> Ints:
        return np.bincount(exchanges.connection[which], minlength=connections)

    t = EXCHANGE_COUNTS
    return rows_of(
        t,
        {
            t.connection_id: exchanges.connection_ids,
            t.exchanges: np.bincount(exchanges.connection, minlength=connections),
            t.unanswered_requests: counted(exchanges.status == UNANSWERED),
            t.orphan_responses: counted(exchanges.status == ORPHAN_RESPONSE),
            t.cut_exchanges: counted(exchanges.missing_bytes > 0),
            t.undecoded_exchanges: counted(exchanges.fault != 0),
            t.fetches: counted(exchanges.session_known != UNKNOWN),
            t.fetches_of_unknown_sessions: counted(exchanges.session_known == 0),
        },
    )
