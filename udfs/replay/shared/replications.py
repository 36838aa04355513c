"""Replications: a lane that is replayed several times, with its pace drawn anew from the capture each time.

How often that is, how factors and blocks of captured times are drawn, and which quantiles of the results are reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from statistics import NormalDist

import numpy as np

from udfs.columns.arrays import Floats, Ints, read_only

REPLICATIONS, FEWEST = 20, 5
"""How often a lane is replayed with pace drawn anew, and how often at least where that is much work."""
NEAR_BLOCKS = 4
"""From how many blocks away a block of times is drawn, at most (the local block bootstrap of Paparoditis and Politis,
2002)."""
SHARES = (0.1, 0.5, 0.9)
"""The quantiles of the replications' results that are reported."""


def replications_within(most: int, work: int) -> int:
    """How often lanes are replayed so that the work stays within `most`. work: that of one replay, such as its records.

    >>> replications_within(100, 2), replications_within(100, 10), replications_within(100, 50)
    (20, 10, 5)
    """
    return min(REPLICATIONS, max(FEWEST, most // max(work, 1)))


def factors(draws: np.random.Generator, differs: float, count: int) -> Floats:
    """A factor for each of `count` runs, with the logarithm's standard deviation `differs`: float64[count]."""
    return np.exp(differs * normal_draws(draws, count))


def normal_draws(draws: np.random.Generator, count: int) -> Floats:
    """The middles of `count` equally likely parts of the normal distribution, in a drawn order: float64[count].

    So even a few runs cover the whole distribution, as in Latin hypercube sampling. So do the first FEWEST of them, one
    of each fifth of the distribution, since some lanes are replayed no more often than that.
    """
    place = draws.permutation(count)
    place = place[np.argsort(place * FEWEST // count, kind="stable")]
    part = place * FEWEST // count
    turn = np.arange(count) - np.searchsorted(part, part)
    return normal_middles(count)[place[np.lexsort((draws.random(count), turn))]]


@cache
def normal_middles(count: int) -> Floats:
    """The middles of `count` equally likely parts of the normal distribution, in rising order: float64[count]."""
    return read_only(np.array([NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)]))


def near_places(count: int, length: int, draws: np.random.Generator) -> Ints:
    """For each of `count` values, the index of the value that is drawn for it: int64[count].

    Values are drawn in blocks of `length`, so that a slow phase stays slow, and each block from near its own place,
    because a capture has phases. The first block stays in its place, and is drawn for no other: a client that has just
    started has no connection yet.
    """
    places, last = np.arange(0, count, length), count - length
    first, reach = min(length, last), NEAR_BLOCKS * length
    low, high = np.clip(places - reach, first, last), np.clip(places + reach, first, last)
    starts = draws.integers(low, high, endpoint=True)
    starts[:1] = 0
    return (starts[:, np.newaxis] + np.arange(length)).reshape(-1)[:count]


def lanes_alike(lanes: Iterable[bytes]) -> tuple[Ints, Ints]:
    """(the first lane of each kind, int64[n]; the kind of each lane, int64[lanes]), so that one of each is replayed.

    lanes: what each lane depends on.

    >>> [of.tolist() for of in lanes_alike([b"small", b"large", b"small"])]
    [[0, 1], [0, 1, 0]]
    """
    numbers: dict[bytes, int] = {}
    kinds = np.array([numbers.setdefault(lane, len(numbers)) for lane in lanes], np.int64)
    return np.unique(kinds, return_index=True)[1], kinds


def quantiles(replications: Floats, counts: Ints) -> Floats:
    """p10, p50 and p90 of the first counts[i] replications of each of n results, each of them one of the values:
    float64[3, n].

    replications: float64[replications, n]. counts: int64[n].
    """
    found = np.empty((len(SHARES), len(counts)))
    for count in np.unique(counts).tolist():
        alike = counts == count
        found[:, alike] = np.quantile(replications[:count, alike], SHARES, axis=0, method="inverted_cdf")
    return found
