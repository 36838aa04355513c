"""The records that the replay of producers' quotas works on."""

from __future__ import annotations

from typing import NamedTuple

from udfs.columns.arrays import Ints, Records
from udfs.columns.records import int_fields
from udfs.replay.fetch_max_bytes.quota_meter import Meters

PRODUCE_REQUEST = int_fields(
    "connection",  # its number
    "arrived_us",  # when the request had come
    "recorded_us",  # when the broker counted it: when it answered, or, if it does not answer, when the request came
    "size",  # bytes that the quota counts
    "throttle_ms",  # throttle_time_ms of the response, NONE if there is no response
    "counts",  # 1: it is in the window that is replayed
)
"""A captured request."""
PRODUCE_CONNECTION = int_fields(
    "process",  # number of the client id and address
    "broker",  # its number
    "in_flight",  # how many requests can be under way at once
    "turnaround_us",  # the shortest time from when the client may send to when its request has come
    "joined_bytes",  # the most bytes of requests that are sent as one, 0 if none are
    "usual_bytes",  # the median of requests for which the client did not wait
    "saved_bytes",  # by how much requests that are sent as one are smaller, for each after the first
    "client_waits",  # 1: the client itself does not send while it is throttled (Produce 6 and later)
)
"""A connection of a producer."""
METER_RULES = int_fields("byte_rate", "quota_windows", "quota_window_ms")
"""A quota: bytes/s, how many windows count, and how long each is."""
THROTTLING = int_fields(
    "requests",
    "bytes",
    "throttled",  # responses with a throttle time
    "throttle_ms",  # the sum of their throttle times
    "throttle_ms_max",
    "first_us",  # when the first request came in the capture
    "last_us",  # when the last request is answered
    "behind_us",  # how much later than captured a request is answered, at most
    "expired",  # requests that are answered later than delivery.timeout.ms after they were made
)
"""The outcome of a connection's requests."""


class QuotaLane(NamedTuple):
    """A lane. meter_of: int64[connections], the meter that counts a connection's requests, NONE for no quota. rules:
    METER_RULES[meters]. is_captured: it is the lane of the captured quota.
    """

    meter_of: Ints
    rules: Records
    meters: Meters
    is_captured: bool


class ProducerUnit(NamedTuple):
    """Producers that share quotas.

    requests: PRODUCE_REQUEST[n], by connection, and by time in each. first: int64[connections + 1], where each
    connection begins. service_us: int64[n], how long the broker works on each request. idle_us: int64[n], the time from
    when a request is made and its turn has come until it comes. lingers: int64[n], 1 if its turn had come when it was
    made: the client sends it this long after it is made (linger.ms), or when its turn comes. ready_us: int64[n], when
    it is made in the capture. gate: int64[n], the earlier request whose throttling it had to wait for in the capture,
    NONE if there is none. by_process: int64[n], the requests of one process after the other, in the order in which they
    are made. process_first: int64[processes + 1], where each process begins in it.
    """

    requests: Records
    connections: Records
    first: Ints
    service_us: Ints
    idle_us: Ints
    lingers: Ints
    ready_us: Ints
    gate: Ints
    by_process: Ints
    process_first: Ints


class Sending(NamedTuple):
    """What changes while a lane is replayed.

    handled, made: int64[connections], how many requests of each connection the broker has answered, and how many the
    application has made. unmuted_us: int64[connections], when the broker takes the next request. due:
    int64[connections], 1 if the heap has an event for the answer to the next request. waited_us: int64[connections],
    until when the client waits because its last request was throttled, ALWAYS if it does not wait. made_us, open_us:
    int64[n], when a request was made, and when the client may send another one in its place. next_made, held_bytes,
    late_us, blocked_us: int64[processes], the index of the next request to be made, bytes not yet answered, how much
    later than captured the application is, and how long it waited for memory.
    """

    handled: Ints
    made: Ints
    unmuted_us: Ints
    due: Ints
    waited_us: Ints
    made_us: Ints
    open_us: Ints
    next_made: Ints
    held_bytes: Ints
    late_us: Ints
    blocked_us: Ints
