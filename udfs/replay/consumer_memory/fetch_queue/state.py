"""What the replay of a librdkafka consumer's queue works on: responses, fetchers, the lane's state and outcome."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.records import int_fields, pick_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS

THRESHOLDS = int_fields(
    "max_bytes",  # of values: once the queue has so many, nothing is asked for (queued.max.messages.kbytes)
    "min_messages",  # once the queue has so many, nothing is asked for (queued.min.messages)
    "backoff_us",  # us after which that is decided again (fetch.queue.backoff.ms)
)
"""When a consumer asks for more."""
RECORDS_RESPONSE = int_fields(
    "fetcher",  # the connection by its number
    "following",  # the next one on it, or NONE
    "requested_at",  # us
    "arrived_at",  # us
    "answer_us",  # from the request, or from when there was something to be read
    "ready_at",  # us: before then there was nothing to be read; ALWAYS: nobody knows that
    "gap_us",  # between the response before on the connection and the decision to ask for this one
    "is_late",  # 1: it was asked for so late that a full queue may be the reason
    "messages",
    "value_bytes",
    "record_bytes",  # as they came, compressed or not
)
"""A response with records. A consumer's are in the order of their arrival."""
FETCHER_STATE = int_fields(
    "response",  # what it asks for next, or has asked for; NONE: nothing
    "at",  # us: when it decides whether to ask, or has the response
    "has_asked",
    "full_since",  # us: since when it has found the queue full, and not asked; NONE: it has not
)
"""A fetcher, the thread that librdkafka has for a broker, in the lane that is replayed."""
QUEUED = int_fields(
    "response",
    "begins_at",  # us: when the application begins with it
    "ends_at",  # us: when the application has taken all of it
    "messages_before",  # that came before it
    "bytes_before",
)
"""A response that has come, in the order in which they come in the lane."""
QUEUE = int_fields(
    "arrived",  # responses that have come
    "messages",  # that have come
    "bytes",
    "first",  # the first QUEUED that the application has not taken
    "full_until",  # us: up to when it is known, and counted, that the queue is full
)
"""The queue in the lane that is replayed."""
QUEUE_OUTCOME = int_fields(
    "most_bytes",
    "most_messages",
    "full_us",  # us in which the queue was at a threshold or above
    "idle_us",  # us in which the application had nothing, while a fetcher waited for its backoff
    "held_back",  # decisions not to ask
    "began_at",  # us
    "ended_at",  # us: the application has taken all
)
"""What a lane came to, within the window."""


class ApplicationPace(NamedTuple):
    """How long the application works: it takes the first `messages` within `time` us. Beyond the last point it goes on
    as fast as on average.

    messages, time: int64[points], both rising from 0 on.
    """

    messages: Ints
    time: Ints


class QueueSim(NamedTuple):
    """The replay of a consumer's queue in one lane.

    responses: RECORDS_RESPONSE[n]. thresholds: THRESHOLDS[1]. fetchers: FETCHER_STATE[fetchers]. queued: QUEUED[n].
    queue: QUEUE[1]. held_back_until: int64[n], when a fetcher that had found the queue full asked for a response (us),
    else NONE. window: int64[2], its begin and end (us). outcome: QUEUE_OUTCOME[1].
    """

    responses: Records
    pace: ApplicationPace
    thresholds: Records
    fetchers: Records
    queued: Records
    queue: Records
    held_back_until: Ints
    window: Ints
    outcome: Records


def new_queue(responses: Records, pace: ApplicationPace, thresholds: Records, window: Ints) -> QueueSim:
    """The replay before it begins. responses: RECORDS_RESPONSE[n]. thresholds: THRESHOLDS[1]. window: int64[2], us."""
    n = len(responses)
    fetchers = np.zeros(int(responses["fetcher"].max(initial=-1)) + 1, FETCHER_STATE)
    fetchers["response"], fetchers["full_since"] = NONE, NONE
    numbers, firsts = np.unique(responses["fetcher"], return_index=True)
    fetchers["response"][numbers] = firsts
    first = pick_records(responses, fetchers["response"])
    # What a thread asks for first in the capture it asks for here as well, whatever the queue has of other threads.
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
