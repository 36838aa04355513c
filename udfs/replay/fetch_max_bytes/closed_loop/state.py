"""The records of the closed loop of a reader: what there is to be read, the state of a lane, and the lanes' outcomes.

A reader is a unit. Its nodes, one for each broker that it reads from, are replayed together. One array has the
partitions of all nodes; those of a node are next to each other, and its NODE says where. So it is with changes.
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
"""Stands for how long a partition's backlog took, where it has no backlog."""
REOPEN, STOP, THROTTLED, BEYOND_BOUND = -1, -2, -3, -4
"""Stand in the place of a READING_CHANGE's partition: the session is opened anew (REOPEN), the reader stands still for
a while, because of a quota (THROTTLED) or for another reason (STOP), or the broker answers at once for a while, because
the reader asks for records beyond a partition's bound (BEYOND_BOUND)."""
GO_ON, LEAVE = -1, -2
"""Stand in the place of the batch that a READING_CHANGE leads to: the partition is read on from where it was (GO_ON),
or is no longer wanted (LEAVE)."""

READ_PARTITION = int_fields(
    "number",  # among the reader's partitions: its row in the sums
    "partition_max_bytes",  # as captured
    "first_batch",  # its batches are [first_batch, end_batch), in offset order
    "start_batch",  # the batch that is asked for first
    "end_batch",
    "backlog_end",  # behind the last batch that was there when the captured reader first asked for the partition
    "is_known",  # 1: no batch is missing behind end_batch
    "previous",  # the same partition at the broker that it moved from, or NONE
    "dealt",  # modulo the number of readers that share, it says which of them has the partition: its rank among a
    # consumer's partitions, or its `fetcher_hash`
    "batch_shift",  # the index of a batch in this partition, minus the index of the same batch in `previous`
)
"""A partition that a node reads. A node's partitions are in the order in which it first asked for them."""
LOG_BATCH = int_fields(
    "bytes_before",  # the sum over all batches before it
    "records_before",
    "visible_at",  # us: when it can be read; rises within a partition
    "segment_end",  # behind the last batch of its segment, as far as that is known
)
"""A batch of any partition. After the last batch there is one more row, with the sums over all batches."""
READING_CHANGE = int_fields(
    "time",  # us
    "partition",  # or REOPEN, STOP, THROTTLED or BEYOND_BOUND
    "to",  # a batch, GO_ON or LEAVE; for STOP, THROTTLED and BEYOND_BOUND, until when they last (us)
    "until",  # us: when the partition is asked for again, and nothing of it is buffered any more; NEVER if it is not
    "since",  # us: when the partition was last asked for before the change; NEVER if the change does not give it up
    "captured_batch",  # the batch that the captured reader had read to by then, or NONE where that cannot be compared
    "every_us",  # for BEYOND_BOUND, the average time from one fetch to the next (us), else 0
    "bytes",  # for THROTTLED, the record bytes that the node had got by then, else 0
)
"""A change in what a node wants to read. A node's changes are in time order."""
NODE: Kind = np.dtype(
    [
        ("first_partition", np.int64),  # its partitions are [first_partition, end_partition)
        ("end_partition", np.int64),
        ("first_change", np.int64),
        ("end_change", np.int64),
        ("first_turn", np.int64),  # its room in CapturedLane.turns
        ("end_turn", np.int64),
        ("begin", np.int64),  # us: the first captured fetch
        ("horizon", np.int64),  # us: the end of its captured time
        ("request_cap", np.int64),  # its replay in a lane ends after this many requests
        ("gap_us", np.float64),  # from a response to the next fetch, without the work on its records
        ("start_us", np.float64),  # how much longer it takes after the node's first response
        ("poll_us", np.float64),  # how long each poll() takes the application, besides its work on records
        ("answer_us", np.float64),  # from a fetch that finds enough to its response, without the time of its bytes
        ("late_us", np.float64),  # from the end of max_wait to the response
        ("first_taking", np.int64),  # its curve for records: points [first_taking, end_taking) of Unit.taking
        ("end_taking", np.int64),
        ("first_sending", np.int64),  # its curve for record bytes: points of Unit.sending
        ("end_sending", np.int64),
    ]
)
"""A broker that the reader reads from: one connection, and the connections that were opened anew in its place."""
POINT: Kind = np.dtype([("amount", np.int64), ("time", np.float64)])
"""A point of a curve: how long the first `amount` takes (us). A curve begins at (0, 0), and both fields rise."""


class Unit(NamedTuple):
    """What a reader reads: READ_PARTITION[n], LOG_BATCH[batches + 1], READING_CHANGE[n], NODE[nodes], and the curves'
    points, POINT[n] for `taking` and for `sending`.
    """

    partitions: Records
    batches: Records
    changes: Records
    nodes: Records
    taking: Records
    sending: Records


PARTITION_STATE = int_fields(
    "position",  # the batch to be read next
    "taken_at",  # us: when the client has taken all records that it last got of the partition
    "held",  # record bytes that it last got
    "turn_at",  # us: when the application begins with what it last got
    "requested_at",  # us: when the client first asked for it, or NEVER
    "is_assigned",  # 1: the client wants it
    "has_moved",  # 1: it was given up, or sought elsewhere, since the last request
    "is_wanted",  # 1: the next request asks for it
    "catch_up_us",  # how long its backlog took; NO_BACKLOG, or NEVER if the backlog is not read
)
"""The state of a partition in the lane that is replayed."""
NODE_STATE = int_fields(
    "now",  # us: when something happens next, or NEVER
    "in_flight",  # 1: what happens next is the response to its request
    "sent_at",  # us: the last request
    "read_at",  # us: when the broker read the log for it
    "stopped_until",  # us: until when the reader stands still
    "throttled_until",  # us: until when it stands still if it has got
    "throttled_bytes",  # so many record bytes
    "beyond_until",  # us: until when it asks for records beyond a partition's bound
    "beyond_every_us",  # how far apart its fetches are meanwhile, at least
    "changes",  # how many changes have been made
    "opens_session",  # 1: the next response opens the session
    "known",  # how many partitions the client's order has
    "in_session",  # how many partitions the session's order has
    "turn",  # index of the partition with which librdkafka begins
    "requested",  # how many partitions the last request names
    "requests",  # how many requests were sent
    "bytes",  # record bytes that were read
    "throttle_us",  # how long a quota holds the client back after the last response, by the capture's clock, or 0
    "is_over",  # 1: the captured time is over
)
"""The state of a node in the lane that is replayed."""
APPLICATION = int_fields(
    "busy_until",  # us: when it is done with the work on all records so far
    "poll_at",  # us: its last call of poll()
    "poll_room",  # how many more records that call can return
    "records",  # how many records it has taken
    "held",  # record bytes that all nodes have received and it has not taken; set in the first application only
    "held_from",  # us: since when
    "held_until",  # us: until when, at the latest
)
"""An application, which takes records: one for each node. If one takes the records of all nodes, it is the first."""


class Orders(NamedTuple):
    """Orders of partitions, int64[partitions] each. Each node uses the stretch of its own partitions.

    client, session: the client's and the session's order. requested: the partitions of the last request. served: the
    partitions of its response that have records.
    """

    client: Ints
    session: Ints
    requested: Ints
    served: Ints


class State(NamedTuple):
    """What changes while a lane is replayed.

    partitions: PARTITION_STATE[n]. nodes: NODE_STATE[nodes]. applications: APPLICATION[nodes]. answers: ANSWER[n], to
    Orders.requested. marks: int64[partitions], all 0 between two uses. moved: partitions that came from another broker,
    empty between two uses. meters: those of all readers that are replayed together, by the number in RULES. random:
    int64[1].
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
    """The state at the begin of a lane, without the seed of `random`. meters: of all readers replayed together."""
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
    "responses",  # including those for which ReaderLanes.responses had no room
    "given_up",  # rows of ReaderLanes.given_up
    "end_lag",  # bytes not read by the end of the captured time, over all partitions that are asked for
    "throttle_ms",  # the sum of throttle_time_ms over all responses
)
"""The outcome of a lane."""
LANE_RESPONSE = int_fields(
    "node",
    "requested_at",  # us
    "arrived_at",  # us
    "drained_at",  # us: the client has taken all that it does not give up, and can ask for the last partition again
    "size",  # record bytes
    "records",  # in the batches that came whole
    "partitions",  # with records
)
"""A response of a lane. The responses of a node are in time order."""
GIVEN_UP = int_fields(
    "response",  # its index
    "number",  # of the partition
    "since",  # us: when the captured reader last asked for the partition before the change
    "until",  # us: when the captured reader asks for it again, or NEVER
    "turn_at",  # us: when the application begins with these records, and drops them if it has lost the partition
)
"""Records of a partition that came in a response and were dropped: before the client had taken them, it left the
partition or sought another offset."""
PARTITION_BUCKET = int_fields(
    "bytes",  # that came in it
    "lag",  # bytes not yet read at its end
    "wait",  # us: how long the partition had waited at its end
)
"""A bucket, a stretch of a reader's time, for a partition in a lane."""
LINE = int_fields(
    "bucket",  # the bucket that the lane is in: the first that is not over
    "width",  # us: how long each bucket is
)
"""A lane's part of the timeline."""
STAY = int_fields(
    "begin",  # us
    "before",  # us of the reader's time that have gone by at its begin
)
"""A stay: a stretch of time in which the reader is there."""


class Timeline(NamedTuple):
    """A reader's time in buckets. When the buckets are full, each two become one, and buckets are twice as long.

    buckets: PARTITION_BUCKET[lanes, partitions, buckets]. held: int64[lanes, TICKS], the most bytes held at once in
    each tick. lanes: LINE[lanes]. stays: STAY[n].
    """

    buckets: Records
    held: Ints
    lanes: Records
    stays: Records


CAPTURED_NODE = int_fields(
    "turns",  # entries of CapturedLane.turns
    "requests",  # that it sent in the captured time
)
"""What a node does in lane 0."""


class CapturedLane(NamedTuple):
    """What the reader does in lane 0, the lane of the captured settings; it is compared with the capture.

    turns: int64[n], the partitions in the order in which they get records of their backlogs; NODE says where a node's
    are. nodes: CAPTURED_NODE[nodes]. pieces: int64[nodes, PIECES], the bytes that came in each piece of the captured
    time. catch_up_us: int64[partitions], as in PARTITION_STATE. positions: int64[changes], the position of the
    partition at each change.
    """

    turns: Ints
    nodes: Records
    pieces: Ints
    catch_up_us: Ints
    positions: Ints


def new_captured_lane(unit: Unit) -> CapturedLane:
    """An empty CapturedLane with room for what the reader does in lane 0."""
    nodes = len(unit.nodes)
    return CapturedLane(
        turns=np.zeros(int(unit.nodes["end_turn"].max(initial=0)), np.int64),
        nodes=np.zeros(nodes, CAPTURED_NODE),
        pieces=np.zeros((nodes, PIECES), np.int64),
        catch_up_us=np.zeros(len(unit.partitions), np.int64),
        positions=np.zeros(len(unit.changes), np.int64),
    )


class ReaderLanes(NamedTuple):
    """The outcomes of a reader's lanes.

    lanes: LANE_OUTCOME[lanes]. catch_up_us: int64[numbers, lanes], us, NO_BACKLOG or NEVER. given_up_backlogs:
    int64[numbers], 1 if the reader leaves a backlog that lane 0 had not read, for good or to go on behind it.
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
    """The parts of the state that are the same at the begin of each lane: PARTITION_STATE[n], NODE_STATE[nodes],
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
    """The index of the first of values[low:high] that is above `value`; `high` if none is. The values rise."""
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
