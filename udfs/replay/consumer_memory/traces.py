"""Exchanges in the form that the replay of a pool takes: how much memory each message takes, when, and for how long.

A response's memory is held until the client has fetched again, or has dropped (see draining, takeovers, given_up),
every partition of which the response had records. If the capture shows neither for a partition (it is paused, or the
capture ends), the partition pins its response until the process has no connection left: a process that begins later
under the same name holds nothing of it.

A request's memory is held until the request is parsed, or handled. A channel is muted from a request until its
response; what comes in between is read then (SocketServer.Processor).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schemas.tables.event_kinds import HandledBy
from schemas.wire.apis import API_KEYS
from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.groups import greatest_before, group_numbers
from udfs.columns.records import new_records
from udfs.columns.searches import earliest_from
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER, US_PER_S
from udfs.replay.consumer_memory.state import MESSAGE, TRACE, TRACED_CONNECTION, Traces, Wakes
from udfs.replay.consumer_memory.takeovers import FETCH

GONE_US = US_PER_S
"""A process without a connection for longer than this is gone: a process that lost its connection opens another one
within reconnect.backoff.max.ms."""
GROUP_APIS = tuple(
    API_KEYS[name]
    for name in (
        "OFFSET_COMMIT", "OFFSET_FETCH", "JOIN_GROUP", "HEARTBEAT", "LEAVE_GROUP", "SYNC_GROUP",
        "CONSUMER_GROUP_HEARTBEAT",
    )
)  # fmt: skip
"""APIs of a consumer's coordinator."""
DELAYED_APIS = tuple(
    API_KEYS[name]
    for name in (
        "PRODUCE", "JOIN_GROUP", "SYNC_GROUP", "CREATE_TOPICS", "DELETE_TOPICS", "CREATE_ACLS", "DELETE_ACLS",
        "ALTER_CONFIGS", "SASL_AUTHENTICATE", "CREATE_PARTITIONS", "CREATE_DELEGATION_TOKEN", "RENEW_DELEGATION_TOKEN",
        "EXPIRE_DELEGATION_TOKEN", "ELECT_LEADERS", "INCREMENTAL_ALTER_CONFIGS", "ALTER_PARTITION_REASSIGNMENTS",
        "LIST_PARTITION_REASSIGNMENTS", "ALTER_CLIENT_QUOTAS", "ALTER_USER_SCRAM_CREDENTIALS", "DESCRIBE_QUORUM",
        "UPDATE_FEATURES", "ENVELOPE", "UNREGISTER_BROKER", "ALLOCATE_PRODUCER_IDS", "PUSH_TELEMETRY", "ADD_RAFT_VOTER",
        "REMOVE_RAFT_VOTER", "UNREGISTER_CONTROLLER",
    )
)  # fmt: skip
"""APIs for which a request's memory is held until the request is handled (RequestChannel.Request and
ApiKeys.requiresDelayedAllocation, Kafka 4.4): Produce, JoinGroup, SyncGroup, and requests that a broker may forward to
the controller. For all other APIs it is released when the request is parsed."""


NO_WAKES = Wakes(np.zeros(0, np.int64), np.zeros(0, np.int64))
"""For clients, which have no network threads, and for pools that never refuse."""


class Chains(NamedTuple):
    """Exchanges by connection. Connections are numbered by unit and id.

    connection: int64[n], the connection of each exchange. following: int64[n], the connection's next exchange, or NONE.
    firsts: int64[connections], the first exchange of each.
    """

    connection: Ints
    following: Ints
    firsts: Ints


def chains_of_exchanges(exchanges: Records) -> Chains:
    """The chains of exchanges, each unit's in the order of their requests. exchanges: EXCHANGE[n]."""
    connection, firsts = group_numbers(exchanges["unit"], exchanges["connection"])
    order = np.argsort(connection, kind="stable")
    is_same = connection[order][1:] == connection[order][:-1]
    following = np.full(len(order), NONE)
    following[order[:-1][is_same]] = order[1:][is_same]
    return Chains(connection, following, firsts)


def traces_from(
    chains: Chains, unit: Ints, messages: Records, is_privileged: Ints, units: int
) -> Traces:  # fmt: skip
    """The traces of `units` units.

    unit: int64[n], the unit of each message, rising. messages: MESSAGE[n]; their connection and next request are filled
    in. is_privileged: int64[connections].
    """
    edges, owner = np.arange(units + 1), unit[chains.firsts]
    first_message, first_connection = np.searchsorted(unit, edges), np.searchsorted(owner, edges)
    messages["connection"] = chains.connection - first_connection[unit]
    messages["next_request"] = np.where(chains.following == NONE, NONE, chains.following - first_message[unit])
    traces = new_records(
        TRACE,
        units,
        first_message=first_message[:-1],
        end_message=first_message[1:],
        first_connection=first_connection[:-1],
        end_connection=first_connection[1:],
    )
    np.maximum.at(traces["largest_fetch"], unit, messages["max_bytes"])
    firsts = chains.firsts - first_message[owner]
    connections = new_records(TRACED_CONNECTION, len(firsts), first_message=firsts, is_privileged=is_privileged)
    return Traces(messages, connections, traces, NO_WAKES)


def traces_of_units(traces: Traces, units: Ints) -> Traces:
    """The traces of some units. units: int64[n], their numbers, rising."""
    is_kept, rows, kept = np.isin(np.arange(len(traces.traces)), units), traces.traces[units], list[Records]()
    for kind, records in (("message", traces.messages), ("connection", traces.connections)):
        counts = traces.traces[f"end_{kind}"] - traces.traces[f"first_{kind}"]
        kept.append(records[np.repeat(is_kept, counts)])
        rows[f"end_{kind}"] = np.cumsum(counts[units])
        rows[f"first_{kind}"] = rows[f"end_{kind}"] - counts[units]
    messages, connections = kept
    return Traces(messages, connections, rows, traces.wakes)


def until_gone(exchanges: Records, chains: Chains, place: Ints) -> Ints:
    """Until when responses can be held at most (us), int64[n]: until no connection of the process is open, if the next
    one begins more than GONE_US later; otherwise NEVER. A connection is open from its first request to its last
    response.

    exchanges: EXCHANGE[m]. place: int64[n], the indices of the responses.
    """
    unit, begins_at = exchanges["unit"][chains.firsts], exchanges["requested_at"][chains.firsts]
    ends_at = np.zeros(len(chains.firsts), np.int64)
    np.maximum.at(ends_at, chains.connection, exchanges["complete_at"])
    order = np.lexsort((begins_at, unit))
    unit, begins_at, ends_at = unit[order], begins_at[order], ends_at[order]
    over_at = greatest_before(unit, ends_at)
    is_later = np.append(False, unit[1:] == unit[:-1])[: len(unit)]
    is_gone = is_later & (begins_at > over_at + GONE_US) & (ends_at > 0)
    gone_at, complete_at = over_at[is_gone], exchanges["complete_at"][place]
    until = earliest_from(unit[is_gone], gone_at, gone_at, exchanges["unit"][place], complete_at)
    return np.where(until == NEVER, NEVER, until - complete_at)


def traces_of_responses(exchanges: Records, units: int) -> Traces:
    """The traces of what clients receive. exchanges: EXCHANGE[n], the answered ones, each client's in the order of
    their requests. Records that were dropped count as drained.
    """
    chains, pinned = chains_of_exchanges(exchanges), np.flatnonzero(exchanges["undrained"] > 0)
    requested_at, complete_at = exchanges["requested_at"], exchanges["complete_at"]
    held_us = np.maximum(exchanges["drained_at"] - complete_at, 0)  # 0 for ALWAYS: nothing of it was drained
    held_us[pinned] = until_gone(exchanges, chains, pinned)
    messages = new_records(
        MESSAGE,
        len(exchanges),
        api_key=exchanges["api_key"],
        requested_at=requested_at,
        size_known_at=np.clip(exchanges["size_known_at"], requested_at, complete_at),
        complete_at=complete_at,
        size=exchanges["size"],
        held_us=held_us,
        response_us=NEVER,
        records=exchanges["records"],
        max_bytes=exchanges["max_bytes"],
    )
    api_key, connections = exchanges["api_key"], len(chains.firsts)
    fetches = np.bincount(chains.connection[api_key == FETCH], minlength=connections)
    group_requests = np.bincount(chains.connection[np.isin(api_key, GROUP_APIS)], minlength=connections)
    is_privileged = ((group_requests > 0) & (fetches == 0)).astype(np.int64)
    return traces_from(chains, exchanges["unit"], messages, is_privileged, units)


def traces_of_requests(exchanges: Records, units: int) -> Traces:
    """The traces of what brokers receive. A request comes when its size is known. exchanges: EXCHANGE[n], each broker's
    in the order of their requests.
    """
    chains, requested_at = chains_of_exchanges(exchanges), exchanges["requested_at"]
    answered_at, free_at = requested_at + exchanges["response_us"], free_times(exchanges, chains)
    started_at = np.maximum(np.minimum(exchanges["size_known_at"], requested_at), free_at)
    complete_at = np.maximum(requested_at, free_at)
    handled_us = np.maximum(np.minimum(exchanges["handled_at"], answered_at) - complete_at, 0)
    messages = new_records(
        MESSAGE,
        len(exchanges),
        api_key=exchanges["api_key"],
        requested_at=started_at,
        size_known_at=started_at,
        complete_at=complete_at,
        size=exchanges["size"],
        held_us=np.where(is_delayed(exchanges), handled_us, 0),
        response_us=np.where(exchanges["response_us"] > 0, answered_at - complete_at, NEVER),
    )
    return traces_from(chains, exchanges["unit"], messages, np.zeros(len(chains.firsts), np.int64), units)


def with_wakes(traces: Traces) -> Traces:
    """The traces of brokers, with what wakes their network threads in the capture."""
    units, messages = traces.traces, traces.messages
    unit = np.repeat(np.arange(len(units)), units["end_message"] - units["first_message"])
    answered = messages["response_us"] != NEVER
    time = np.append(messages["complete_at"], (messages["complete_at"] + messages["response_us"])[answered])
    unit, connection = (np.append(of, of[answered]) for of in (unit, messages["connection"]))
    order = np.lexsort((time, unit))
    edges = np.searchsorted(unit[order], np.arange(len(units) + 1))
    rows = units.copy()
    rows["first_wake"], rows["end_wake"] = edges[:-1], edges[1:]
    return traces._replace(traces=rows, wakes=Wakes(time[order], connection[order]))


def free_times(exchanges: Records, chains: Chains) -> Ints:
    """When each request's channel is free (us): with the response to the request before it, 0 for the first one:
    int64[n]. exchanges: EXCHANGE[n].
    """
    free_at, is_followed = np.zeros(len(exchanges), np.int64), chains.following != NONE
    answered_at = exchanges["requested_at"] + exchanges["response_us"]
    free_at[chains.following[is_followed]] = answered_at[is_followed]
    return free_at


def read_at(exchanges: Records) -> Ints:
    """When the broker has read each request (us): int64[n]. exchanges: EXCHANGE[n], each broker's in the order of their
    requests.
    """
    return np.maximum(exchanges["requested_at"], free_times(exchanges, chains_of_exchanges(exchanges)))


def is_delayed(exchanges: Records) -> Bools:
    """Whether the memory of each request is held while it is handled: bool[n]. exchanges: EXCHANGE[n]."""
    return np.isin(exchanges["api_key"], DELAYED_APIS)


def handled_by(exchanges: Records, units: int) -> Ints:
    """By each source, how many times it shows when a request was handled: int64[units, sources]. Only requests count
    whose memory is held while they are handled.

    Sources are in the order of HandledBy. exchanges: EXCHANGE[n].
    """
    held = exchanges[is_delayed(exchanges)]
    counts = np.zeros((units, len(HandledBy)), np.int64)
    np.add.at(counts, (held["unit"], held["handled_by"]), 1)
    return counts
