"""Bytes, packets and lines as damage, hostility and chance leave them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.unit.capture.envelopes import ENVELOPES
from tests.unit.capture.packet_builders import Packet

WORDS = (b"\x15\3\3\0", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x06\x40\0\1", b"\0\x11\0\0")
"""Lengths that are hostile: a TLS alert, the largest and the least number, none, just over 100 MiB, SASL's key."""
HEADERS = 54
"""Bytes of Ethernet, IPv4 and TCP headers."""


def mutated(chance: random.Random, content: bytes) -> bytes:
    """The content with up to twenty bytes changed, words put in, pieces cut out or put in."""
    changed = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        at, kind = chance.randrange(len(changed) + 1), chance.random()
        if kind < 0.5:
            changed[at : at + 1] = chance.randbytes(1)
        elif kind < 0.65:
            changed[at : at + 4] = chance.choice(WORDS)
        elif kind < 0.8:
            del changed[at : at + chance.randrange(1, 40)]
        else:
            changed[at:at] = chance.randbytes(chance.randrange(1, 40))
    return bytes(changed)


def piece(chance: random.Random, length: int, most: int) -> slice:
    """A random piece of something so long."""
    size = chance.randrange(5, most)
    first = chance.randrange(max(1, length - size))
    return slice(first, first + size)


def sent_in_envelopes(chance: random.Random, packets: Sequence[Packet]) -> list[Packet]:
    """Whole packets of Ethernet, each in one of a few envelopes, or plain."""
    some = chance.sample([*ENVELOPES.values(), lambda frame: frame], chance.randint(1, 4))
    return [replace(packet, data=chance.choice(some)(packet.data), original=None) for packet in packets]


def rearranged_packets(chance: random.Random, packets: Sequence[Packet]) -> list[Packet]:
    """Some packets with some of them lost, doubled, changed, cut and swapped."""
    out: list[Packet] = []
    for packet in packets:
        kind, data = chance.random(), packet.data
        if kind < 0.03:
            continue
        if kind < 0.06:
            out.append(packet)
        elif kind < 0.15:
            whole = chance.random() < 0.15
            data = mutated(chance, data) if whole else data[:HEADERS] + mutated(chance, data[HEADERS:])
        elif kind < 0.2:
            data = data[: chance.randrange(min(14, len(data)), len(data) + 1)]
        out.append(replace(packet, data=data, original=max(len(data), packet.original or len(packet.data))))
        if kind > 0.97 and len(out) > 1:
            out[-1], out[-2] = out[-2], out[-1]
    return out


def rearranged_lines(chance: random.Random, lines: Sequence[bytes]) -> list[bytes]:
    """A piece of a log with lines changed, doubled, of another connection, or no lines at all."""
    out = []
    for line in lines[piece(chance, len(lines), 60)]:
        kind = chance.random()
        if kind < 0.2:
            out.append(mutated(chance, line))
        elif kind < 0.25:
            out.append(line * 2)
        elif kind < 0.28:
            out.append(line.replace(b'"connection":"', b'"connection":"1'))
        elif kind < 0.3:
            out.append(chance.randbytes(50) + b"\n")
        else:
            out.append(line)
    return out
