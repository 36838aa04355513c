"""Which packets are of one connection, and where it ends: what each side sent, and where the endpoints open another."""

from __future__ import annotations

from udfs.capture.conversation import KAFKA
from udfs.capture.segments import BEHIND_ALL, JUMP_BYTES, UNKNOWN, Packets, signed_distance
from udfs.capture.tcp_headers import ACK, FIN, RST, SYN
from udfs.columns.arrays import Record, Records
from udfs.kernels.kernel import kernel

# Flags beyond those of a TCP header: the row is a frame, a request or a response, and `sequence` names its connection.
ASKED, ANSWERED = 0x1000, 0x2000
IS_FRAME = ASKED | ANSWERED
# A SYN that comes this far before the lowest sequence number seen is taken for the one that opened the connection.
FIRST_FLIGHT = 65_536


@kernel
def new_connection(connections: Records, directions: Records, index: int, run: int, requests: int) -> None:
    """Set the state of a connection of which nothing is known yet; requests: how many others had before."""
    conn = connections[index]
    repeats = index > 0 and connections[index - 1].run == run
    conn.incarnation = connections[index - 1].incarnation + 1 if repeats else 0
    conn.index, conn.run, conn.syn_sequence, conn.client = index, run, UNKNOWN, UNKNOWN
    conn.name = conn.lowest_0 = conn.lowest_1 = UNKNOWN
    conn.first_open = requests
    for side in (2 * index, 2 * index + 1):
        directions[side].lost_from = UNKNOWN
        directions[side].fin = directions[side].rst = UNKNOWN
        directions[side].outlier = UNKNOWN
        directions[side].split = UNKNOWN
        directions[side].point = BEHIND_ALL


@kernel
def note_sequence(conn: Record, side: int, sequence: int) -> None:
    """Keep the lowest sequence number that a side was seen to send."""
    lowest = conn.lowest_0 if side == 0 else conn.lowest_1
    if lowest != UNKNOWN and signed_distance(sequence, lowest) >= 0:
        return
    if side == 0:
        conn.lowest_0 = sequence
    else:
        conn.lowest_1 = sequence


@kernel
def opened(packets: Packets, conn: Record, row: int) -> bool:
    """Whether the client's SYN in `row` opened the connection whose packets already stand before it.

    That is so where one capture point lost the SYN and another, whose packets are put a little later, has it. Then all
    that the client was seen to send follows the SYN's sequence number, or the client was seen to send nothing and its
    SYN was answered. When the same endpoints connect again, the new number is ahead of what was sent (RFC 6528).
    """
    lowest = conn.lowest_0 if packets.direction[row] == 0 else conn.lowest_1
    if conn.syn_sequence != UNKNOWN or lowest == UNKNOWN:
        return bool(conn.syn_sequence == UNKNOWN and conn.is_accepted)
    return 0 < signed_distance(lowest, packets.sequence[row]) <= FIRST_FLIGHT


@kernel
def introduce(packets: Packets, conn: Record, row: int) -> None:
    """Note what a connection's first frame tells: its name, that it is Kafka's, and who is the client."""
    is_request = packets.flags[row] & ASKED != 0
    conn.name, conn.protocol = packets.sequence[row], KAFKA
    conn.client = packets.direction[row] if is_request else 1 - packets.direction[row]


@kernel
def connection_end(packets: Packets, conn: Record, first: int) -> int:
    """Index behind the last packet, from `first` on, of one connection.

    It ends with its run of packets or where the same endpoints open another one: a client's SYN with another sequence
    number. Frames of another name are of another one, and so are frames behind packets and packets behind frames, for
    nothing tells their order. Keeps count of packets, times and the SYN in `conn`.
    """
    row = first
    while row < len(packets.run) and packets.run[row] == conn.run:
        is_frame, is_carried = packets.flags[row] & IS_FRAME != 0, packets.offset[row] != UNKNOWN
        if conn.packets > 0 and not is_carried and conn.name != (packets.sequence[row] if is_frame else UNKNOWN):
            break
        if is_frame and conn.packets == 0:
            introduce(packets, conn, row)
        opens = packets.flags[row] & SYN != 0 and packets.flags[row] & ACK == 0
        if opens and conn.packets > 0 and conn.syn_sequence != packets.sequence[row] and not opened(packets, conn, row):
            break
        if opens and conn.packets == 0:
            conn.client = packets.direction[row]
        if opens and conn.syn_sequence == UNKNOWN:
            conn.syn_sequence = packets.sequence[row]
        if not is_carried:
            conn.is_accepted |= packets.flags[row] & (SYN | ACK) == SYN | ACK
            note_sequence(conn, packets.direction[row], packets.sequence[row])
            conn.first_time = packets.time[row] if conn.packets == 0 else min(conn.first_time, packets.time[row])
            conn.last_time = max(conn.last_time, packets.time[row])
            conn.packets += 1
        row += 1
    return row


@kernel
def farther(sequence: int, known: int) -> int:
    """Of two sequence numbers, the second of which may be UNKNOWN, the one that is ahead."""
    return sequence if known == UNKNOWN or signed_distance(sequence, known) > 0 else known


@kernel
def note_end(direction: Record, flags: int, sequence: int, wire_bytes: int) -> None:
    """Keep where a side's packet says that its stream ends; sequence: of the packet's first payload byte."""
    if flags & FIN != 0:
        direction.fin = farther((sequence + wire_bytes) & 0xFFFFFFFF, direction.fin)
    if flags & RST != 0:
        direction.rst = farther(sequence, direction.rst)


@kernel
def ahead_of_stream(direction: Record, sequence: int) -> int:
    """How far a sequence number is behind the last byte seen of a side, or UNKNOWN where that is too far to be its."""
    if sequence == UNKNOWN or direction.is_started == 0:
        return UNKNOWN
    ahead: int = direction.offset + signed_distance(sequence, direction.sequence) - direction.highest
    return ahead if abs(ahead) <= JUMP_BYTES else UNKNOWN


@kernel
def sent_bytes(direction: Record) -> int:
    """Stream offset behind all that a side sent before it ended its stream, or BEHIND_ALL where no packet tells.

    Nothing lies behind a FIN (RFC 9293, 3.6): one before bytes that were captured is not this stream's. An RST may
    bear the number that the other side had acknowledged (3.5.2), so that one before them ends the stream as well.
    """
    fin, rst = ahead_of_stream(direction, direction.fin), ahead_of_stream(direction, direction.rst)
    if fin >= 0:
        return int(direction.highest + fin)
    return BEHIND_ALL if rst == UNKNOWN else int(direction.highest + max(rst, 0))
