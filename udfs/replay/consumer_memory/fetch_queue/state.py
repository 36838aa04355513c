"""The records of the replay of a librdkafka consumer's queue: responses, fetchers, the lane's state and outcome."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.records import int_fields, pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS

THRESHOLDS = int_fields(
    "max_bytes",  # of values: a queue with this many bytes asks for nothing (queued.max.messages.kbytes)
    "min_messages",  # a queue with this many messages asks for nothing (queued.min.messages)
    "backoff_us",  # us: how long it waits before it decides again (fetch.queue.backoff.ms)
)
"""When a consumer asks for more."""
RECORDS_RESPONSE = int_fields(
    "fetcher",  # the number of the fetcher
    "following",  # the fetcher's next response, or NONE
    "requested_at",  # us
    "arrived_at",  # us
    "answer_us",  # us: from the request, or from `ready_at` if that is later, to the response
    "ready_at",  # us: from when on there was something to read; ALWAYS: not known
    "gap_us",  # us: from the fetcher's last response to its decision to ask for this one
    "is_late",  # 1: it was asked for late, maybe because the queue was full
    "messages",
    "value_bytes",
    "record_bytes",  # as they came, compressed or not
)
"""A response with records. A consumer's are in the order of their arrival."""
FETCHER_STATE = int_fields(
    "response",  # the response that it asks for next, or has asked for; NONE: there is none
    "at",  # us: when it decides whether to ask, or has the response
    "has_asked",
    "full_since",  # us: since when it has not asked because the queue was full; NONE: it was not
)
"""A fetcher, the thread that librdkafka has for a broker, in the lane that is replayed."""
QUEUED = int_fields(
    "response",
    "begins_at",  # us: when the application begins to take it
    "ends_at",  # us: when the application has taken all of it
    "messages_before",  # how many messages came before it
    "bytes_before",
)
"""A response that has come. Responses are in the order in which they come in the lane."""
QUEUE = int_fields(
    "arrived",  # responses that have come
    "messages",  # that have come
    "bytes",
    "first",  # the first QUEUED that the application has not taken
    "full_until",  # us: until when the queue is known to be full, and counted as full
)
"""The queue in the lane that is replayed."""
QUEUE_OUTCOME = int_fields(
    "most_bytes",
    "most_messages",
    "full_us",  # us: how long the queue was at a threshold or above
    "idle_us",  # us: how long the application had nothing to take while a fetcher waited for its backoff
    "held_back",  # decisions not to ask
    "began_at",  # us
    "ended_at",  # us: when the application has taken everything
)
"""The outcome of a lane, within the window."""


class ApplicationPace(NamedTuple):
    """How long the application works: it takes the first `messages` within `time` us. Beyond the last point, the
    average pace counts.

    messages, time: int64[points], both rising from 0 on.
    """

    messages: Ints
    time: Ints


class QueueSim(NamedTuple):
    """The replay of a consumer's queue in one lane."""

    responses: Records  # RECORDS_RESPONSE[n]
    pace: ApplicationPace
    thresholds: Records  # THRESHOLDS[1]
    fetchers: Records  # FETCHER_STATE[fetchers]
    queued: Records  # QUEUED[n]
    queue: Records  # QUEUE[1]
    held_back_until: Ints  # int64[n], us: when a fetcher that had found the queue full asked; NONE if it had not
    window: Ints  # int64[2], us: its begin and end
    outcome: Records  # QUEUE_OUTCOME[1]


def new_queue(responses: Records, pace: ApplicationPace, thresholds: Records, window: Ints) -> QueueSim:
    """The replay before it begins. responses: RECORDS_RESPONSE[n]. thresholds: THRESHOLDS[1]. window: int64[2], us."""
    n = len(responses)
    fetchers = np.zeros(int(responses["fetcher"].max(initial=-1)) + 1, FETCHER_STATE)
    fetchers["response"], fetchers["full_since"] = NONE, NONE
    numbers, firsts = np.unique(responses["fetcher"], return_index=True)
    fetchers["response"][numbers] = firsts
    first = pick_records(responses, fetchers["response"])
    # A fetcher asks for its first response as captured, however full the queue is.
    fetchers["at"], fetchers["has_asked"] = np.maximum(first["requested_at"] + first["answer_us"], first["ready_at"]), 1
    queue = np.zeros(1, QUEUE)
    queue["full_until"] = ALWAYS
    return QueueSim(
        responses=read_only(responses),
        pace=ApplicationPace(*map(read_only, pace)),
        thresholds=read_only(thresholds),
        fetchers=fetchers,
        queued=np.zeros(n, QUEUED),
        queue=queue,
        held_back_until=np.full(n, NONE),
        window=read_only(window),
        outcome=np.zeros(1, QUEUE_OUTCOME),
    )
