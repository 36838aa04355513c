"""SASL tokens of clients and brokers from before KIP-152: a 4-byte size and bytes that are no Kafka message.

After a SaslHandshake v0 both sides send tokens until the authentication is complete; then requests go on (Kafka 4.3,
org.apache.kafka.common.security.authenticator.SaslServerAuthenticator). Tokens are skipped by their sizes. They are
read only as far as needed to know where requests and responses go on.
"""

from __future__ import annotations

from schemas.wire.apis import API_KEYS
from udfs.capture.frame_search import header_state, skip_to
from udfs.capture.framing import (
    COMPLETE,
    HOLE,
    IMPLAUSIBLE,
    MIN_FRAME_BYTES,
    SIZE_BYTES,
    WAIT,
    Stream,
    extent_at,
    extent_holding,
    measure_frame,
    set_frame_times,
    stream_end,
)
from udfs.capture.open_requests import OpenRequests, waiting_request
from udfs.columns.arrays import Record, Shorts
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import kernel
from udfs.wire.primitives import read_signed

SASL_HANDSHAKE = API_KEYS["SASL_HANDSHAKE"]
SASL_TOKENS = 4
"""Why bytes are in no frame: one more code in addition to those in `udfs.capture.conversation`."""
# The default of sasl.server.max.receive.size.
MOST_TOKEN_BYTES = 524_288
# GSSAPI, Kafka's longest exchange, takes 4.
MOST_TOKENS = 16


@kernel
def begins_tokens(request: Record) -> bool:
    """Whether tokens follow a request and its response."""
    return bool(request.api_key == SASL_HANDSHAKE and request.api_version == 0)


@kernel
def token_at(stream: Stream, offset: int) -> tuple[int, int]:
    """(COMPLETE, size of the token at a stream offset), even if the token is cut; otherwise (WAIT, HOLE or IMPLAUSIBLE,
    0).

    The states are those of `udfs.capture.framing.measure_frame`.
    """
    extent = extent_holding(stream, offset)
    if extent == len(stream.extents):
        return WAIT, 0
    begin, end, start = extent_at(stream, extent)
    may_grow = extent == len(stream.extents) - 1 and not stream.is_final
    if begin > offset:
        return HOLE, 0
    if end - offset < SIZE_BYTES:
        return (WAIT if may_grow else HOLE), 0
    size = read_signed(stream.arena, start + offset - begin, SIZE_BYTES)
    if size < 0 or size > MOST_TOKEN_BYTES:
        return IMPLAUSIBLE, 0
    if offset + SIZE_BYTES + size > stream_end(stream) and not stream.is_final:
        return WAIT, 0
    return COMPLETE, size


@kernel
def skip_token(stream: Stream, direction: Record, size: int) -> None:
    """Move the direction's position past one token of this size, and count it."""
    before = direction.unframed_bytes
    skip_to(stream, direction, direction.position + SIZE_BYTES + size, SASL_TOKENS)
    direction.token_bytes += direction.unframed_bytes - before
    direction.tokens += 1


@kernel
def skip_client_token(stream: Stream, direction: Record, apis: Shorts) -> int:
    """Skip the client's next token. Returns COMPLETE; or WAIT; or HOLE if there is no token and requests go on.

    What comes first is always a token. What follows is a token until something has the header of a request.
    """
    state, size = token_at(stream, direction.position)
    if state == WAIT:
        return WAIT
    extent = extent_holding(stream, direction.position)
    goes_on = direction.tokens > 1 and header_state(stream, extent, direction.position, size, apis) == COMPLETE
    if state != COMPLETE or goes_on or direction.tokens > MOST_TOKENS:
        direction.tokens = 0
        return HOLE
    skip_token(stream, direction, size)
    return COMPLETE


@kernel
def skip_broker_token(stream: Stream, direction: Record, waiting: OpenRequests, frame: Record) -> int:
    """Skip the broker's next token. Returns COMPLETE; or WAIT; or HOLE if there is no token and responses go on.

    A response for which a request waits is no token. frame: overwritten.
    """
    state, size = token_at(stream, direction.position)
    if state == WAIT:
        return WAIT
    goes_on = False
    if state == COMPLETE and size >= MIN_FRAME_BYTES:
        measure_frame(stream, direction.position, frame)
        set_frame_times(stream, frame)
        if frame.last_place > waiting.barrier:
            return WAIT
        if frame.prefix >= SIZE_BYTES:
            correlation_id = read_signed(stream.arena, frame.start, SIZE_BYTES)
            goes_on = waiting_request(waiting, correlation_id, frame.last_place) != UNKNOWN
    if state != COMPLETE or goes_on or direction.tokens > MOST_TOKENS:
        direction.tokens = 0
        return HOLE
    skip_token(stream, direction, size)
    return COMPLETE
