"""Turns rows of PRODUCE_EVENTS into the records that the replay of producers' quotas takes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from schemas.tables.steps import PRODUCE_EVENTS
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, US_PER_MS
from udfs.replay.fetch_max_bytes.producer_quota.state import PRODUCE_CONNECTION, PRODUCE_REQUEST, ProducerUnit
from udfs.replay.fetch_max_bytes.who_has_quotas import Client
from udfs.replay.shared.columns import int_column
from udfs.replay.shared.key_numbers import client_of, key_numbers
from udfs.replay.shared.window import Window

_T = PRODUCE_EVENTS
FIRST_THAT_WAITS = 6
"""From this version of Produce on, a throttled client itself waits (ProduceResponse.shouldClientThrottle)."""

REQUEST_BYTES, BATCH_BYTES = 50, 70
"""The bytes of a Produce request besides its batches, and those of a batch besides its records, about: the header of a
batch has 61 bytes, and its partition 7 to 9; the header of a request and its topic have 40 to 60.
"""


@dataclass(frozen=True)
class CapturedProducers:
    """Producers that share quotas. clients: by the process's number. brokers: by number. began_before:
    bool[connections], the connection began before the capture.
    """

    unit: ProducerUnit
    clients: list[Client]
    brokers: list[str]
    began_before: Bools


def producers_of(rows: pa.RecordBatch, window: Window) -> CapturedProducers | None:
    """The producers of one unit, from all of its rows; None if there is no request among them."""
    is_request = np.asarray(rows[_T.size].is_valid())
    requests = rows.filter(pa.array(is_request))
    if requests.num_rows == 0:
        return None
    order = np.lexsort([int_column(requests, c, 0) for c in (_T.exchange_no, _T.time, _T.connection_id)])
    requests = requests.take(order)
    connection, first = np.unique(int_column(requests, _T.connection_id, 0), return_index=True)
    edges = np.append(first, requests.num_rows)
    of_row = np.repeat(np.arange(len(connection)), np.diff(edges))
    clients, brokers = dict[str, int](), dict[str, int]()
    process = key_numbers(clients, requests[_T.client_id], requests[_T.client_address])
    broker = key_numbers(brokers, requests[_T.broker])
    records = captured_requests(requests, of_row, window)
    connections = captured_connections(requests, records, edges)
    connections["process"], connections["broker"] = process[first], broker[first]
    made, batches = batches_of(rows.filter(pa.array(~is_request)), requests)
    note_joined(connections, records, batches, edges)
    return CapturedProducers(
        unit_of(records, connections, edges, made),
        [client_of(key) for key in clients],
        [*brokers],
        int_column(requests, _T.began_before, 0)[first] == 1,
    )


def captured_requests(rows: pa.RecordBatch, connection: Ints, window: Window) -> Records:
    """PRODUCE_REQUEST[n] of rows of requests, by connection and time. connection: int64[n], the number of each.

    Brokers before 2.0, which have no Produce 6, counted a request first, and then held back the answer for
    throttle_time_ms. So such a request was counted that long before its answer.
    """
    requests = np.zeros(rows.num_rows, PRODUCE_REQUEST)
    arrived, throttle = int_column(rows, _T.time, 0), int_column(rows, _T.throttle_time_ms, NONE)
    answered = np.maximum(int_column(rows, _T.response_time, ALWAYS), arrived)
    held_us = np.maximum(throttle, 0) * US_PER_MS
    is_held = (int_column(rows, _T.api_version, 0) < FIRST_THAT_WAITS) & (answered - arrived >= held_us)
    requests["connection"], requests["arrived_us"] = connection, arrived
    requests["recorded_us"] = np.where(is_held, answered - held_us, answered)
    requests["size"], requests["throttle_ms"] = int_column(rows, _T.size, 0), throttle
    requests["counts"] = window.has(arrived)
    return requests


def captured_connections(rows: pa.RecordBatch, requests: Records, edges: Ints) -> Records:
    """PRODUCE_CONNECTION[connections]: how many requests of each can be under way, and how soon it sends the next one.

    edges: int64[connections + 1], where each connection's requests begin.
    """
    connections = np.zeros(len(edges) - 1, PRODUCE_CONNECTION)
    waits = int_column(rows, _T.api_version, 0) >= FIRST_THAT_WAITS
    answers = int_column(rows, _T.is_answered, 1) == 1
    for number, (begin, end) in enumerate(pairwise(edges.tolist())):
        arrived, recorded = requests["arrived_us"][begin:end], requests["recorded_us"][begin:end]
        unmuted = recorded + np.maximum(requests["throttle_ms"][begin:end], 0) * US_PER_MS
        may_send = unmuted if waits[begin] else recorded
        done = np.searchsorted(np.maximum.accumulate(recorded), arrived, "right")
        most = max(int((np.arange(1, end - begin + 1) - done).max()), 1) if answers[begin] else end - begin
        gaps = arrived[most:] - may_send[: end - begin - most]
        connections[number] = (0, 0, most, gaps.min() if len(gaps) else 0, 0, 1, 0, waits[begin])
    return connections


def batches_of(batches: pa.RecordBatch, requests: pa.RecordBatch) -> tuple[Ints, Ints]:
    """(when the last record of each request was made, us, ALWAYS if that is not known; how many batches each has whose
    records say when they were made), int64[n] each.

    batches: rows of batches. requests: rows of requests.
    """
    keys = [np.concatenate([int_column(rows, c, 0) for rows in (requests, batches)])
            for c in (_T.connection_id, _T.exchange_no)]  # fmt: skip
    _, number = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    of_request, of_batch = np.split(number.ravel(), [requests.num_rows])
    last = np.full(int(number.max()) + 1, ALWAYS)
    np.maximum.at(last, of_batch, int_column(batches, _T.made_time, ALWAYS))
    return last[of_request], np.bincount(of_batch, minlength=len(last))[of_request]


def note_joined(connections: Records, requests: Records, batches: Ints, edges: Ints) -> None:
    """Write how requests are joined that wait in a client which puts batches of several partitions into a request, as
    Java's does. librdkafka does not, and it does not wait by itself either.

    connections: PRODUCE_CONNECTION[connections]. requests: PRODUCE_REQUEST[n]. batches: int64[n], of each request.
    edges: int64[connections + 1], where each connection's requests begin.
    """
    for of, (begin, end) in zip(connections, pairwise(edges.tolist()), strict=True):
        if batches[begin:end].max() > 1:
            sizes, waited = requests["size"][begin:end], requests["throttle_ms"][begin : end - 1] > 0
            of["joined_bytes"] = sizes.max()
            of["usual_bytes"] = max(np.median(sizes[np.append(True, ~waited)]), 1)
            of["saved_bytes"] = REQUEST_BYTES + round(BATCH_BYTES * batches[begin:end].mean())


def unit_of(requests: Records, connections: Records, edges: Ints, made: Ints) -> ProducerUnit:
    """The unit from which lanes are replayed.

    A request is made when its last record is made, or, if the capture does not show that, when the request came. The
    time from then, or from the end of the wait for its turn, until the request came is the same in every lane.
    """
    arrived, recorded = requests["arrived_us"], requests["recorded_us"]
    unmuted = recorded + np.maximum(requests["throttle_ms"], 0) * US_PER_MS
    service, idle, lingers, ready, gate = np.zeros((5, len(requests)), np.int64)
    for number, (begin, end) in enumerate(pairwise(edges.tolist())):
        of, own = connections[number], slice(begin, end)
        before = np.append(ALWAYS, np.maximum.accumulate(unmuted[own])[:-1])
        service[own] = np.maximum(recorded[own] - np.maximum(arrived[own], before), 0)
        may_send = (unmuted if of["client_waits"] else recorded)[own]
        turn = np.full(end - begin, ALWAYS)
        turn[of["in_flight"] :] = may_send[: max(end - begin - of["in_flight"], 0)] + of["turnaround_us"]
        made_of = np.where(made[own] == ALWAYS, arrived[own], made[own])
        ready[own] = np.maximum.accumulate(np.minimum(made_of, arrived[own]))
        gates = last_throttled(requests["throttle_ms"][own], unmuted[own], arrived[own])
        gate[own] = np.where(gates == NONE, NONE, begin + gates)
        turn = np.where(gates == NONE, turn, np.maximum(turn, may_send[gates]))
        idle[own] = np.maximum(arrived[own] - np.maximum(ready[own], turn), 0)
        lingers[own] = ready[own] >= turn
    process = connections["process"][requests["connection"]]
    by_process = np.lexsort((np.arange(len(requests)), ready, process))
    firsts = np.searchsorted(process[by_process], np.arange(int(process.max()) + 2))
    return ProducerUnit(requests, connections, edges, service, idle, lingers, ready, gate, by_process, firsts)


def last_throttled(throttle_ms: Ints, unmuted_us: Ints, arrived_us: Ints) -> Ints:
    """For each request, the last throttled request of its connection whose throttling was over when the request came:
    int64[n], NONE if there is none. The request may have waited for that, in the client or in the socket.
    """
    throttled = np.flatnonzero(throttle_ms > 0)
    over = np.searchsorted(np.maximum.accumulate(unmuted_us[throttled]), arrived_us, "right")
    earlier = np.minimum(over, np.searchsorted(throttled, np.arange(len(arrived_us))))
    return np.append(NONE, throttled)[earlier]
