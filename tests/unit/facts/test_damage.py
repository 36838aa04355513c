"""Every kind of damage has the outcome that docs/damage.md names, and costs no more than it says."""

from __future__ import annotations

import gzip
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.wire.fetch import FETCH_REQUEST, FETCH_RESPONSE
from schemas.wire.metadata import METADATA_RESPONSE
from tests.unit.capture.conversations import OPENING, Segment, answers, asks, batch, frame, packets, request, response
from tests.unit.capture.packet_builders import (
    ACK,
    FIN,
    enhanced,
    ethernet,
    index,
    interface,
    ipv4,
    packets_of,
    pcap,
    section,
    store,
    tcp,
)
from tests.unit.facts.brokers import answered, asked, tables_of
from tests.unit.wire.test_message_sets import wrapper
from tests.unit.wire.test_record_batches import record_batch
from udfs.capture import compression
from udfs.capture.segments import REORDER_BYTES

Tables = dict[str, list[dict[str, Any]]]
PAGE = Path("docs/damage.md")
LONG = request(1, bytes(3000))
METADATA = 3
COUNTED = ("missing_bytes", "repeated_bytes", "late_bytes", "sasl_token_bytes", "began_before_capture", "one_sided")


@dataclass(frozen=True)
class Damage:
    """Segments after a connection's opening. whole: correlation ids of exchanges that the damage must not affect."""

    segments: tuple[Segment, ...]
    whole: set[int]
    is_opened: bool = True


def turn(*correlation_ids: int) -> tuple[Segment, ...]:
    """Requests, each with its response."""
    return tuple(part for i in correlation_ids for part in (asks(request(i)), answers(response(i))))


def metadata(version: int, body: bytes) -> tuple[Segment, ...]:
    """A Metadata request whose body is made by hand, and a response."""
    return asks(request(1, body, key=METADATA, version=version)), answers(answered(METADATA_RESPONSE, version, 1))


def bomb() -> bytes:
    """A batch whose few compressed bytes would expand to many."""
    return record_batch(count=1, attributes=4, records=b"\x28\xb5\x2f\xfd\xa0\xff\xff\xff\xff\x02\0\0" * 4)


def fetched(records: bytes) -> tuple[Segment, ...]:
    partition = {"partition_index": 0, "records": records}
    response_topics = [{"topic": b"t", "partitions": [partition]}]
    asked_topics = [{"topic": b"t", "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}]
    return (
        asks(asked(FETCH_REQUEST, 11, 1, topics=asked_topics)),
        answers(answered(FETCH_RESPONSE, 11, 1, responses=response_topics)),
    )


def reordered() -> tuple[Segment, ...]:
    first, second = LONG[:1000], LONG[1000:]
    return asks(second, at=1000), asks(first, at=0), answers(response(1)), *turn(2)


def late() -> tuple[Segment, ...]:
    """A segment of the first request comes when the stream is far ahead."""
    large = request(2, bytes(REORDER_BYTES + 8192))
    cuts = range(0, len(large), 60_000)
    after = tuple(asks(large[at : at + 60_000]) for at in cuts)
    return (
        asks(LONG[:1000]), asks(LONG[1000:2000], is_lost=True), asks(LONG[2000:]), *after,
        asks(LONG[1000:2000], at=1000), answers(response(1) + response(2)), *turn(3),
    )  # fmt: skip


STREAMS: dict[str, Damage] = {
    "a segment lost inside a frame": Damage(
        (asks(LONG[:1000]), asks(LONG[1000:2000], is_lost=True), asks(LONG[2000:]), answers(response(1)), *turn(2)), {2}
    ),
    "a segment lost with a frame's size in it": Damage(
        (*turn(1), asks(request(2) + request(3)[:6], is_lost=True), asks(request(3)[6:]), asks(request(4)), *turn(5)),
        {1, 5},
    ),
    "a segment twice": Damage((asks(request(1)), asks(request(1), at=0), answers(response(1)), *turn(2)), {1, 2}),
    "a retransmission with other bytes": Damage(
        (asks(request(1)), asks(request(7), at=0), answers(response(1)), *turn(2)), {1, 2}
    ),
    "segments out of order": Damage(reordered(), {1, 2}),
    "a segment that comes 4 MiB too late": Damage(late(), {2, 3}),
    "packets cut by the snaplen": Damage((asks(LONG, captured=96), answers(response(1)), *turn(2)), {2}),
    "a capture that begins in mid-stream": Damage(
        (asks(LONG[900:]), answers(response(0)), answers(response(1)), *turn(2, 3, 4)), {2, 3, 4}, is_opened=False
    ),
    "a capture that ends within a frame": Damage((*turn(1, 2), asks(request(3, bytes(900))[:500])), {1, 2}),
    "a connection that a side ends within its frame": Damage(
        (*turn(1), asks(request(2)), answers(response(2, bytes(900))[:500]), answers(b"", flags=FIN | ACK)), {1}
    ),
    "a segment lost before a side ends the connection": Damage(
        (*turn(1), asks(request(2)), answers(response(2), is_lost=True), answers(b"", flags=FIN | ACK)), {1}
    ),
    "a capture of requests alone": Damage((asks(request(1)), asks(request(2))), set()),
    "a capture of responses alone": Damage((answers(response(1)), answers(response(2))), set()),
    "a frame of more than 100 MiB": Damage((*turn(1), asks(struct.pack(">i", 104_857_601)), *turn(2)), {1, 2}),
    "the length bomb 0x15030300 between frames": Damage((*turn(1), asks(b"\x15\3\3\0"), *turn(2)), {1, 2}),
    "the length bomb 0x15030300 at the beginning": Damage((asks(b"\x15\3\3\0\2\2\x28"), answers(b"\x15\3\3\0")), set()),
    "garbage between frames": Damage((*turn(1), asks(b"\xff" * 99), *turn(2)), {1, 2}),
    "an array of more elements than bytes remain": Damage(
        (*metadata(1, b"\x7f\xff\xff\xff"), *turn(2)), {2}
    ),
    "a varint without an end": Damage((*metadata(9, b"\0" + b"\xff" * 6), *turn(2)), {2}),
    "a string longer than its frame": Damage((*metadata(1, b"\0\0\0\1\x7f\xff"), *turn(2)), {2}),
    "a record batch that does not match its checksum": Damage(
        fetched(record_batch(count=1, records=b"good")[:-1] + b"?"), {1}
    ),
    "a record batch that expands without measure": Damage(fetched(bomb()), {1}),
    "a message set that expands without measure": Damage(fetched(wrapper(1, 2, bytes(80 << 20))), {1}),
    "SASL tokens from before KIP-152": Damage(
        (
            asks(request(1, key=17)), answers(response(1)), asks(frame(b"\0app\0password")), answers(frame(b"")),
            *turn(2),
        ),
        {1, 2},
    ),
}  # fmt: skip

GOOD = pcap(packets_of(b"one", b"two"))
INCOMPRESSIBLE = ethernet(ipv4(tcp(np.random.default_rng(7).bytes(15_000))))
FILES: dict[str, bytes] = {
    "a file cut within a packet": GOOD[:-3],
    "garbage between the packets of a file": GOOD + b"garbage" * 9 + GOOD[24:],
    "a pcapng block that is none": section() + interface() + enhanced(ethernet()) + b"\xff" * 40,
    "a compressed file cut short": gzip.compress(pcap([ethernet()] * 40), 0)[:-900],
    "a file that expands without measure": gzip.compress(pcap([INCOMPRESSIBLE, *[ethernet()] * 40_000])),
    "a packet with headers that contradict themselves": pcap([*packets_of(b"one"), ethernet(ipv4(words=3))]),
}


def of_streams(damage: Damage) -> Tables:
    opening = OPENING if damage.is_opened else ()
    return tables_of([batch(packets([*opening, *damage.segments]))])


def outcomes(tables: Tables) -> set[str]:
    """All columns and words by which the tables report damage."""
    found = {f"`quarantine.reason` {row['reason']}" for row in tables["quarantine"]}
    for row in tables["exchanges"]:
        if row["status"] in ("unanswered", "orphan_response"):
            found.add(f"`exchanges.status` {row['status']}")
        if row["unsent_bytes"]:
            found.add("`exchanges.unsent_bytes`")
        if row["decode_fault"]:
            found.add(f"`exchanges.decode_fault` {row['decode_fault']}")
    for row in tables["connections"]:
        found |= {f"`connections.{name}`" for name in COUNTED if row[name]}
        if row["protocol"] != "kafka":
            found.add(f"`connections.protocol` {row['protocol']}")
    if any(row["crc_valid"] is False for row in tables["record_batches"]):
        found.add("`record_batches.crc_valid`")
    unread = {row["records_fault"] for row in tables["record_batches"]} - {None}
    found |= {f"`record_batches.records_fault` {fault}" for fault in unread}
    return found


def on_the_page(repository: Path) -> dict[str, set[str]]:
    """The outcomes that docs/damage.md names, by damage."""
    lines = [line.split("|")[1:-1] for line in (repository / PAGE).read_text().splitlines() if line.startswith("| ")]
    return {
        damage.strip(): {name.strip() for name in re.split(r",(?= `)", named) if name.strip()}
        for damage, named, _ in lines[1:]
    }


def test_the_page_lists_all_kinds_of_damage_and_no_others(repository: Path) -> None:
    assert list(on_the_page(repository)) == [*STREAMS, *FILES]


@pytest.mark.parametrize("name", STREAMS)
def test_damage_to_a_stream_is_reported_as_the_page_says(name: str, repository: Path) -> None:
    tables = of_streams(STREAMS[name])
    assert outcomes(tables) == on_the_page(repository)[name]
    whole = {row["correlation_id"] for row in tables["exchanges"] if is_whole(row)}
    assert STREAMS[name].whole <= whole
    for row in tables["connections"]:
        parts = ("framed_bytes", "unframed_bytes", "repeated_bytes", "late_bytes")
        assert sum(row[part] for part in parts) == row["payload_bytes"]


def is_whole(row: dict[str, Any]) -> bool:
    return (
        row["status"] == "answered" and row["missing_bytes"] + row["unsent_bytes"] == 0 and row["decode_fault"] is None
    )


@pytest.mark.parametrize("name", FILES)
def test_damage_to_a_file_is_reported_as_the_page_says(
    name: str, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "without measure" in name:
        monkeypatch.setattr(compression, "LEAST_LIMIT", 1 << 20)
        monkeypatch.setattr(compression, "MOST_EXPANSION", 10)
    found = index(store(tmp_path, FILES[name]))
    named = {f"`captures.faults` {fault.reason}" for fault in found.faults}
    if sum(fault.bytes_not_read for fault in found.faults):
        named.add("`captures.unread_bytes`")
    if found.counts.malformed:
        named.add("`captures.malformed_packets`")
    assert named == on_the_page(repository)[name]
    assert found.counts.tcp > 0
