"""What the closed loop of a reader works on: what there is to be read, the state of a lane, and what lanes come to.

A reader is a unit. Its nodes, one for each broker that it reads from, are replayed together. The partitions of a node
lie together in one array of them all, and so do its changes; the node's NODE says where.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records, read_only
from udfs.columns.records import Kind, int_fields, new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.kernels.kernel import kernel
from udfs.replay.fetch_max_bytes.quota_meter import Meters
from udfs.replay.fetch_max_bytes.state import ANSWER, Sums
from udfs.replay.shared.captured_pieces import PIECES
from udfs.replay.shared.event_heap import Heap

NO_BACKLOG = -1
"""In place of how long a partition's backlog took."""
REOPEN, STOP, THROTTLED = -1, -2, -3
"""In place of the partition of a READING_CHANGE: the session is opened anew (REOPEN), or the reader stands still for a
while, because of a quota (THROTTLED) or for another reason (STOP)."""
GO_ON, LEAVE = -1, -2
"""In place of the batch that a READING_CHANGE leads to: the partition is read on where it was, or is not wanted any
more."""

READ_PARTITION = int_fields(
    "number",  # among those of the reader: its row in the sums
    "partition_max_bytes",  # as captured
    "first_batch",  # its batches are [first_batch, end_batch), in offset order
    "start_batch",  # the batch that is the first to be asked for
    "end_batch",
    "backlog_end",  # behind the last batch that was there when the capture first asked for the partition
    "is_known",  # 1: no batch is missing behind end_batch
    "previous",  # the same partition at the broker that it moved from, or NONE
    "dealt",  # its place among a consumer's, or its `fetcher_hash`: modulo how many readers share, it says whose it is
    "batch_shift",  # added to a batch's index in `previous` it gives the index of the same batch in this partition
)
"""A partition that a node reads. A node's partitions are in the order in which it first asked for them."""
LOG_BATCH = int_fields(
    "bytes_before",  # of all batches before it
    "records_before",
    "visible_at",  # us: when it can be read; rises within a partition
    "segment_end",  # behind the last batch of its segment, as far as that is known
)
"""A batch of any partition. One more row follows the last batch; its sums are those of all batches."""
READING_CHANGE = int_fields(
    "time",  # us
    "partition",  # or REOPEN, STOP or THROTTLED
    "to",  # a batch, GO_ON or LEAVE; of STOP and THROTTLED: until when, us
    "until",  # us: when the partition is asked for again, so that nothing of it is buffered then; NEVER where it is not
    "since",  # us: when the partition was last asked for before; NEVER where the change does not give it up
    "captured_batch",  # the batch that the capture had read to by then, or NONE where that cannot be compared
)
"""When a node wants something else than before. A node's changes are in the order of their times."""
NODE: Kind = np.dtype(
    [
        ("first_partition", np.int64),  # its partitions are [first_partition, end_partition)
        ("end_partition", np.int64),
        ("first_change", np.int64),
        ("end_change", np.int64),
        ("first_turn", np.int64),  # its room in CapturedLane.turns
        ("end_turn", np.int64),
        ("begin", np.int64),  # us: the first captured fetch
        ("horizon", np.int64),  # us: the capture's end
        ("request_cap", np.int64),  # a lane is cut off after so many requests
        ("gap_us", np.float64),  # from a response to the fetch that follows, less what its records take
        ("poll_us", np.float64),  # how long each poll() takes the application, beside its work on records
        ("answer_us", np.float64),  # from a fetch that finds enough to its response, less what its record bytes take
        ("late_us", np.float64),  # from the end of the longest wait to the response
        ("first_taking", np.int64),  # its curve of what records take: points [first_taking, end_taking) of Unit.taking
        ("end_taking", np.int64),
        ("first_sending", np.int64),  # its curve of what record bytes take: points of Unit.sending
        ("end_sending", np.int64),
    ]
)
"""A broker that the reader reads from: a connection, with those opened anew in its place."""
POINT: Kind = np.dtype([("amount", np.int64), ("time", np.float64)])
"""A point of a curve: how long the first `amount` takes (us). A curve begins at (0, 0), and both rise."""


class Unit(NamedTuple):
    """What a reader reads: READ_PARTITION[n], LOG_BATCH[batches + 1], READING_CHANGE[n], NODE[nodes], and POINT[n] of
    curves.
    """

    partitions: Records
    batches: Records
    changes: Records
    nodes: Records
    taking: Records
    sending: Records


PARTITION_STATE = int_fields(
    "position",  # the batch to be read next
    "taken_at",  # us: when the client has taken all that it last got of the partition
    "held",  # record bytes that it last got
    "turn_at",  # us: when the application comes to what it last got
    "requested_at",  # us: when the client first asked for it, or NEVER
    "is_assigned",  # 1: the client wants it
    "has_moved",  # 1: it was given up, or sought elsewhere, since the last request
    "is_wanted",  # 1: the next request asks for it
    "catch_up_us",  # how long its backlog took, NO_BACKLOG, or NEVER where it is not read
)
"""A partition in the lane that is replayed."""
NODE_STATE = int_fields(
    "now",  # us: when something happens next, or NEVER
    "in_flight",  # 1: what happens next is the response to its request
    "sent_at",  # us: the last request
    "read_at",  # us: when the broker read the log for it
    "stopped_until",  # us: the reader stands still
    "changes",  # that have come
    "opens_session",  # 1: the next response opens the session
    "known",  # partitions in the client's order
    "in_session",  # partitions in the session's order
    "turn",  # with which partition librdkafka begins
    "requested",  # partitions in the last request
    "requests",  # that were sent
    "bytes",  # record bytes that were read
    "throttle_us",  # how long a quota holds the client back after the last response, by the capture's clock, or 0
    "is_over",  # 1: the captured time is over
)
"""A node in the lane that is replayed."""
APPLICATION = int_fields(
    "busy_until",  # us: it has worked on all records by then
    "poll_at",  # us: its last call of poll()
    "poll_room",  # how many records more that call can return
    "records",  # all that it has taken
    "held",  # record bytes received and not taken, of all nodes; in the first application alone
    "held_from",  # us: since when
    "held_until",  # us: until when, at the latest
)
"""What takes records, one for each node. Where one application takes those of all nodes, only the first is used."""


class Orders(NamedTuple):
    """Orders of partitions, int64[partitions] each; a node has the stretch of its own partitions.

    client, session: in which the client and the session name them. requested: those of the last request. served: those
    of its response that have records.
    """

    client: Ints
    session: Ints
    requested: Ints
    served: Ints


class State(NamedTuple):
    """What changes while a lane is replayed.

    PARTITION_STATE[n], NODE_STATE[nodes], APPLICATION[nodes]. answers: ANSWER[n], to Orders.requested. marks:
    int64[partitions], all 0 between two uses. moved: partitions that came from another broker, empty between two uses.
    meters: those of all readers that are replayed together, by the number in RULES. random: int64[1].
    """

    partitions: Records
    nodes: Records
    applications: Records
    orders: Orders
    answers: Records
    marks: Ints
    moved: Heap
    meters: Meters
    random: Ints


def new_state(unit: Unit, meters: Meters) -> State:
    """The state as a lane begins, but for the seed of `random`. meters: those of all readers replayed together."""
    n, nodes = len(unit.partitions), len(unit.nodes)
    room = int(np.count_nonzero(unit.partitions["previous"] != NONE))
    has_backlog = unit.partitions["backlog_end"] > unit.partitions["start_batch"]
    return State(
        partitions=new_records(
            PARTITION_STATE,
            n,
            position=unit.partitions["start_batch"],
            requested_at=NEVER,
            catch_up_us=np.where(has_backlog, NEVER, NO_BACKLOG),
        ),
        nodes=new_records(NODE_STATE, nodes, now=unit.nodes["begin"]),
        applications=np.zeros(nodes, APPLICATION),
        orders=Orders(*(np.zeros(n, np.int64) for _ in Orders._fields)),
        answers=np.zeros(n, ANSWER),
        marks=np.zeros(n, np.int64),
        moved=Heap(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64)),
        meters=meters,
        random=np.zeros(1, np.int64),
    )


LANE_OUTCOME = int_fields(
    "requests",
    "is_finished",  # 0: something was left to be read
    "responses",  # also those that there was no room for in ReaderLanes.responses
    "given_up",  # rows of ReaderLanes.given_up
    "end_lag",  # bytes not yet read at the capture's end, of all partitions that are asked for
    "throttle_ms",  # throttle_time_ms of all responses
)
"""What a lane comes to."""
LANE_RESPONSE = int_fields(
    "node",
    "requested_at",  # us
    "arrived_at",  # us
    "drained_at",  # us: the client has taken all of it that is not given up, and can ask again for the last of that
    "size",  # record bytes
    "records",  # that the client got on by
    "partitions",  # with records
)
"""A response of a lane, those of a node in the order of their times."""
GIVEN_UP = int_fields(
    "response",  # its place
    "number",  # of the partition
    "since",  # us: when the capture last asked for the partition before
    "until",  # us: when it asks for it again, or NEVER
    "turn_at",  # us: when the application comes to it, to drop it if it has lost the partition
)
"""Records of a partition that came in a response, and were dropped since the client left the partition or sought
elsewhere before it had taken them."""
PARTITION_BUCKET = int_fields(
    "bytes",  # that came
    "lag",  # bytes not yet read at its end
    "wait",  # us: the longest that had been waited at its end
)
"""A stretch of a reader's time, for a partition in a lane."""
LINE = int_fields(
    "bucket",  # the bucket in which the lane is, the first that is not over
    "width",  # us: how long a bucket is
)
"""A lane's part of the timeline."""
STAY = int_fields(
    "begin",  # us
    "before",  # us of the reader's time that have gone by then
)
"""A stretch of time in which the reader is there."""


class Timeline(NamedTuple):
    """A reader's time in buckets; when they are full, two become one, and each is twice as long.

    buckets: PARTITION_BUCKET[lanes, partitions, buckets]. held: int64[lanes, TICKS], most bytes held at once. lanes:
    LINE[lanes]. stays: STAY[n].
    """

    buckets: Records
    held: Ints
    lanes: Records
    stays: Records


CAPTURED_NODE = int_fields(
    "turns",  # entries of CapturedLane.turns
    "requests",  # that were sent in the captured time
)
"""What a node does in lane 0."""


class CapturedLane(NamedTuple):
    """What lane 0 does, to be compared with the capture.

    turns: int64[n], the partitions that get records of the backlog, one after the other; NODE says where a node's are.
    nodes: CAPTURED_NODE[nodes]. pieces: int64[nodes, PIECES], bytes that came in each piece of the captured time.
    catch_up_us: int64[partitions], as in PARTITION_STATE. positions: int64[changes], where each one's partition was.
    """

    turns: Ints
    nodes: Records
    pieces: Ints
    catch_up_us: Ints
    positions: Ints


def new_captured_lane(unit: Unit) -> CapturedLane:
    """Room for what lane 0 does."""
    nodes = len(unit.nodes)
    return CapturedLane(
        turns=np.zeros(int(unit.nodes["end_turn"].max(initial=0)), np.int64),
        nodes=np.zeros(nodes, CAPTURED_NODE),
        pieces=np.zeros((nodes, PIECES), np.int64),
        catch_up_us=np.zeros(len(unit.partitions), np.int64),
        positions=np.zeros(len(unit.changes), np.int64),
    )


class ReaderLanes(NamedTuple):
    """What the lanes of a reader come to.

    lanes: LANE_OUTCOME[lanes]. catch_up_us: int64[numbers, lanes], NO_BACKLOG or NEVER. given_up_backlogs:
    int64[numbers], 1 where the reader leaves a backlog that lane 0 had not read, for good or to go on behind it.
    responses: LANE_RESPONSE[lanes, room]. given_up: GIVEN_UP[lanes, room].
    """

    sums: Sums
    timeline: Timeline
    lanes: Records
    catch_up_us: Ints
    given_up_backlogs: Ints
    captured: CapturedLane
    responses: Records
    given_up: Records


class Start(NamedTuple):
    """The parts of the state that are the same at each lane's begin: PARTITION_STATE[n], NODE_STATE[nodes],
    APPLICATION[nodes].
    """

    partitions: Records
    nodes: Records
    applications: Records


class ReaderSim(NamedTuple):
    """The replay of one reader in every lane. rules: RULES[nodes, lanes]."""

    unit: Unit
    rules: Records
    start: Start
    state: State
    outcome: ReaderLanes


def new_sim(unit: Unit, rules: Records, outcome: ReaderLanes, meters: Meters) -> ReaderSim:
    """The replay of a reader before its first lane.

    rules: RULES[nodes, lanes]. meters: those of all readers replayed together.
    """
    state = new_state(unit, meters)
    start = Start(*(read_only(records.copy()) for records in (state.partitions, state.nodes, state.applications)))
    return ReaderSim(Unit(*map(read_only, unit)), read_only(rules), start, state, outcome)


@kernel
def first_above(values: Ints, low: int, high: int, value: int) -> int:
    """Index of the first of values[low:high], which rise, that is above `value`; `high` where none is."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def readable_to(sim: ReaderSim, partition: int, time: int) -> int:
    """The index behind the last batch of the partition that can be read at this time (us)."""
    position, end = sim.state.partitions[partition].position, sim.unit.partitions[partition].end_batch
    return first_above(sim.unit.batches["visible_at"], position, end, time)


@kernel
def bytes_of_batches(sim: ReaderSim, begin: int, end: int) -> int:
    """Bytes of the batches [begin, end)."""
    return sim.unit.batches[end].bytes_before - sim.unit.batches[begin].bytes_before


@kernel
def position_behind(sim: ReaderSim, partition: int, returned: int) -> int:
    """The index behind the last batch that is whole in the next `returned` bytes of the partition."""
    begin, end = sim.state.partitions[partition].position, sim.unit.partitions[partition].end_batch
    reached = sim.unit.batches[begin].bytes_before + returned
    return first_above(sim.unit.batches["bytes_before"], begin, end + 1, reached) - 1
