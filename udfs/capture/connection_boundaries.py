"""Where one connection of two endpoints ends and their next one begins, and how much each side had sent until then."""

from __future__ import annotations

from udfs.capture.conversation import KAFKA
from udfs.capture.segments import BEHIND_ALL, JUMP_BYTES, Packets, signed_distance
from udfs.capture.tcp_headers import ACK, FIN, RST, SYN
from udfs.columns.arrays import Record, Records
from udfs.columns.sentinels import UNKNOWN
from udfs.kernels.kernel import kernel

# Flags beyond those of a TCP header mark rows that are frames of a dump; `sequence` then names their connection.
IS_REQUEST, IS_RESPONSE = 0x1000, 0x2000
IS_FRAME = IS_REQUEST | IS_RESPONSE
# A SYN whose number is at most this far below the lowest captured one is taken for the SYN that opened the connection.
FIRST_FLIGHT = 65_536


@kernel
def new_connection(connections: Records, directions: Records, index: int, run: int, requests: int) -> None:
    """Set the state of a connection whose packets have not been read yet.

    connections: FOLLOWED_CONNECTION[n]. directions: DIRECTION[2 * n], two for each connection. run: its run of packets.
    requests: how many requests the earlier connections have.
    """
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
    """Keep the lowest sequence number that the capture has of a side."""
    lowest = conn.lowest_0 if side == 0 else conn.lowest_1
    if lowest != UNKNOWN and signed_distance(sequence, lowest) >= 0:
        return
    if side == 0:
        conn.lowest_0 = sequence
    else:
        conn.lowest_1 = sequence


@kernel
def is_opening_syn(packets: Packets, conn: Record, row: int) -> bool:
    """Whether the client's SYN in `row` opened a connection of which other packets were read before it.

    This happens if one capture point lost the SYN and another has it: packets of the other point are ordered a little
    later. Then everything that the capture has of the client follows the SYN's sequence number, or the capture has
    nothing of the client, and the SYN was answered. If the same endpoints connect again, the new sequence number is
    ahead of what was sent (RFC 6528).
    """
    lowest = conn.lowest_0 if packets.direction[row] == 0 else conn.lowest_1
    if conn.syn_sequence != UNKNOWN or lowest == UNKNOWN:
        return bool(conn.syn_sequence == UNKNOWN and conn.is_accepted)
    return 0 < signed_distance(lowest, packets.sequence[row]) <= FIRST_FLIGHT


@kernel
def note_first_frame(packets: Packets, conn: Record, row: int) -> None:
    """Take the connection's name, its protocol, and which side is the client from its first frame in a dump."""
    is_request = packets.flags[row] & IS_REQUEST != 0
    conn.name, conn.protocol = packets.sequence[row], KAFKA
    conn.client = packets.direction[row] if is_request else 1 - packets.direction[row]


@kernel
def connection_end(packets: Packets, conn: Record, first: int) -> int:
    """Index after the last of one connection's packets, which begin at `first`.

    A connection ends with its run of packets, or where the same endpoints open another: a client's SYN with another
    sequence number. Frames with another name belong to another connection. So do frames that follow packets and packets
    that follow frames, since their order cannot be known. Counts packets, times and the SYN in `conn`.
    """
    row = first
    while row < len(packets.run) and packets.run[row] == conn.run:
        is_frame, is_carried = packets.flags[row] & IS_FRAME != 0, packets.offset[row] != UNKNOWN
        if conn.packets > 0 and not is_carried and conn.name != (packets.sequence[row] if is_frame else UNKNOWN):
            break
        if is_frame and conn.packets == 0:
            note_first_frame(packets, conn, row)
        opens = packets.flags[row] & SYN != 0 and packets.flags[row] & ACK == 0
        is_other_syn = opens and conn.packets > 0 and conn.syn_sequence != packets.sequence[row]
        if is_other_syn and not is_opening_syn(packets, conn, row):
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
def farther_sequence(sequence: int, known: int) -> int:
    """The later of two sequence numbers; `known` may be UNKNOWN."""
    return sequence if known == UNKNOWN or signed_distance(sequence, known) > 0 else known


@kernel
def note_stream_end(direction: Record, flags: int, sequence: int, wire_bytes: int) -> None:
    """Note where the FIN or RST of a packet ends its side's stream; sequence: of the packet's first payload byte."""
    if flags & FIN != 0:
        direction.fin = farther_sequence((sequence + wire_bytes) & 0xFFFFFFFF, direction.fin)
    if flags & RST != 0:
        direction.rst = farther_sequence(sequence, direction.rst)


@kernel
def ahead_of_stream(direction: Record, sequence: int) -> int:
    """Distance from the last captured byte of a side to a sequence number; UNKNOWN if it is too far for this stream."""
    if sequence == UNKNOWN or direction.is_started == 0:
        return UNKNOWN
    ahead: int = direction.offset + signed_distance(sequence, direction.sequence) - direction.highest
    return ahead if abs(ahead) <= JUMP_BYTES else UNKNOWN


@kernel
def end_of_sent(direction: Record, other: Record) -> int:
    """Stream offset of the end of what a side sent; BEHIND_ALL if no packet shows the end. other: the other side.

    Nothing follows a FIN (RFC 9293, 3.6): a FIN before captured bytes belongs to another stream. An RST may have the
    number that the other side had acknowledged (3.5.2), so an RST before captured bytes ends this stream, too. A side
    sends nothing more when it has received an RST (3.5.3); the capture is taken to have what it sent before that.
    """
    fin, rst = ahead_of_stream(direction, direction.fin), ahead_of_stream(direction, direction.rst)
    if fin >= 0:
        return int(direction.highest + fin)
    if rst != UNKNOWN:
        return int(direction.highest + max(rst, 0))
    return BEHIND_ALL if ahead_of_stream(other, other.rst) == UNKNOWN else int(direction.highest)
