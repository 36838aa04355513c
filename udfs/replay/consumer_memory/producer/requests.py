"""How long a producer's connections served its requests, and how long its batches lingered.

A broker takes the next request of a connection when it has answered the one before (SocketServer mutes the channel
until then, Kafka 4.4). So a request is served from when it was sent, or when the one before was answered if that was
later, until its own answer.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Floats, Ints, Records
from udfs.columns.groups import greatest_before, group_numbers
from udfs.columns.records import int_fields, new_records
from udfs.columns.time_units import NEVER
from udfs.replay.shared.requests_in_flight import MAX_IN_FLIGHT

SERVED_REQUEST = int_fields(
    "connection",
    "sent_at",  # us
    "service_us",  # us: how long it was served
    "behind_us",  # us: how long it was behind others of its connection
    "free_at",  # us: from then on, fewer than five earlier requests were in flight
)
"""A captured produce request, and how long its broker served it."""


def requests_of_sendings(connection: Ints, request: Ints, sent_at: Ints, answered_at: Ints) -> tuple[Records, Ints]:
    """(the requests by connection and time, SERVED_REQUEST[requests]; the request of each sending, int64[n]).

    connection: int64[n], of each sending. request: int64[n], a number that tells the requests of a connection apart.
    sent_at, answered_at: int64[n], us.
    """
    number, firsts = group_numbers(connection, request)
    begun_at, done_at = np.full(len(firsts), NEVER), np.zeros(len(firsts), np.int64)
    np.minimum.at(begun_at, number, sent_at)
    np.maximum.at(done_at, number, answered_at)
    order = np.lexsort((done_at, begun_at, connection[firsts]))
    line, begun_at, done_at = connection[firsts][order], begun_at[order], done_at[order]
    before_at = greatest_before(line, done_at)
    requests = new_records(
        SERVED_REQUEST,
        len(order),
        connection=line,
        sent_at=begun_at,
        service_us=np.maximum(done_at - np.maximum(begun_at, before_at), 0),
        behind_us=np.clip(before_at - begun_at, 0, np.maximum(done_at - begun_at, 0)),
        free_at=greatest_before(line, done_at, MAX_IN_FLIGHT),
    )
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return requests, place[number]


def shares_behind(requests: Records, unit: Ints, units: int) -> Floats:
    """The share of their time under way in which a unit's requests were behind others of their connection:
    float64[units]. requests: SERVED_REQUEST[n]. unit: int64[n], the unit of each.
    """
    behind_us, service_us = np.zeros((2, units), np.int64)
    np.add.at(behind_us, unit, requests["behind_us"])
    np.add.at(service_us, unit, requests["service_us"])
    return behind_us / np.maximum(behind_us.astype(np.float64) + service_us, 1.0)


def lingers_of(requests: Records, unit: Ints, units: int, request: Ints, appended_at: Ints) -> Ints:
    """How long a unit's batches wait for more records (us): int64[units], the median over its requests, each with the
    batch that waited longest. Requests that could not be sent when that batch began, because five were in flight, are
    left out. The time is 0 if no request remains.

    requests: SERVED_REQUEST[n]. unit: int64[n], the unit of each. request, appended_at: of each batch.
    """
    first_at = np.full(len(requests), NEVER)
    np.minimum.at(first_at, request, appended_at)
    longest_us = requests["sent_at"] - first_at
    shows = (requests["free_at"] <= first_at) & (longest_us >= 0)
    unit, longest_us = unit[shows], longest_us[shows]
    order, edges = np.lexsort((longest_us, unit)), np.searchsorted(unit, np.arange(units + 1))
    lingers, is_known = np.zeros(units, np.int64), np.diff(edges) > 0
    middle = edges[:-1] + (np.diff(edges) - 1) // 2
    lingers[is_known] = longest_us[order][middle[is_known]]
    return lingers
