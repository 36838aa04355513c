"""Plays lanes with quotas of producers: what becomes of each connection and of each process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Records
from udfs.columns.time_units import ALWAYS
from udfs.replay.fetch_max_bytes.producer_quota.muted_channels import play_lane
from udfs.replay.fetch_max_bytes.producer_quota.state import THROTTLING, ProducerUnit, QuotaLane, Sending
from udfs.replay.shared.event_heap import Heap


class Played(NamedTuple):
    """What becomes of producers that share quotas.

    outcomes: THROTTLING[..., lanes, connections]. blocked_us: int64[..., lanes, processes], how long each process waits
    for memory.
    """

    outcomes: Records
    blocked_us: Ints


def nothing_played(unit: ProducerUnit, *lanes: int) -> Played:
    """The outcomes of as many lanes before anything is sent. lanes: their number, after how often each is replayed if
    it is replayed several times.
    """
    processes = len(unit.process_first) - 1
    return Played(np.zeros((*lanes, len(unit.connections)), THROTTLING), np.zeros((*lanes, processes), np.int64))


def play_lanes(unit: ProducerUnit, lanes: Sequence[QuotaLane], buffer_bytes: int) -> Played:
    """Send all requests of the unit in each lane. buffer_bytes: buffer.memory of each process."""
    played = nothing_played(unit, len(lanes))
    for outcomes, blocked_us, lane in zip(*played, lanes, strict=True):
        sending, connections = new_sending(unit), len(unit.connections)
        heap = Heap(np.zeros(connections, np.int64), np.zeros(connections, np.int64), np.zeros(1, np.int64))
        play_lane(unit, lane, sending, heap, outcomes, buffer_bytes)
        blocked_us[:] = sending.blocked_us
    return played


def new_sending(unit: ProducerUnit) -> Sending:
    """A lane before its first request."""
    connections, requests, processes = len(unit.connections), len(unit.requests), len(unit.process_first) - 1
    handled, made, unmuted, due = np.zeros((4, connections), np.int64)
    waited = np.full(connections, ALWAYS)
    made_us, open_us = np.zeros((2, requests), np.int64)
    held_bytes, late_us, blocked_us = np.zeros((3, processes), np.int64)
    next_made = unit.process_first[:-1].copy()
    return Sending(handled, made, unmuted, due, waited, made_us, open_us, next_made, held_bytes, late_us, blocked_us)
