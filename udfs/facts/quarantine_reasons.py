"""The reasons for which rows are in quarantine."""

from __future__ import annotations

from enum import StrEnum

from udfs.capture.conversation import BEFORE_FIRST_FRAME, BEHIND_GAP, CUT_AT_END, IMPLAUSIBLE_HEADER
from udfs.capture.log_lines import NO_JSON, NO_REQUEST, NO_TIME
from udfs.capture.sasl import SASL_TOKENS


class QuarantineReason(StrEnum):
    """The words of quarantine.reason: schemas.tables.fault_reasons says what each means."""

    BEFORE_FIRST_FRAME = "before_first_frame"
    BEHIND_GAP = "behind_gap"
    NOT_A_FRAME = "not_a_frame"
    CUT_AT_END = "cut_at_end"
    SASL_TOKENS = "sasl_tokens"
    CUT_FRAME = "cut_frame"
    UNFINISHED_FRAME = "unfinished_frame"
    UNDECODABLE = "undecodable"
    ORPHAN_RESPONSE = "orphan_response"
    NO_REQUEST_LINE = "no_request_line"
    LINE_WITHOUT_TIME = "line_without_time"
    LINE_NOT_READABLE = "line_not_readable"


BY_LINE_FAULT = {
    NO_REQUEST: QuarantineReason.NO_REQUEST_LINE,
    NO_TIME: QuarantineReason.LINE_WITHOUT_TIME,
    NO_JSON: QuarantineReason.LINE_NOT_READABLE,
}
"""The reasons by the code of a line's fault in `udfs.capture.log_lines`."""

BY_LOSS = {
    BEFORE_FIRST_FRAME: QuarantineReason.BEFORE_FIRST_FRAME,
    BEHIND_GAP: QuarantineReason.BEHIND_GAP,
    IMPLAUSIBLE_HEADER: QuarantineReason.NOT_A_FRAME,
    CUT_AT_END: QuarantineReason.CUT_AT_END,
    SASL_TOKENS: QuarantineReason.SASL_TOKENS,
}
"""The reasons by the code of a loss in `udfs.capture`."""
