"""The same exchanges come out however a capture is cut into batches, and however TCP carried the bytes."""

from __future__ import annotations

import itertools
import random
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sort_keys import SortKeys
from tests.unit.capture.conversations import (
    ANSWERS,
    ASKS,
    COUNTS,
    OPENING,
    PRODUCE,
    Connection,
    Conversation,
    Segment,
    accounted,
    answers,
    asks,
    batch,
    cut,
    frame,
    packets,
    request,
    response,
    understand,
)
from tests.unit.capture.packet_builders import FIN, RST, SYN
from udfs.capture.conversation import PROBE_BYTES
from udfs.capture.file_index import index_capture
from udfs.capture.packets import read_packets
from udfs.capture.segments import REORDER_BYTES

PROPERTY = settings(derandomize=True, max_examples=150, deadline=None)
CUTS = [(1, 1), (7, 1), (10_000, 1 << 24), (10_000, 300)]
PACKETS_OF_REAL_CAPTURES = 700


@st.composite
def talks(draw: st.DrawFn) -> list[Segment]:
    """A client sends requests in segments of any size, and a broker answers those that it has received in full."""
    sizes = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=8))
    segments: list[Segment] = []
    for i, (asked, answered) in enumerate(sizes):
        segments += in_segments(draw, ASKS, request(100 + i, bytes([i]) * asked))
        segments += in_segments(draw, ANSWERS, response(100 + i, bytes([i]) * answered))
    return segments


def in_segments(draw: st.DrawFn, side: int, payload: bytes) -> list[Segment]:
    inner = sorted(draw(st.sets(st.integers(1, len(payload) - 1), max_size=3)))
    bounds = [0, *inner, len(payload)]
    return [Segment(side, payload[a:b]) for a, b in itertools.pairwise(bounds)]


def placed(segments: list[Segment]) -> list[Segment]:
    """The segments with explicit places in the stream, so that their order can be changed."""
    sent, out = [0, 0], []
    for segment in segments:
        out.append(Segment(segment.side, segment.payload, segment.flags, sent[segment.side]))
        sent[segment.side] += len(segment.payload)
    return out


def opened(segments: list[Segment]) -> Conversation:
    return understand([batch(packets([*OPENING, *segments]))])


@PROPERTY
@given(talks())
def test_any_segmentation_gives_each_request_its_response(segments: list[Segment]) -> None:
    found = opened(segments)
    sent = [b"".join(s.payload for s in segments if s.side == side) for side in (ASKS, ANSWERS)]
    framed = [b"".join(frame(pair[side] or b"") for pair in found.pairs()) for side in (0, 1)]
    assert framed == sent
    assert {exchange.status for exchange in found.exchanges} == {"answered"}


@PROPERTY
@given(talks(), st.data())
def test_merged_and_split_segments_give_the_same_exchanges(segments: list[Segment], data: st.DataObject) -> None:
    merged: list[Segment] = []
    for segment in segments:
        if merged and merged[-1].side == segment.side and data.draw(st.booleans()):
            merged[-1] = Segment(segment.side, merged[-1].payload + segment.payload)
        else:
            merged.append(segment)
    assert opened(merged).pairs() == opened(segments).pairs()


@PROPERTY
@given(talks(), st.data())
def test_duplicated_segments_change_only_the_count_of_repeated_bytes(
    segments: list[Segment], data: st.DataObject
) -> None:
    doubled: list[Segment] = []
    for segment in placed(segments):
        doubled.append(segment)
        if data.draw(st.booleans()):
            doubled.append(data.draw(st.sampled_from(doubled)))
    found, plain = opened(doubled), opened(segments)
    assert found.pairs() == plain.pairs()
    more = sum(len(segment.payload) for segment in doubled) - sum(len(segment.payload) for segment in segments)
    assert (found.counts["repeated_bytes"], found.counts["framed_bytes"]) == (more, plain.counts["framed_bytes"])


@PROPERTY
@given(talks(), st.randoms(use_true_random=False))
def test_reordered_segments_of_a_side_give_the_same_exchanges(segments: list[Segment], random_: random.Random) -> None:
    """Packets of one direction overtake each other. A request still comes before its response."""
    moved: list[Segment] = []
    burst: list[Segment] = []
    for segment in [*placed(segments), None]:
        if segment is None or (burst and burst[-1].side != segment.side):
            random_.shuffle(burst)
            moved += burst
            burst = []
        if segment is not None:
            burst.append(segment)
    assert opened(moved).pairs() == opened(segments).pairs()


@st.composite
def damaged(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation's packets from any place on, some lost, doubled, overlapping, late or cut. Another may follow."""
    segments = placed(draw(talks()))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(segments) - 1))
        one, kind = segments[at], draw(st.sampled_from(["drop", "double", "swap", "cut", "overlap", "garbage", "end"]))
        if kind == "drop":
            segments[at : at + 1] = [Segment(one.side, one.payload, one.flags, one.at, is_lost=True)]
        elif kind == "double":
            segments.insert(draw(st.integers(at, len(segments))), one)
        elif kind == "swap":
            other = draw(st.integers(0, len(segments) - 1))
            segments[at], segments[other] = segments[other], segments[at]
        elif kind == "cut":
            segments[at] = Segment(
                one.side, one.payload, one.flags, one.at, captured=draw(st.integers(0, len(one.payload)))
            )
        elif kind == "overlap" and at + 1 < len(segments) and segments[at + 1].side == one.side:
            both = Segment(one.side, one.payload + segments[at + 1].payload, one.flags, one.at)
            segments.insert(draw(st.integers(at + 1, len(segments))), both)
        elif kind == "end":
            how = draw(st.sampled_from([FIN, RST]))
            segments.insert(draw(st.integers(0, len(segments))), Segment(one.side, b"", how, one.at))
        elif kind == "garbage":
            segments[at] = Segment(
                one.side, draw(st.binary(min_size=1, max_size=len(one.payload) or 1)), one.flags, one.at
            )
    opening = list(OPENING) if draw(st.booleans()) else []
    rows = packets(opening + segments[draw(st.integers(0, 3)) :])
    if draw(st.booleans()):
        rows += packets(
            [*OPENING, asks(request(1)), answers(response(1))], Connection(first=(77, 88)), first_packet=1000
        )
    return rows


@PROPERTY
@given(damaged())
def test_a_damaged_conversation_gives_the_same_however_it_is_cut(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    whole = understand([batch(rows)])
    assert accounted(whole)
    for most in (1, 7):
        assert understand(cut(batch(rows), most), rows=most, payload_bytes=1) == whole


UPLOAD = request(1, bytes(3000)) + request(2, bytes(REORDER_BYTES))
LONG_ID = b"x" * 2000


def produced_to(topic: bytes) -> bytes:
    """A Produce request, version 7, to one topic."""
    return request(0, struct.pack(">hhiih", -1, 1, 30_000, 1, len(topic)) + topic, key=PRODUCE, version=7)


ONCE_CUT_DIFFERENTLY = {
    # The side that was recognised was the one whose first request came whole, not the one that asked first.
    "a_request_that_is_cut_came_first": [
        Segment(ANSWERS, request(0, b"12")[:-1]),
        Segment(ASKS, request(0, b"1")),
    ],
    # The end of a connection in the same chunk turned a gap into the end of the capture.
    "a_size_that_a_gap_cuts": [
        Segment(ASKS, request(0) + b"\0\0"),
        Segment(ASKS, b"12", at=2 * REORDER_BYTES),
        Segment(ASKS, b"34", at=4 * REORDER_BYTES),
    ],
    # A segment that filled a gap reached beyond what may still be filled.
    "a_late_segment_that_overlaps_what_lies_behind_its_gap": [
        Segment(ASKS, UPLOAD[:1000]),
        Segment(ASKS, UPLOAD[2000 : REORDER_BYTES + 2500], at=2000),
        Segment(ASKS, UPLOAD[1000:3400], at=1000),
        Segment(ASKS, UPLOAD[REORDER_BYTES + 2500 :], at=REORDER_BYTES + 2500),
    ],
    # A request was looked for where less than its size was in hand.
    "a_request_behind_garbage_whose_size_is_in_two_segments": [
        Segment(ASKS, request(0)),
        Segment(ASKS, b"\xff" * 33 + request(1)[:2]),
        Segment(ASKS, request(1)[2:] + request(2)),
    ],
    # A header was thought to be whole in the first 512 bytes.
    "a_client_id_in_several_segments": [
        Segment(ASKS, request(0)),
        Segment(ASKS, request(1, client_id=LONG_ID)[:1000]),
        Segment(ASKS, request(1, client_id=LONG_ID)[1000:]),
    ],
    "a_client_id_in_several_segments_behind_garbage": [
        Segment(ASKS, request(0)),
        Segment(ASKS, b"\xff" * 33 + request(1, client_id=LONG_ID)[:1000]),
        Segment(ASKS, request(1, client_id=LONG_ID)[1000:] + request(2)),
    ],
    "a_produce_request_that_is_none_where_the_capture_begins": [
        Segment(ASKS, produced_to(b"\1" * 1000)[:700]),
        Segment(ASKS, produced_to(b"\1" * 1000)[700:]),
    ],
    # What came of the broker once the client was known to send no requests counted where it was in hand by then.
    "tls_behind_more_than_is_looked_at": [
        Segment(ASKS, flags=SYN),
        Segment(ASKS, b"\xff" * (PROBE_BYTES + 1)),
        Segment(ANSWERS, b"\x16\3\3\0\5hello"),
    ],
}


@pytest.mark.parametrize("segments", ONCE_CUT_DIFFERENTLY.values(), ids=ONCE_CUT_DIFFERENTLY)
def test_captures_that_once_gave_different_rows_when_cut_give_the_same_rows(segments: list[Segment]) -> None:
    rows = packets(segments) + packets([Segment(ASKS)], Connection(client=("10.0.0.1", 50001)), first_packet=100)
    rows.sort(key=lambda row: row["connection"])
    assert understand(cut(batch(rows), 1), rows=1, payload_bytes=1) == understand([batch(rows)])


def first_packets(path: Path) -> pa.RecordBatch:
    """The first packets of a capture, by connection and place."""
    index = index_capture(str(path), range_bytes=1 << 30, buckets=1)
    batches = read_packets(index.ranges[0], file_no=0, buckets=1, batch_bytes=4 << 20)
    table = pa.Table.from_batches(list(batches)).slice(0, PACKETS_OF_REAL_CAPTURES)
    order: SortKeys = [("connection", "ascending"), ("packet_no", "ascending")]
    return table.sort_by(order).combine_chunks().to_batches()[0]


def cut_open(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Each connection without its first packets, as in a capture that starts in mid-stream."""
    seen: Counter[bytes] = Counter()
    kept = []
    for key in rows["connection"].to_numpy(zero_copy_only=False):
        seen[key] += 1
        kept.append(seen[key] > 9)
    return rows.filter(pa.array(kept))


def lossy(rows: pa.RecordBatch) -> pa.RecordBatch:
    chance = random.Random(3)  # noqa: S311  (not for secrets)
    return rows.filter(pa.array([chance.random() > 0.02 for _ in range(rows.num_rows)]))


@pytest.mark.parametrize("name", ["mixed", "starve", "sessions", "split", "admin", "sasl"])
@pytest.mark.parametrize("damage", [lambda rows: rows, cut_open, lossy], ids=["whole", "mid-stream", "lossy"])
def test_a_real_capture_gives_the_same_however_it_is_cut(shared_captures: Path, name: str, damage: Any) -> None:
    rows = damage(first_packets(shared_captures / f"{name}.pcap"))
    whole = understand([rows])
    assert accounted(whole)
    assert len(whole.exchanges) > 20
    for most, payload_bytes in CUTS:
        assert understand(cut(rows, most), rows=most, payload_bytes=payload_bytes) == whole


@pytest.mark.parametrize("name", ["mixed", "starve", "sessions", "split", "admin", "sasl"])
def test_a_lossy_capture_has_no_exchange_that_the_whole_one_lacks(shared_captures: Path, name: str) -> None:
    rows = first_packets(shared_captures / f"{name}.pcap")
    whole, less = understand([rows]), understand([lossy(rows)])
    known = {
        (e.connection[0], e.correlation_id, e.request, e.response) for e in whole.exchanges if e.status == "answered"
    }
    false = [
        e.correlation_id
        for e in less.exchanges
        if e.status == "answered"
        and not e.request_missing
        and not e.response_missing
        and (e.connection[0], e.correlation_id, e.request, e.response) not in known
    ]
    assert false == []
    assert set(less.counts) == set(COUNTS)
    assert less.counts["payload_bytes"] < whole.counts["payload_bytes"]
