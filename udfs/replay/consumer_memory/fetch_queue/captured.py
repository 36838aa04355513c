"""What a capture shows of a librdkafka consumer's queue: its responses, how full it can have been, and how fast the
application takes messages.

When a consumer asks for more, its queue is below the thresholds: the application has taken all earlier messages beyond
them. When a consumer has a response and does not ask for more at once, its queue is full, if it can be full. The
capture then shows how much the application has taken. If the queue is never full, nothing shows that.
"""

from __future__ import annotations

import heapq

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, numbers_in_stretches, stretch_edges
from udfs.columns.groups import group_numbers
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.consumer_memory.fetch_queue.state import RECORDS_RESPONSE, ApplicationPace

AT_ONCE_US = 100_000
"""A broker that has records to return begins its response within this time (us)."""
MOST_FETCHERS = 1024
"""The most fetchers that a consumer is taken to have."""
LATE = 0.5
"""A fetch is late if it comes at least this multiple of fetch.queue.backoff.ms after the response before it."""


def responses_with_records(fetches: Records, backoff_us: int) -> Records:
    """The responses with records: RECORDS_RESPONSE[n].

    fetches: EXCHANGE[m], a consumer's answered fetches in any order. backoff_us: fetch.queue.backoff.ms in us.
    """
    fetches = fetches[np.lexsort((fetches["complete_at"], fetches["requested_at"], fetches["connection"]))]
    connection, firsts = group_numbers(fetches["connection"])
    requested_at, arrived_at = fetches["requested_at"], fetches["complete_at"]
    is_first = np.diff(connection, prepend=NONE) != 0
    gap_us = np.where(is_first, 0, np.maximum(requested_at - np.roll(arrived_at, 1), 0))
    has_records = fetches["record_bytes"] > 0
    follows_empty = ~is_first & ~np.roll(has_records, 1)
    wait_us = np.minimum(fetches["size_known_at"], arrived_at) - requested_at
    waited = follows_empty | (wait_us > AT_ONCE_US)
    is_late = gap_us >= max(round(LATE * backoff_us), 1)
    ends_at = np.maximum.reduceat(arrived_at, firsts) if len(firsts) else firsts
    fetcher = fetchers_of(requested_at[firsts], ends_at)[connection]
    rows = np.flatnonzero(has_records)
    rows = rows[np.lexsort((requested_at[rows], fetcher[rows], arrived_at[rows]))]
    answer_us = arrived_at - requested_at - np.where(waited, np.maximum(wait_us, 0), 0)
    responses = new_records(
        RECORDS_RESPONSE,
        len(rows),
        fetcher=group_numbers(fetcher[rows])[0],
        requested_at=requested_at[rows],
        arrived_at=arrived_at[rows],
        answer_us=answer_us[rows],
        ready_at=np.where(waited, arrived_at, ALWAYS)[rows],
        gap_us=np.where(follows_empty, 0, gap_us)[rows],
        is_late=is_late[rows],
        messages=fetches["records"][rows],
        value_bytes=fetches["value_bytes"][rows],
        record_bytes=fetches["record_bytes"][rows],
    )
    responses["following"] = following_responses(responses["fetcher"])
    note_reopened(responses, is_first[rows])
    return responses


def fetchers_of(begin: Ints, end: Ints) -> Ints:
    """The fetcher (thread) that each connection is taken to have, int64[connections]. begin, end: int64[connections],
    us.

    Each connection has a fetcher of its own. If there are more than MOST_FETCHERS connections, as with a client that
    cannot hold a connection, a connection gets a fetcher that has no other connection at the time.
    """
    if len(begin) <= MOST_FETCHERS:
        return np.arange(len(begin))
    fetchers, free, threads = np.zeros(len(begin), np.int64), list[tuple[int, int]](), 0
    for connection in np.lexsort((end, begin)).tolist():
        if free and free[0][0] <= begin[connection]:
            _, thread = heapq.heappop(free)
        else:
            thread, threads = threads % MOST_FETCHERS, threads + 1
        fetchers[connection] = thread
        heapq.heappush(free, (int(end[connection]), thread))
    return fetchers


def note_reopened(responses: Records, is_first: Bools) -> None:
    """If a fetcher opens a connection anew, let it ask there as long after its last response as captured.

    is_first: bool[n], the responses to first fetches of connections.
    """
    before = np.flatnonzero(responses["following"] != NONE)
    behind = responses["following"][before]
    gap_us = np.maximum(responses["requested_at"][behind] - responses["arrived_at"][before], 0)
    responses["gap_us"][behind] = np.where(is_first[behind], gap_us, responses["gap_us"][behind])


def following_responses(fetcher: Ints) -> Ints:
    """The index of the next response of the same fetcher, or NONE: int64[n]. fetcher: int64[n], of each response."""
    order = np.argsort(fetcher, kind="stable")
    following = np.full(len(fetcher), NONE)
    is_same = fetcher[order][1:] == fetcher[order][:-1]
    following[order[:-1][is_same]] = order[1:][is_same]
    return following


def cut_responses(responses: Records, max_bytes: int) -> Records:
    """The responses, RECORDS_RESPONSE[m]: each with more than `max_bytes` of records is cut into several of about the
    same size. Each part is asked for when the part before has come.
    """
    count = np.maximum(-(-responses["record_bytes"] // max(max_bytes, 1)), 1)
    if (count == 1).all():
        return responses
    whole_number, place = np.repeat(np.arange(len(responses)), count), numbers_in_stretches(np.zeros_like(count), count)
    parts, count = responses[whole_number], count[whole_number]
    for name in ("messages", "value_bytes", "record_bytes", "answer_us"):
        whole = parts[name].copy()
        parts[name] = whole * (place + 1) // count - whole * place // count
    parts["gap_us"] = np.where(place == 0, parts["gap_us"], 0)
    parts["following"] = following_responses(parts["fetcher"])
    return parts


def late_for_full_queue(responses: Records, levels: Records) -> Bools:
    """Which responses were asked for late because the queue was full: bool[n].

    responses: RECORDS_RESPONSE[n]. levels: LEVEL[n].
    """
    return (responses["is_late"] == 1) & (levels["is_full_at_most"] == 1)


def captured_pace(responses: Records, is_full: Bools, thresholds: Records) -> ApplicationPace | None:
    """The pace of the application: how many messages it had taken by when. None if the queue was never full.

    If a consumer whose queue was full asks again, the queue has gone below its thresholds since the consumer last
    looked, one backoff ago: on average half a backoff ago. responses: RECORDS_RESPONSE[n]. is_full: bool[n].
    thresholds: THRESHOLDS[1].
    """
    asked_at = np.sort(responses["requested_at"][is_full])
    if not len(asked_at):
        return None
    come = np.searchsorted(responses["arrived_at"], asked_at, side="right")
    messages, value_bytes = stretch_edges(responses["messages"]), stretch_edges(responses["value_bytes"])
    # The threshold is within a response, whose messages count as taken in proportion to its bytes.
    taken_by_bytes = np.interp(value_bytes[come] - thresholds["max_bytes"][0], value_bytes, messages)
    taken = np.maximum(taken_by_bytes, messages[come] - thresholds["min_messages"][0]).astype(np.int64)
    begin = int(responses["arrived_at"].min(initial=NEVER))
    taken, time = np.maximum.accumulate(taken), asked_at - int(thresholds["backoff_us"][0]) // 2 - begin
    rises = (np.diff(taken, prepend=0) > 0) & (time > 0)
    if not rises.any():
        return None
    return ApplicationPace(np.append(0, taken[rises]), np.append(0, time[rises]))


def stated_pace(us_per_record: int) -> ApplicationPace:
    """The pace of an application that works for `us_per_record` on each message."""
    return ApplicationPace(np.array([0, 1]), np.array([0, us_per_record]))
