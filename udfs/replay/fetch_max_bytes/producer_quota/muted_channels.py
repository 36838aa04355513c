"""How producers fare under a quota: a broker reads no request of a connection while it throttles the connection.

A broker works on one request of a connection at a time. When it answers a request, it records the request in the
client's meter, and mutes the connection for throttle_time_ms (KafkaApis.handleProduceRequest, ThrottledChannel;
KIP-219, Kafka 2.0). A client that knows Produce 6 waits as long before it sends again (NetworkClient.maybeThrottle).
Brokers before 2.0 answered later by throttle_time_ms instead, and took no other request of the connection until then.
The result is the same.

An application makes records at the captured times. Only when buffer.memory is full does it wait, and all records that
it makes afterwards are later by the same time (BufferPool).
"""

from __future__ import annotations

from udfs.columns.arrays import Record, Records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, US_PER_MS
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.producer_quota.state import ProducerUnit, QuotaLane, Sending
from udfs.replay.fetch_max_bytes.quota_meter import produce_throttle_ms
from udfs.replay.shared.event_heap import Heap, pop, push
from udfs.replay.shared.silver_columns import DELIVERY_TIMEOUT_MS

DELIVERY_TIMEOUT_US = DELIVERY_TIMEOUT_MS * US_PER_MS


@kernel
def play_lane(
    unit: ProducerUnit, lane: QuotaLane, sending: Sending, heap: Heap, outcomes: Records, buffer_bytes: int
) -> None:
    """Send all requests of the unit in a lane.

    outcomes: THROTTLING[connections], written in place. buffer_bytes: buffer.memory of each process.
    """
    for number in range(len(lane.meters.meters)):
        lane.meters.meters[number].samples = 0
    for process in range(len(unit.process_first) - 1):
        make_requests(unit, sending, heap, process, buffer_bytes, ALWAYS)
    while heap.events[0] > 0:
        time, connection = pop(heap)
        sending.due[connection] = 0
        place, of = unit.first[connection] + sending.handled[connection], unit.connections[connection]
        joined, size = requests_joined(unit, lane, sending, connection)
        throttle = throttle_in_lane(lane, connection, size, time // US_PER_MS)
        note_request(outcomes[connection], unit.requests[place], size, throttle)
        unmuted = sending.unmuted_us[connection] = time + throttle * US_PER_MS
        sending.waited_us[connection] = unmuted if throttle > 0 and of.client_waits == 1 else ALWAYS
        for one in range(place, place + joined):
            note_answer(outcomes[connection], unit.requests[one], time, sending.made_us[one])
            sending.open_us[one] = unmuted if of.client_waits == 1 else time
            sending.held_bytes[of.process] -= unit.requests[one].size
        sending.handled[connection] += joined
        schedule_next(unit, sending, heap, connection)
        make_requests(unit, sending, heap, of.process, buffer_bytes, time)


@kernel
def requests_joined(unit: ProducerUnit, lane: QuotaLane, sending: Sending, connection: int) -> tuple[int, int]:
    """(how many captured requests a connection sends as one, the bytes of that request).

    While a client waits because it is throttled, the application fills its batches, up to the largest request that the
    capture shows. After a request that is throttled in the capture as well, the capture shows how far they are filled.
    If the client does not wait in the lane, what it waited for in the capture has the bytes of several requests. In the
    captured lane, requests are as captured.
    """
    begin, of = unit.first[connection] + sending.handled[connection], unit.connections[connection]
    size, place = unit.requests[begin].size, begin + 1
    if lane.is_captured:
        return 1, size
    if sending.handled[connection] > 0 and unit.requests[begin - 1].throttle_ms > 0:
        waits = sending.waited_us[connection] != ALWAYS
        return 1, size if waits else size + max(size // of.usual_bytes - 1, 0) * of.saved_bytes
    while place < unit.first[connection] + sending.made[connection]:
        request, joined = unit.requests[place], size + max(unit.requests[place].size - of.saved_bytes, 0)
        was_made = sending.made_us[place] <= sending.waited_us[connection]
        if not was_made or joined > of.joined_bytes or request.counts != unit.requests[begin].counts:
            break
        size, place = joined, place + 1
    return place - begin, size


@kernel
def throttle_in_lane(lane: QuotaLane, connection: int, size: int, time_ms: int) -> int:
    """throttle_time_ms of the response to a request, 0 without a quota."""
    meter = lane.meter_of[connection]
    if meter == NONE:
        return 0
    return produce_throttle_ms(lane.meters, meter, lane.rules[meter], size, time_ms)


@kernel
def note_request(outcome: Record, request: Record, size: int, throttle: int) -> None:
    """Count a request that a broker gets. request: the captured one, or the first of those that are sent as one. size:
    its bytes in the lane.
    """
    if request.counts == 0:
        return
    if outcome.requests == 0:
        outcome.first_us = request.arrived_us
    outcome.requests += 1
    outcome.bytes += size
    outcome.throttled += throttle > 0
    outcome.throttle_ms += throttle
    outcome.throttle_ms_max = max(outcome.throttle_ms_max, throttle)


@kernel
def note_answer(outcome: Record, request: Record, time: int, made_us: int) -> None:
    """Count a captured request that is answered. made_us: when the application had made it."""
    if request.counts == 0:
        return
    outcome.last_us = max(outcome.last_us, time)
    outcome.behind_us = max(outcome.behind_us, time - request.recorded_us)
    outcome.expired += time - made_us > DELIVERY_TIMEOUT_US


@kernel
def make_requests(unit: ProducerUnit, sending: Sending, heap: Heap, process: int, buffer_bytes: int, now: int) -> None:
    """Let the application make requests for as long as there is memory. now: when memory was last freed, us."""
    while sending.next_made[process] < unit.process_first[process + 1]:
        place = unit.by_process[sending.next_made[process]]
        request, held = unit.requests[place], sending.held_bytes[process]
        if held > 0 and held + request.size > buffer_bytes:
            return
        due = unit.ready_us[place] + sending.late_us[process]
        blocked = max(now - due, 0)
        sending.blocked_us[process] += blocked
        sending.late_us[process] += blocked
        sending.made_us[place] = max(due, now)
        sending.held_bytes[process] += request.size
        sending.next_made[process] += 1
        sending.made[request.connection] += 1
        schedule_next(unit, sending, heap, request.connection)


@kernel
def schedule_next(unit: ProducerUnit, sending: Sending, heap: Heap, connection: int) -> None:
    """Note when the broker answers the next request of a connection, if the application has made it."""
    handled = sending.handled[connection]
    if sending.due[connection] == 1 or handled == sending.made[connection]:
        return
    place, of = unit.first[connection] + handled, unit.connections[connection]
    sent = sending.made_us[place]
    if handled >= of.in_flight:
        sent = max(sent, sending.open_us[place - of.in_flight] + of.turnaround_us)
    if unit.gate[place] != NONE:
        sent = max(sent, sending.open_us[unit.gate[place]])
    idle = unit.idle_us[place]
    came = max(sent, sending.made_us[place] + idle) if unit.lingers[place] == 1 else sent + idle
    push(heap, max(came, sending.unmuted_us[connection]) + unit.service_us[place], connection)
    sending.due[connection] = 1
