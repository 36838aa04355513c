"""Messages at another pace, drawn anew for each replication, and the outcomes of pools at that pace.

How fast a message arrives, and how fast it is handled or drained, differs from one run to the next. Both decide how
many messages hold memory at once. So each lane is replayed several times (replications), and each replication draws

- how long messages take to arrive, and then hold memory, relative to what is usual for their API and size: blocks of
  captured times, so that a slow phase stays slow;
- one factor for all these times, as large as the difference between two equal runs;
- how close together the requests of a burst come at a broker, because clients that send at the same moment share cores
  and networks;
- which connection is first when connections race for memory, and which connections share a network thread.

Other messages come at the captured times, or later if earlier messages of their connection are not done by then. In one
replication all lanes have the same draws, so they differ by their settings alone. Lanes in which nothing waits are
replayed only a few times.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Floats, Ints, Records, read_only
from udfs.columns.time_units import NEVER, US_PER_MS, US_PER_S
from udfs.replay.consumer_memory.another_pace import ConnectionOrder, connection_order, set_pace, times_of
from udfs.replay.consumer_memory.channels import replay_units
from udfs.replay.consumer_memory.settings import MEMORY_POOL
from udfs.replay.consumer_memory.state import POOL_OUTCOME, Traces
from udfs.replay.consumer_memory.traces import traces_of_units
from udfs.replay.shared.pace_of_runs import STRETCHES, pace_differs
from udfs.replay.shared.replications import FEWEST, factors, lanes_alike, near_places, replications_within
from udfs.replay.shared.window import WHOLE, Window

MESSAGES_AT_MOST = 1 << 21
"""The most messages that are replayed for a unit's ranges, over all lanes. A larger unit has fewer replications."""


PAUSE_US, LONGEST_BURST_US = 100 * US_PER_MS, 2 * US_PER_S
"""Requests with at least this pause before and after them are a burst, unless it takes longer than the second time."""
BURSTS_DIFFER = 1.0
"""The standard deviation, from one run to the next, of the logarithm of how long bursts take. Of three values, this one
suited runs in the lab best (VALIDATION.md).
"""


class PoolReplications(NamedTuple):
    """The outcomes of units at drawn paces: POOL_OUTCOME[replications, units, lanes].

    counts: int64[units, lanes], how many replications each lane has; the rest of its outcomes mean nothing.
    """

    outcomes: Records
    counts: Ints


class ApiTimes(NamedTuple):
    """Messages of one API that a unit receives, and that hold memory for a while, but not longer than until the next
    request of their connection.

    place: int64[n], their indices among the unit's messages, in time order. ratio: float64[n], how long each takes to
    arrive and then holds memory, relative to what is usual for its size. length: how many messages a block has.
    """

    place: Ints
    ratio: Floats
    length: int


class Bursts(NamedTuple):
    """Requests that come in bursts at a broker, and are held until they are handled.

    place: int64[n], their indices among the unit's messages. away_us: float64[n], how long each comes after the mean of
    its burst. after_first_us, before_last_us: int64[n], how long after the broker's first request, and before its last
    one; it stays between them.
    """

    place: Ints
    away_us: Floats
    after_first_us: Ints
    before_last_us: Ints


@dataclass(frozen=True)
class UnitDraws:
    """What is drawn for one unit. slower, wider: float64[replications], the factor of its times in each, and of how
    long bursts take.
    """

    apis: Sequence[ApiTimes]
    bursts: Bursts
    draws: np.random.Generator
    slower: Floats
    wider: Floats

    @property
    def count(self) -> int:
        """How often the unit is replayed at most."""
        return len(self.slower)

    def scale(self, scales: Floats, again: int) -> None:
        """Write into `scales`, float64[messages], how many times as long each of the unit's messages takes."""
        for api in self.apis:
            drawn = near_places(len(api.place), api.length, self.draws)
            scales[api.place] = self.slower[again] * api.ratio[drawn] / api.ratio

    def move(self, later_us: Ints, again: int) -> None:
        """Write into `later_us`, int64[messages], how much later than captured the requests of bursts come."""
        moved_us = np.rint((self.wider[again] - 1) * self.bursts.away_us).astype(np.int64)
        later_us[self.bursts.place] = np.clip(moved_us, -self.bursts.after_first_us, self.bursts.before_last_us)


def replicated(traces: Traces, settings: Records, names: Sequence[str], window: Window = WHOLE) -> PoolReplications:
    """Replay units several times in every lane, each time at another pace. Units of the same name have the same draws.

    settings: POOL_SETTINGS[units, lanes]. names: of the units.
    """
    settings, of_lane = lanes_that_differ(settings)
    order, left, at_pace = connection_order(traces), np.arange(len(settings)), traces.messages.copy()
    draws = draws_of_units(traces, order, names, len(of_lane))
    outcomes = np.zeros((max((of.count for of in draws), default=0), *settings.shape), POOL_OUTCOME)
    counts = np.repeat(np.array([of.count for of in draws], np.int64), settings.shape[1]).reshape(settings.shape)
    for again in range(len(outcomes)):
        if again == FEWEST:
            counts[outcomes["waits"][:again].sum(axis=0) == 0] = FEWEST
        units, lanes = (np.flatnonzero((counts > again).any(axis=axis)) for axis in (1, 0))
        if len(units) < len(left):
            traces, left = traces_of_units(traces, np.searchsorted(left, units)), units
            order, at_pace = connection_order(traces), traces.messages.copy()
        if not len(left):
            break
        scales, later_us = np.ones(len(traces.messages)), np.zeros(len(traces.messages), np.int64)
        for unit, trace in zip(left.tolist(), traces.traces, strict=True):
            own = slice(trace["first_message"], trace["end_message"])
            draws[unit].scale(scales[own], again)
            draws[unit].move(later_us[own], again)
        set_pace(at_pace, read_only(traces.messages), order, read_only(scales), read_only(later_us))
        here, paced = np.ix_(left, lanes), traces._replace(messages=at_pace)
        outcomes[again][here] = outcomes_in_lanes(paced, with_other_races(settings[here], again), window)
    return PoolReplications(outcomes[:, :, of_lane], counts[:, of_lane])


def lanes_that_differ(settings: Records) -> tuple[Records, Ints]:
    """(POOL_SETTINGS[units, n], the lanes that differ for some unit, int64[lanes], the place of each lane among them).

    In all of these lanes connections race in the same order. settings: POOL_SETTINGS[units, lanes].
    """
    alike = settings.copy()
    alike["seed"] = settings["seed"][:, :1]
    first, of_lane = lanes_alike(alike[:, lane].tobytes() for lane in range(alike.shape[1]))
    return alike[:, first], of_lane


REFUSED = ("waits", "stuck", "unpooled", "too_large", "depleted_us")
"""The fields of POOL_OUTCOME that are 0 if nobody was refused memory."""


def outcomes_in_lanes(traces: Traces, settings: Records, window: Window = WHOLE) -> Records:
    """The outcomes of units in every lane: POOL_OUTCOME[units, lanes]. settings: POOL_SETTINGS[units, lanes].

    If nobody is refused memory in the smallest of a unit's pools, then nobody is in larger ones, and the outcome is the
    same. Such a unit is replayed in one lane only.
    """
    if settings.shape[1] == 1 or not differ_in_size_only(settings):
        return replay_units(traces, settings, window).outcomes
    smallest = settings[np.arange(len(settings)), settings["size"].argmin(axis=1)][:, np.newaxis]
    outcomes = np.repeat(replay_units(traces, smallest, window).outcomes, settings.shape[1], axis=1)
    refused = np.flatnonzero(np.any([outcomes[name][:, 0] > 0 for name in REFUSED], axis=0))
    some = traces._replace(traces=traces.traces[refused])
    outcomes[refused] = replay_units(some, settings[refused], window).outcomes
    return outcomes


def differ_in_size_only(settings: Records) -> bool:
    """Whether all lanes have a pool that refuses memory, and each unit's lanes differ only in its size, or in a largest
    allocation that is smallest with the smallest pool.

    settings: POOL_SETTINGS[units, lanes].
    """
    order = np.argsort(settings["size"], axis=1, kind="stable")
    largest = np.take_along_axis(settings["max_allocation"], order, axis=1)
    others = ("is_strict", "variant", "max_poll_records", "us_per_record", "network_threads")
    is_alike = all((settings[name] == settings[name][:, :1]).all() for name in others)
    return is_alike and bool((settings["variant"] == MEMORY_POOL).all() and (largest[:, :1] <= largest).all())


def draws_of_units(traces: Traces, order: ConnectionOrder, names: Sequence[str], lanes: int) -> list[UnitDraws]:
    """What is drawn for each unit. lanes: their number."""
    found, took_us = list[UnitDraws](), times_of(traces.messages, order)
    for name, trace in zip(names, traces.traces, strict=True):
        begin, end = int(trace["first_message"]), int(trace["end_message"])
        place = np.flatnonzero(took_us[begin:end] > 0)
        own, draws = traces.messages[begin + place], np.random.default_rng(zlib.crc32(name.encode()))
        differs = pace_differs(own["api_key"], own["size"], took_us[begin + place])
        slower = factors(draws, differs, replications_within(MESSAGES_AT_MOST, (end - begin) * lanes))
        apis = [*times_of_apis(own, place, took_us[begin + place])]
        bursts = bursts_of(traces.messages[begin:end])
        found.append(UnitDraws(apis, bursts, draws, slower, factors(draws, BURSTS_DIFFER, len(slower))))
    return found


def bursts_of(messages: Records) -> Bursts:
    """The requests that come in bursts at a broker; none of a client. messages: MESSAGE[n], the unit's."""
    came_at = messages["size_known_at"] - messages["size_known_at"].min(initial=NEVER)
    held = np.flatnonzero((messages["held_us"] > 0) & (messages["response_us"] != NEVER))
    held = held[np.argsort(came_at[held], kind="stable")]
    time = came_at[held]
    burst = np.cumsum(np.diff(time, prepend=time[:1]) > PAUSE_US)
    first, end = np.searchsorted(burst, burst), np.searchsorted(burst, burst, side="right")
    total = np.append(0, np.cumsum(time))
    away_us = time - (total[end] - total[first]) / (end - first)
    is_short = time[end - 1] - time[first] <= LONGEST_BURST_US
    held, time = held[is_short], time[is_short]
    return Bursts(held, away_us[is_short], time, came_at.max(initial=0) - time)


def times_of_apis(messages: Records, place: Ints, took_us: Ints) -> Iterator[ApiTimes]:
    """The times of some messages of a unit, by API.

    messages: MESSAGE[n]. place: int64[n], their indices among the unit's messages. took_us: int64[n], how long each
    takes to arrive and then holds memory.
    """
    for api_key in np.unique(messages["api_key"]).tolist():
        alike = messages["api_key"] == api_key
        time = took_us[alike]
        length = max(round(float(np.sqrt(len(time) / STRETCHES))), 1)
        yield ApiTimes(place[alike], time / usual_times(messages["size"][alike], time), length)


def usual_times(size: Ints, time: Ints) -> Floats:
    """The time that is usual for each size, by a straight line with the least squares; no size takes less than none:
    float64[n], us. size: int64[n], bytes. time: int64[n], us, above 0.
    """
    away = size - size.mean()
    slope = max(float((away * time).sum()) / max(float((away * away).sum()), 1.0), 0.0)
    slope = min(slope, float(time.mean()) / max(float(size.mean()), 1.0))
    return np.maximum(time.mean() + slope * away, 1.0)


def with_other_races(settings: Records, again: int) -> Records:
    """The settings for a replication, in which connections race in another order. settings: POOL_SETTINGS[...]."""
    other = settings.copy()
    other["seed"] += again + 1
    return other
