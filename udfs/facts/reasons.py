"""Why something is in quarantine."""

from __future__ import annotations

from enum import StrEnum

from udfs.capture.conversation import BEFORE_FIRST_FRAME, BEHIND_GAP, CUT_AT_END, IMPLAUSIBLE_HEADER
from udfs.capture.log_lines import NO_JSON, NO_REQUEST, NO_TIME
from udfs.capture.sasl import SASL_TOKENS


class Reason(StrEnum):
    """The words of quarantine.reason."""

    BEFORE_FIRST_FRAME = "before_first_frame"  # the capture began within a frame
    BEHIND_GAP = "behind_gap"  # bytes were lost, and with them where the next frame begins
    NOT_A_FRAME = "not_a_frame"  # size or header are none that a Kafka peer would send
    CUT_AT_END = "cut_at_end"  # the connection or the capture ended within a frame's size
    SASL_TOKENS = "sasl_tokens"  # authentication from before KIP-152, passed over by state and never read
    CUT_FRAME = "cut_frame"  # some of the frame's bytes are not in the capture
    UNDECODABLE = "undecodable"  # the body is not what its API and version say; exchanges.decode_fault tells more
    ORPHAN_RESPONSE = "orphan_response"  # without its request a response cannot be decoded
    NO_REQUEST_LINE = "no_request_line"  # a line of a request log that is about no request
    LINE_WITHOUT_TIME = "line_without_time"  # ... that does not tell when the response was sent
    LINE_NOT_READABLE = "line_not_readable"  # ... whose JSON is cut or not what Kafka writes


OF_LINE = {NO_REQUEST: Reason.NO_REQUEST_LINE, NO_TIME: Reason.LINE_WITHOUT_TIME, NO_JSON: Reason.LINE_NOT_READABLE}
"""By the capture layer's code of a line's fault."""

OF_LOSS = {
    BEFORE_FIRST_FRAME: Reason.BEFORE_FIRST_FRAME,
    BEHIND_GAP: Reason.BEHIND_GAP,
    IMPLAUSIBLE_HEADER: Reason.NOT_A_FRAME,
    CUT_AT_END: Reason.CUT_AT_END,
    SASL_TOKENS: Reason.SASL_TOKENS,
}
"""By the capture layer's code of a loss."""
