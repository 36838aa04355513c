"""Memory for the session caches of all lanes: empty at first, doubled when a shard needs more."""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Records
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.state import LANE_CLIENT, SESSION, TOTALS, Cache

FIRST_PLACES = 64
"""As many sessions as the setting allows shards, so that each shard has a place."""


def new_cache(settings: Records, seed: int) -> Cache:
    """Empty caches of lanes. settings: CACHE_SETTINGS[lanes]. seed: of the random ids, the same in every lane."""
    lanes = len(settings)
    cache = Cache(
        settings=settings,
        totals=np.zeros(lanes, TOTALS),
        sessions=np.zeros((lanes, FIRST_PLACES), SESSION),
        live=np.zeros((lanes, settings["shards"].max()), np.int64),
        clients=clients_without_session(0, lanes),
        headroom=np.zeros(1, np.int64),
    )
    cache.totals["random_state"] = seed
    note_room(cache)
    return cache


def clients_without_session(count: int, lanes: int) -> Records:
    """LANE_CLIENT[count, lanes] of clients without session."""
    clients = np.zeros((count, lanes), LANE_CLIENT)
    clients["place"] = NONE
    return clients


def note_room(cache: Cache) -> None:
    """Note for how many sessions of a shard there is memory."""
    totals = cache.totals
    totals["room"] = cache.sessions.shape[1] // cache.settings["shards"]
    cache.headroom[0] = (totals["room"] - totals["fullest"]).min()


def note_fullest(cache: Cache) -> None:
    """Update, for each lane, the most sessions that a shard has had."""
    cache.totals["fullest"] = cache.live.max(axis=1)
    note_room(cache)


def empty_cache(cache: Cache) -> None:
    """Remove all sessions, and begin with the first shard, like a broker that starts."""
    cache.sessions[...] = np.zeros(1, SESSION)
    cache.live[...] = 0
    for count in ("partitions", "followers", "placed"):
        cache.totals[count] = 0
    cache.clients["place"] = NONE


def with_clients(cache: Cache, clients: int) -> Cache:
    """The same caches, for `clients` clients."""
    known, lanes = cache.clients.shape
    if known >= clients:
        return cache
    return cache._replace(clients=np.concatenate([cache.clients, clients_without_session(2 * clients - known, lanes)]))


def with_headroom(cache: Cache, more: int) -> Cache:
    """The same caches, with memory for `more` further sessions in every shard."""
    if has_headroom(cache, more):
        return cache
    lanes, room = cache.sessions.shape
    larger = cache._replace(sessions=np.zeros((lanes, 2 * room), SESSION))
    before = cache.totals["room"].tolist()
    note_room(larger)
    for lane, (old, new) in enumerate(zip(before, larger.totals["room"].tolist(), strict=True)):
        shards = int(cache.settings["shards"][lane])
        kept = cache.sessions[lane, : shards * old].reshape(shards, old)
        larger.sessions[lane, : shards * new].reshape(shards, new)[:, :old] = kept
        places = cache.clients["place"][:, lane]
        places[:] = np.where(places == NONE, NONE, places // old * new + places % old)
    return with_headroom(larger, more)


@kernel
def has_headroom(cache: Cache, more: int) -> bool:
    """Whether there is memory for `more` further sessions in every shard."""
    return cache.headroom[0] >= more
