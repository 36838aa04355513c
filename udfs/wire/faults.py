"""The reasons why bytes cannot be decoded, for headers, bodies and record batches."""

from __future__ import annotations

from enum import IntEnum


class DecodeFault(IntEnum):
    """Why bytes could not be decoded. Users see the names; schemas.tables.fault_reasons explains them."""

    OK = 0
    TRUNCATED = 1  # a fixed-width field or a length goes beyond the end of the frame
    BAD_LENGTH = 2  # a string, bytes or tagged field is longer than what remains, or than its own length
    BAD_COUNT = 3  # an array or tag section has more elements than the remaining bytes can hold
    BAD_VARINT = 4  # a varint of more than five bytes, or beyond 2^31-1
    BAD_TAG = 5  # tags repeated or not ascending (KIP-482)
    UNEXPECTED_NULL = 6  # null in a field that cannot be null in this version
    TRAILING_BYTES = 7  # the message ended before its frame
    UNKNOWN_VERSION = 8  # no declaration of this version
    UNKNOWN_API = 9  # no API of this key
    BAD_FRAME = 10  # start and end are not a range inside the arena
    BAD_MAGIC = 11  # a record batch of a format other than 0, 1 or 2
    BAD_BATCH_SIZE = 12  # a record batch smaller than its own header
    BAD_JSON = 13  # a line of a request log whose messages do not have the fields of their API
    OTHER_API = 14  # a request of another API than the expected one
    OTHER_VERSION = 15  # a request of another version than the expected one
