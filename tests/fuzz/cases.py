"""Cases of `python -m tests.fuzz`, by kind: each makes random input and checks what decoding does with it."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa

from tests.fuzz.checks import check_file, check_log, check_packets
from tests.fuzz.mutations import mutated, piece, rearranged_lines, rearranged_packets, sent_in_envelopes
from tests.unit.capture.capture_files import records_of, sample_capture
from tests.unit.capture.logged import heartbeat
from tests.unit.capture.packet_builders import Packet, pcap
from tests.unit.capture.test_conversation_fuzz import hostile_packets
from tests.unit.wire.test_message_sets import entry, inner, wrapper
from udfs.wire.message_sets import unwrap_batches
from udfs.wire.record_batches import walk_batches
from udfs.wire.records import Budget

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared" / "captures"
IN_REPOSITORY = ("mixed", "starve")
OF_SHARE_GROUPS = "share_groups/few_sessions"
EXAMPLES = 40
"""Conversations of packets in a case: hypothesis makes several faster than one at a time."""


@cache
def recorded(path: Path | str) -> tuple[int, list[Packet]]:
    """(link type, packets) of a capture. path: a name if it is one of the repository's captures."""
    return sample_capture(REPOSITORY, path) if isinstance(path, str) else records_of(path.read_bytes())


@cache
def logged(path: Path | None) -> list[bytes]:
    """The lines of a request log; for None, lines that are made up."""
    if path is None:
        return [heartbeat(number).encode() for number in range(100)]
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def packets(chance: random.Random, folder: Path) -> int:
    """Any payloads, flags and sequence numbers."""
    rows = 0

    def check(drawn: list[dict[str, Any]]) -> None:
        nonlocal rows
        rows += check_packets(drawn)

    many = hypothesis.settings(derandomize=False, database=None, max_examples=EXAMPLES, deadline=None,
                               suppress_health_check=list(hypothesis.HealthCheck))  # fmt: skip
    hypothesis.seed(chance.getrandbits(64))(many(hypothesis.given(hostile_packets())(check)))()
    return rows


def files(chance: random.Random, folder: Path) -> int:
    """A piece of a capture with packets lost, doubled, cut, swapped and changed, in a file that may be damaged, too.

    Some of the captures have their packets in envelopes.
    """
    link_type, whole = recorded(chance.choice([*(sorted(SHARED.glob("*.pcap")) or IN_REPOSITORY), OF_SHARE_GROUPS]))
    some: Sequence[Packet] = whole[piece(chance, len(whole), 400)]
    if chance.random() < 0.4:
        some = sent_in_envelopes(chance, some)
    content = pcap(rearranged_packets(chance, some), link_type=link_type)
    if chance.random() < 0.3:
        content = content[:24] + mutated(chance, content[24:])
    if chance.random() < 0.2:
        content = gzip.compress(content, 1)
        content = chance.choice([content, content[: chance.randrange(20, len(content))], mutated(chance, content)])
    return check_file(chance, folder, content)


def logs(chance: random.Random, folder: Path) -> int:
    """A piece of a request log with lines changed and doubled."""
    lines = logged(chance.choice(sorted(SHARED.glob("*.requests-*.log.gz")) or [None]))
    return check_log(chance, folder, b"".join(rearranged_lines(chance, lines)))


def sets(chance: random.Random, folder: Path) -> int:
    """Message sets, which are changed at random before and after they are compressed."""
    magic, codec = chance.randint(0, 1), chance.randint(0, 7)
    content = inner(magic, *range(chance.randint(0, 9)))
    if chance.random() < 0.7:
        content = mutated(chance, content)
    value = pa.compress(content, codec=chance.choice(["gzip", "snappy", "lz4", "zstd"]), asbytes=True)
    if chance.random() < 0.5:
        value = mutated(chance, value)
    written = chance.choice([entry(magic, 9, value, codec), wrapper(magic, 9, content), inner(magic, 1, 2)]) * 2
    if chance.random() < 0.5:
        written = mutated(chance, written)
    arena = np.frombuffer(written, np.uint8)
    found = unwrap_batches(
        arena, walk_batches(arena, np.zeros(1, np.int64), np.array([len(arena)])), lambda _: Budget()
    )
    is_wrapper = (found.batches.magic < 2) & (found.batches.codec > 0) & (found.batches.fault == 0)
    assert found.batches.available.sum() == len(arena)
    assert ((found.fault >= 0) == (found.uncompressed < 0))[is_wrapper].all()
    assert ((found.fault >= 0) == (found.batches.record_count < 0))[is_wrapper].all()
    return len(found.fault)


KINDS: Mapping[str, Callable[[random.Random, Path], int]] = {
    "packets": packets, "files": files, "logs": logs, "sets": sets,
}  # fmt: skip
