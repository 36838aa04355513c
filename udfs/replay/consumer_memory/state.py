"""The records of the replay of a memory pool: messages on connections, the lane's state, and a lane's outcome."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.records import int_fields
from udfs.replay.consumer_memory.pool import POOL
from udfs.replay.consumer_memory.usage import MEASURED, Meter, UsageCurves, new_meter, room_for_curves
from udfs.replay.shared.event_heap import Heap
from udfs.replay.shared.window import WHOLE, Window

MESSAGE = int_fields(
    "connection",  # its number
    "api_key",
    "next_request",  # the message on its connection whose request comes next, or NONE
    "requested_at",  # us
    "size_known_at",  # us: when its first bytes came, and it takes its memory; not before requested_at
    "complete_at",  # us: when its last byte came; not before size_known_at
    "size",  # bytes to be allocated
    "held_us",  # how long its memory is held from complete_at on; NEVER: it is not released
    "response_us",  # for a request: from complete_at to its response; NEVER: there is none
    "records",
    "max_bytes",  # fetch.max.bytes of a fetch, else 0
)
"""A response that a client receives, or a request that a broker receives. For a request, requested_at is equal to
size_known_at."""
TRACED_CONNECTION = int_fields(
    "first_message",
    "is_privileged",  # 1: it leads to a consumer's coordinator, and its messages get other memory if the pool refuses
)
"""A connection of a unit, and where its messages begin."""
TRACE = int_fields(
    "first_message", "end_message", "first_connection", "end_connection", "first_wake", "end_wake",
    "largest_fetch",  # the greatest max_bytes
)  # fmt: skip
"""A unit's messages and connections, and what wakes its network threads."""


class Wakes(NamedTuple):
    """What wakes network threads of brokers: requests that are complete, and responses.

    time: int64[n], us, those of a unit rising. connection: int64[n], counted from the unit's first one.
    """

    time: Ints
    connection: Ints


class Traces(NamedTuple):
    """What several units receive. traces: TRACE[units].

    messages: MESSAGE[n], those of a unit in the order of their requests. connections: TRACED_CONNECTION[m], those of a
    unit in the order of their ids. The numbers of messages and connections in both count from the unit's first one.
    wakes: of brokers; clients have none.
    """

    messages: Records
    connections: Records
    traces: Records
    wakes: Wakes


MESSAGE_STATE = int_fields(
    "is_there",  # 1: its first bytes have come, so its size is known
    "pooled",  # bytes allocated
    "records_left",  # that the application has not taken yet
    "next_in_queue",
    "waited_us",
)
"""The state of a message in the lane that is replayed."""
CONNECTION_STATE = int_fields(
    "head",  # the message to be read next, or NONE
    "waiting_since",  # us: since when it waits for memory, or NONE
    "overtaken",  # how often other connections were served while it waits
    "is_starved",
    "held_back",  # the request that may not be sent yet, or NONE
    "is_reading",  # 1: a message has its memory and is not complete
    "network_thread",  # of a broker, to which the connection belongs
)
"""The state of a connection in the lane that is replayed."""
LANE_STATE = int_fields(
    "in_flight",  # bytes: the max_bytes of all fetches that are in flight
    "completed",  # bytes of fetches that are complete and hold their memory
    "completed_as_max",  # the max_bytes of the fetches that `completed` counts
    "is_busy",  # 1: the application works, or is about to poll
    "queue_first",  # the first message whose records the application has not taken, or NONE
    "queue_last",  # the last such message
    "random",  # the state of the lane's random numbers
)
"""The rest of the lane's state."""
POOL_OUTCOME = int_fields(
    *MEASURED,
    "messages",  # that got memory
    "bytes",
    "records",
    "starved",  # connections that were passed over as often as there are connections
    "pinned",  # messages whose memory was never released
    "unpooled",  # messages of privileged connections that the pool refused
    "too_large",  # messages above the largest allocation; their connections are closed
    "stuck",  # connections that wait at the end
    "smallest_pool",  # bytes of the smallest pool in which nobody would wait
    "reckoned_max",  # the most bytes that the variant counts as used
    "depleted_us",  # us: how long the pool was depleted
)
"""The outcome of a lane."""


class MessageSim(NamedTuple):
    """The replay of one unit's messages in every lane."""

    messages: Records  # MESSAGE[messages]
    connections: Records  # TRACED_CONNECTION[connections]
    settings: Records  # POOL_SETTINGS[lanes]
    message_states: Records  # MESSAGE_STATE[messages]
    connection_states: Records  # CONNECTION_STATE[connections]
    race: Ints  # int64[connections], working memory
    wakes: Wakes
    is_scheduled: Ints  # int64[threads]: 1 for a network thread that will try its muted connections
    heap: Heap
    state: Records  # LANE_STATE[1]
    pool: Records  # POOL[1]
    meter: Meter
    curves: UsageCurves
    outcomes: Records  # POOL_OUTCOME[lanes]
    no_outcome: Records  # POOL_OUTCOME[1], the outcome of a lane that has not begun


class UnitOutcomes(NamedTuple):
    """The outcomes of units in every lane, POOL_OUTCOME[units, lanes], 0 for a unit without messages; and curves."""

    outcomes: Records
    curves: UsageCurves


def simulations_of_units(
    traces: Traces, settings: Records, window: Window = WHOLE
) -> tuple[UnitOutcomes, Iterator[tuple[int, MessageSim]]]:
    """(the outcomes of the units, filled in when their simulations run; the number and the simulation of each unit that
    has messages). Simulations share their working memory: run each before you take the next.

    settings: POOL_SETTINGS[units, lanes].
    """
    units = traces.traces
    counts = units["end_message"] - units["first_message"]
    n = int(counts.max(initial=0))
    connections = int((units["end_connection"] - units["first_connection"]).max(initial=0))
    threads = int(settings["network_threads"].max(initial=0))
    # A message is requested, on its way, or to be released and answered; the application and network threads poll.
    room = 3 * n + 2 + threads
    replayed = UnitOutcomes(np.zeros(settings.shape, POOL_OUTCOME), room_for_curves(settings.shape[1], counts))
    whole = MessageSim(
        messages=read_only(traces.messages),
        connections=read_only(traces.connections),
        settings=read_only(settings),
        message_states=np.zeros(n, MESSAGE_STATE),
        connection_states=np.zeros(connections, CONNECTION_STATE),
        race=np.zeros(connections, np.int64),
        wakes=Wakes(read_only(traces.wakes.time), read_only(traces.wakes.connection)),
        is_scheduled=np.zeros(threads, np.int64),
        heap=Heap(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64)),
        state=np.zeros(1, LANE_STATE),
        pool=np.zeros(1, POOL),
        meter=new_meter(window),
        curves=replayed.curves,
        outcomes=replayed.outcomes,
        no_outcome=read_only(np.zeros(1, POOL_OUTCOME)),
    )
    return replayed, ((unit, simulation_of_unit(whole, units[unit], unit)) for unit in np.flatnonzero(counts).tolist())


def simulation_of_unit(whole: MessageSim, trace: np.void, unit: int) -> MessageSim:
    """The replay of one unit, as a part of `whole`, the replay of all units. trace: the unit's TRACE."""
    messages = slice(int(trace["first_message"]), int(trace["end_message"]))
    connections = slice(int(trace["first_connection"]), int(trace["end_connection"]))
    wakes = slice(int(trace["first_wake"]), int(trace["end_wake"]))
    return whole._replace(
        messages=whole.messages[messages],
        connections=whole.connections[connections],
        settings=whole.settings[unit],
        message_states=whole.message_states[: messages.stop - messages.start],
        connection_states=whole.connection_states[: connections.stop - connections.start],
        race=whole.race[: connections.stop - connections.start],
        wakes=Wakes(whole.wakes.time[wakes], whole.wakes.connection[wakes]),
        outcomes=whole.outcomes[unit],
    )
