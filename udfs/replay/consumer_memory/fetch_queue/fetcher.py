"""When a librdkafka consumer asks for more, and how much it then has in its queue.

The rules are those of rd_kafka_toppar_fetch_decide and rd_kafka_broker_consumer_serve of librdkafka 2.15. There is a
thread, the fetcher, for each broker, with one fetch under way at a time. A fetcher asks as soon as it has the response,
unless the queue has reached queued.min.messages or queued.max.messages.kbytes; then it decides again after
fetch.queue.backoff.ms. All partitions share one queue. The application takes from it in the order in which responses
came.
"""

from __future__ import annotations

from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.consumer_memory.fetch_queue.state import ApplicationPace, QueueSim

LEAST_BACKOFF_US = 1000
"""If fetch.queue.backoff.ms is 0, the fetcher decides whenever it wakes up."""


@kernel
def work_end(pace: ApplicationPace, messages: int) -> float:
    """How long the application works on the first `messages` messages (us)."""
    last = len(pace.messages) - 1
    if messages >= pace.messages[last]:
        return float(pace.time[last]) / max(pace.messages[last], 1) * messages
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) >> 1
        if pace.messages[middle] > messages:
            high = middle
        else:
            low = middle
    share = (messages - pace.messages[low]) / (pace.messages[high] - pace.messages[low])
    return pace.time[low] + share * (pace.time[high] - pace.time[low])


@kernel
def take_finished(sim: QueueSim, time: int) -> None:
    """Let the application take the responses that it has finished by `time` (us)."""
    queue = sim.queue[0]
    while queue.first < queue.arrived and sim.queued[queue.first].ends_at <= time:
        queue.first += 1


@kernel
def share_taken(sim: QueueSim, place: int, time: int) -> float:
    """The share of a response that the application has taken by `time` (us). The response has come."""
    queued = sim.queued[place]
    if time >= queued.ends_at:
        return 1.0
    if time <= queued.begins_at:
        return 0.0
    return (time - queued.begins_at) / (queued.ends_at - queued.begins_at)


@kernel
def queued_at(sim: QueueSim, time: int) -> tuple[int, int]:
    """(bytes, messages) in the queue. Call `take_finished` with the same time before."""
    queue = sim.queue[0]
    if queue.first == queue.arrived:
        return 0, 0
    queued = sim.queued[queue.first]
    response, taken = sim.responses[queued.response], share_taken(sim, queue.first, time)
    return (
        queue.bytes - queued.bytes_before - int(taken * response.value_bytes),
        queue.messages - queued.messages_before - int(taken * response.messages),
    )


@kernel
def is_queue_full(sim: QueueSim, queued_bytes: int, messages: int) -> bool:
    """Whether the queue is at a threshold."""
    thresholds = sim.thresholds[0]
    return bool(queued_bytes >= thresholds.max_bytes or messages >= thresholds.min_messages)


@kernel
def full_until(sim: QueueSim) -> int:
    """When the queue is below its thresholds again, if nothing else comes (us)."""
    queue, thresholds = sim.queue[0], sim.thresholds[0]
    for place in range(queue.first, queue.arrived):
        queued = sim.queued[place]
        response = sim.responses[queued.response]
        left_bytes, left = queue.bytes - queued.bytes_before, queue.messages - queued.messages_before
        if is_queue_full(sim, left_bytes - response.value_bytes, left - response.messages):
            continue
        share = 0.0
        if response.value_bytes > 0:
            share = max(share, (left_bytes - thresholds.max_bytes + 1) / response.value_bytes)
        if response.messages > 0:
            share = max(share, (left - thresholds.min_messages + 1) / response.messages)
        return queued.begins_at + int(min(share, 1.0) * (queued.ends_at - queued.begins_at)) + 1
    return sim.queued[queue.arrived - 1].ends_at if queue.arrived > 0 else 0


@kernel
def is_time_in_window(sim: QueueSim, time: int) -> bool:
    """Whether a time counts."""
    return bool(sim.window[0] <= time < sim.window[1])


@kernel
def ask_or_back_off(sim: QueueSim, number: int) -> None:
    """Let a fetcher ask, or wait for its backoff if the queue is full.

    It looks again only when the queue can be below its thresholds, because until then it would find the queue full.
    """
    fetcher, outcome = sim.fetchers[number], sim.outcome[0]
    now, response = fetcher.at, sim.responses[fetcher.response]
    take_finished(sim, now)
    queued_bytes, messages = queued_at(sim, now)
    if is_queue_full(sim, queued_bytes, messages):
        backoff = max(sim.thresholds[0].backoff_us, LEAST_BACKOFF_US)
        looks = max((full_until(sim) - now + backoff - 1) // backoff, 1)
        outcome.held_back += looks if is_time_in_window(sim, now) else 0
        fetcher.full_since = now if fetcher.full_since == NONE else fetcher.full_since
        fetcher.at = now + looks * backoff
        return
    if fetcher.full_since != NONE:
        sim.held_back_until[fetcher.response] = now
    fetcher.full_since, fetcher.has_asked = NONE, 1
    fetcher.at = max(now + response.answer_us, response.ready_at)


@kernel
def enqueue_response(sim: QueueSim, number: int) -> None:
    """Let a fetcher put a response into the queue, and turn to the next one."""
    fetcher, queue, outcome = sim.fetchers[number], sim.queue[0], sim.outcome[0]
    now, response = fetcher.at, sim.responses[fetcher.response]
    queued = sim.queued[queue.arrived]
    before = sim.queued[queue.arrived - 1].ends_at if queue.arrived > 0 else now
    work = work_end(sim.pace, queue.messages + response.messages) - work_end(sim.pace, queue.messages)
    queued.response, queued.begins_at = fetcher.response, max(now, before)
    queued.ends_at = queued.begins_at + round(work)
    queued.messages_before, queued.bytes_before = queue.messages, queue.bytes
    queue.arrived += 1
    queue.messages += response.messages
    queue.bytes += response.value_bytes
    take_finished(sim, now)
    queued_bytes, messages = queued_at(sim, now)
    if is_time_in_window(sim, now):
        # A time without work ends here. A fetcher in its backoff could have asked from the begin of the backoff on.
        outcome.idle_us += max(sim.held_back_until[fetcher.response] - before, 0)
        outcome.most_bytes, outcome.most_messages = (
            max(outcome.most_bytes, queued_bytes), max(outcome.most_messages, messages)
        )  # fmt: skip
        if is_queue_full(sim, queued_bytes, messages):
            until = min(full_until(sim), sim.window[1])
            outcome.full_us += max(until - max(now, queue.full_until), 0)
            queue.full_until = max(queue.full_until, until)
    fetcher.response, fetcher.has_asked = response.following, 0
    fetcher.at = now + sim.responses[fetcher.response].gap_us if fetcher.response != NONE else NEVER


@kernel
def replay_queue(sim: QueueSim) -> None:
    """Let all fetchers ask for all responses, in time order; at the same time, the lowest number comes first."""
    outcome = sim.outcome[0]
    outcome.began_at = NEVER
    for number in range(len(sim.fetchers)):
        outcome.began_at = min(outcome.began_at, sim.fetchers[number].at)
    while True:
        number = 0
        for other in range(1, len(sim.fetchers)):
            if sim.fetchers[other].at < sim.fetchers[number].at:
                number = other
        if len(sim.fetchers) == 0 or sim.fetchers[number].response == NONE:
            break
        if sim.fetchers[number].has_asked == 1:
            enqueue_response(sim, number)
        else:
            ask_or_back_off(sim, number)
    queue = sim.queue[0]
    outcome.ended_at = sim.queued[queue.arrived - 1].ends_at if queue.arrived > 0 else outcome.began_at
