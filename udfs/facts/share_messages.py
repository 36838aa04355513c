"""Decoded ShareFetch and ShareAcknowledge messages (KIP-932), and sums over what each message lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.tables.silver_shares import SHARE_FETCHES
from schemas.wire.declared import Declared
from udfs.columns.arrays import Bools, Ints
from udfs.columns.sentinels import UNKNOWN
from udfs.facts.arrow_tables import Values
from udfs.facts.exchange_messages import Messages, frames_of_rows
from udfs.facts.exchanges import Exchanges, shared_columns
from udfs.wire.decoded_level import Level
from udfs.wire.messages import DecodedFrames

NAMED_PATH, FORGOTTEN_PATH = "topics.partitions", "forgotten_topics_data.partitions"
RETURNED_PATH = "responses.partitions"
ACKNOWLEDGED_PATH, ACQUIRED_PATH = f"{NAMED_PATH}.acknowledgement_batches", f"{RETURNED_PATH}.acquired_records"


class ShareExchanges(NamedTuple):
    """The decoded messages of one API, and which of them belong to each exchange.

    request_of, response_of: int64[exchanges], the message's place in `messages`, UNKNOWN if there is none.
    """

    exchanges: Exchanges
    declared: Declared
    messages: Messages
    request_of: Ints
    response_of: Ints

    @property
    def with_request(self) -> Ints:
        """The exchanges whose request was decoded: int64[n]."""
        return np.flatnonzero(self.request_of != UNKNOWN)

    def columns_of(self, rows: Ints) -> dict[str, Values]:
        """The columns about the exchange that rows of both tables have. rows: int64[n], the exchange of each row."""
        texts, (group, member) = self.exchanges.names.texts_of, self.exchanges.member
        of_member: dict[str, Values] = {
            SHARE_FETCHES.group_id: texts(group[rows]), SHARE_FETCHES.member_id: texts(member[rows])
        }  # fmt: skip
        return shared_columns(self.exchanges, rows) | of_member


def message_places(exchanges: int, of: Ints, decoded: DecodedFrames) -> Ints:
    """The place of each exchange's message among the messages decoded without fault, or UNKNOWN: int64[exchanges].

    of: int64[messages], the exchange of each.
    """
    places = np.full(exchanges, UNKNOWN)
    fine = np.flatnonzero(decoded.fault == 0)
    places[of[fine]] = fine
    return places


def sums_by_message(decoded: DecodedFrames, path: str, values: Ints | Bools | None = None) -> Ints:
    """The sum over a level's rows in each message: int64[messages]. values: of the rows; None counts them.

    All are 0 if messages of the API have no such level.
    """
    messages = len(decoded.fault)
    if path not in decoded.levels:
        return np.zeros(messages, np.int64)
    sums = np.zeros(messages, np.int64)
    np.add.at(sums, frames_of_rows(decoded, path), 1 if values is None else values.astype(np.int64))
    return sums


def record_sums(decoded: DecodedFrames, path: str, of: Bools | None = None) -> Ints:
    """How many records the ranges of each message have, int64[messages]. A range that ends before it begins has none.

    of: bool[rows], the ranges that count; None for all.
    """
    if path not in decoded.levels:
        return sums_by_message(decoded, path)
    first, last = (decoded.levels[path].column(f"{end}_offset") for end in ("first", "last"))
    records = np.where(last >= first, last - first + 1, 0)
    return sums_by_message(decoded, path, records if of is None else np.where(of, records, 0))


def record_bytes(returned: Level) -> Ints:
    """The record bytes of each returned partition: int64[partitions]; UNKNOWN in a request log, which has no size."""
    starts, lengths = returned.span("records")
    return np.where((starts < 0) & (lengths < 0), UNKNOWN, np.maximum(lengths, 0))
