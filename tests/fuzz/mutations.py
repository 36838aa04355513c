"""Bytes, packets and lines changed at random, some with hostile lengths."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.unit.capture.envelopes import ENVELOPES
from tests.unit.capture.packet_builders import Packet

WORDS = (b"\x15\3\3\0", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x06\x40\0\1", b"\0\x11\0\0")
"""Hostile lengths: a TLS alert, the largest number, -1, 0, just over 100 MiB, the api_key of SaslHandshake."""
HEADERS = 54
"""Bytes of Ethernet, IPv4 and TCP headers."""


def mutated(chance: random.Random, content: bytes) -> bytes:
    """The content with up to twenty changes: of a byte, to one of WORDS, or a piece cut out or inserted."""
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
    """A random piece, shorter than `most`, of something with this length."""
    size = chance.randrange(5, most)
    first = chance.randrange(max(1, length - size))
    return slice(first, first + size)


def sent_in_envelopes(chance: random.Random, packets: Sequence[Packet]) -> list[Packet]:
    """Whole Ethernet packets, each in one of a few envelopes or in none."""
    some = chance.sample([*ENVELOPES.values(), lambda frame: frame], chance.randint(1, 4))
    return [replace(packet, data=chance.choice(some)(packet.data), original=None) for packet in packets]


def rearranged_packets(chance: random.Random, packets: Sequence[Packet]) -> list[Packet]:
    """The packets, of which some are lost, doubled, changed, cut or swapped."""
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
    """A piece of a log. Some lines are changed, doubled, moved to another connection, or replaced by random bytes."""
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
