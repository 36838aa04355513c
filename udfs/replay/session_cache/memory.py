"""Memory for the session caches of all lanes: empty at first, doubled where a shard needs more."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.state import COUNTS, NONE, SEAT, SESSION, Cache

FIRST_PLACES = 64
"""As many as the setting allows shards, so that each has a place."""


def new_cache(settings: Records, seed: int) -> Cache:
    """Empty caches of lanes with these SETTINGS. seed: of the random ids, the same in every lane."""
    lanes = len(settings)
    cache = Cache(
        settings=settings,
        counts=np.zeros(lanes, COUNTS),
        sessions=np.zeros((lanes, FIRST_PLACES), SESSION),
        live=np.zeros((lanes, settings["shards"].max()), np.int64),
        seats=empty_seats(0, lanes),
        headroom=np.zeros(1, np.int64),
    )
    cache.counts["random"] = seed
    note_room(cache)
    return cache


def empty_seats(clients: int, lanes: int) -> Records:
    """SEAT[clients, lanes] of clients without session."""
    seats = np.zeros((clients, lanes), SEAT)
    seats["slot"] = NONE
    return seats


def note_room(cache: Cache) -> None:
    """Note how many sessions of a shard there is memory for."""
    counts = cache.counts
    counts["room"] = cache.sessions.shape[1] // cache.settings["shards"]
    cache.headroom[0] = (counts["room"] - counts["fullest"]).min()


def empty(cache: Cache) -> None:
    """Take out all sessions, and begin with the first shard, as a broker does that starts."""
    cache.sessions[...] = np.zeros(1, SESSION)
    cache.live[...] = 0
    for count in ("partitions", "followers", "placed"):
        cache.counts[count] = 0
    cache.seats["slot"] = NONE


def with_seats(cache: Cache, clients: int) -> Cache:
    """The same caches with seats for so many clients."""
    known, lanes = cache.seats.shape
    if known >= clients:
        return cache
    return cache._replace(seats=np.concatenate([cache.seats, empty_seats(2 * clients - known, lanes)]))


def with_headroom(cache: Cache) -> Cache:
    """The same caches with memory for one more session in every shard."""
    if has_headroom(cache):
        return cache
    lanes, places = cache.sessions.shape
    larger = cache._replace(sessions=np.zeros((lanes, 2 * places), SESSION))
    before = cache.counts["room"].tolist()
    note_room(larger)
    for lane, (old, new) in enumerate(zip(before, larger.counts["room"].tolist(), strict=True)):
        shards = int(cache.settings["shards"][lane])
        kept = cache.sessions[lane, : shards * old].reshape(shards, old)
        larger.sessions[lane, : shards * new].reshape(shards, new)[:, :old] = kept
        slots = cache.seats["slot"][:, lane]
        slots[:] = np.where(slots == NONE, NONE, slots // old * new + slots % old)
    return with_headroom(larger)


@kernel
def has_headroom(cache: Cache) -> bool:
    """Is there memory for one more session in every shard?"""
    return cache.headroom[0] > 0
