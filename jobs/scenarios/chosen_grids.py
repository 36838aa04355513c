"""Which settings to replay where nobody names any: grids of a few values, around what a capture set shows.

Pure functions: the same amounts give the same grids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from jobs.scenarios.scenario import Grids
from jobs.scenarios.settings import Value, setting_of
from schemas.tables import algorithms
from udfs.replay.batch_split.settings import BATCH_SIZE
from udfs.replay.session_cache.settings import SLOTS

DEFAULT_SHARDS = 8
"""Shards of a broker's cache of fetch sessions since Kafka 3.8. With fewer slots than shards there is none at all."""
FULL = 0.5
"""A response that holds this share of what its request allows may have been bounded by it."""
NumberGrid = Mapping[str, tuple[int, ...]]
"""By setting of a replay, its values in ascending order. Empty if only the captured lane is replayed."""


class FetchLimitKeys(NamedTuple):
    """The fetch limits of one kind of reader: the keys of the two settings."""

    response: str
    partition: str


OF_CONSUMERS = FetchLimitKeys("consumer.fetch.max.bytes", "consumer.max.partition.fetch.bytes")
OF_FOLLOWERS = FetchLimitKeys("replica.fetch.response.max.bytes", "replica.fetch.max.bytes")
CONSUMER_BUFFER, PRODUCER_BUFFER = "consumer.buffer.memory", "producer.buffer.memory"
BROKER_PARTITIONS = "max.broker.partitions"


@dataclass(frozen=True)
class FetchAmounts:
    """What readers of one kind ask for and get, in bytes.

    max_bytes, partition_max_bytes: the most that a request allows, in all and of a partition. response, partition: the
    most records that came in a response, and of a partition in one. held: the most that one client holds if all its
    brokers send their largest responses at once.
    """

    max_bytes: int
    partition_max_bytes: int
    response: int
    partition: int
    held: int


@dataclass(frozen=True)
class Amounts:
    """The amounts in a capture set that settings bound; None where it shows nothing of the kind.

    consumers, followers: what they fetch. batch: bytes of the largest batch. readers: the most connections that fetch
    in sessions from one broker at the same time. produced: bytes of the largest batch that a broker took and that has
    several records, 0 if all have a single one. sent: bytes of the largest produce request. replicas: the most replicas
    on one broker, without internal topics, by the last Metadata responses.
    """

    consumers: FetchAmounts | None = None
    followers: FetchAmounts | None = None
    batch: int = 0
    readers: int | None = None
    produced: int | None = None
    sent: int | None = None
    replicas: int | None = None


def choose_grids(amounts: Amounts, stated: Mapping[str, Value]) -> Grids:
    """The grid of each replay, with at most 12 lanes beside the captured one. Where captures show nothing to choose by,
    the grid is empty. `batch_split` is left out where no producer is captured.

    stated: by key the settings that somebody stated to be in force.
    """
    grids = {
        algorithms.FETCH_MAX_BYTES: fetch_limit_grid(amounts),
        algorithms.CONSUMER_MEMORY: memory_grid(amounts),
        algorithms.SESSION_CACHE: slot_grid(amounts),
        algorithms.PARTITION_LIMITS: partition_grid(amounts),
    }
    if amounts.produced is not None:
        grids[algorithms.BATCH_SPLIT] = batch_size_grid(amounts.produced, stated)
    return {name: _within_bounds(grid) for name, grid in grids.items()}


def fetch_limit_grid(amounts: Amounts) -> NumberGrid:
    """Limits from the largest batch up to what requests ask for: those of consumers, or of followers if no consumer
    fetches.
    """
    fetched, keys = (amounts.consumers, OF_CONSUMERS) if amounts.consumers else (amounts.followers, OF_FOLLOWERS)
    if fetched is None:
        return {}
    least, most, most_of_partition = map(next_doubling, (amounts.batch, fetched.response, fetched.partition_max_bytes))
    if fetched.response >= FULL * fetched.max_bytes:
        most = 4 * next_doubling(fetched.max_bytes)
    if fetched.partition >= FULL * fetched.partition_max_bytes:
        most_of_partition *= 4
    return {
        keys.response: tuple(sorted({*doublings_between(least, most, 3), fetched.max_bytes})),
        keys.partition: doublings_between(least, most_of_partition, 3),
    }


def memory_grid(amounts: Amounts) -> NumberGrid:
    """Pools of a consumer: all that it may hold, a quarter and a sixteenth. Pools of a producer: its largest request,
    four times and sixteen times that.
    """
    grid = dict[str, tuple[int, ...]]()
    if amounts.consumers:
        held = next_doubling(amounts.consumers.held)
        grid[CONSUMER_BUFFER] = tuple(sorted({max(held // part, 1) for part in (1, 4, 16)}))
    if amounts.sent is not None:
        grid[PRODUCER_BUFFER] = tuple(next_doubling(amounts.sent) * times for times in (1, 4, 16))
    return grid


def slot_grid(amounts: Amounts) -> NumberGrid:
    """Half, all and twice the slots that would be enough if all readers had a session at once, in whole shards."""
    if amounts.readers is None:
        return {}
    enough = -(-amounts.readers // DEFAULT_SHARDS) * DEFAULT_SHARDS
    half = max(enough // 2 // DEFAULT_SHARDS, 1) * DEFAULT_SHARDS
    return {SLOTS: tuple(sorted({half, enough, 2 * enough}))}


def batch_size_grid(produced: int, stated: Mapping[str, Value]) -> NumberGrid:
    """From a quarter of the batch.size in force to four times as much. In force is what was stated; else
    Kafka's default or, if captured batches are larger, the power of two that is nearest to the largest.
    """
    default = int(setting_of(BATCH_SIZE).default_value or 0)
    base = int(stated.get(BATCH_SIZE, max(default, nearest_doubling(produced))))
    return {BATCH_SIZE: tuple(sorted({max(base * times // 4, 1) for times in (1, 2, 4, 8, 16)}))}


def partition_grid(amounts: Amounts) -> NumberGrid:
    """Limits from three quarters of the replicas that the fullest broker has to twice as many."""
    if amounts.replicas is None:
        return {}
    return {BROKER_PARTITIONS: tuple(sorted({round_limit(amounts.replicas * part / 4) for part in (3, 4, 5, 8)}))}


def next_doubling(amount: int) -> int:
    """The least power of two that is no smaller, from 1 KiB on.

    >>> next_doubling(40_000), next_doubling(65_536), next_doubling(0)
    (65536, 65536, 1024)
    """
    return max(1 << max(amount - 1, 0).bit_length(), 1024)


def nearest_doubling(amount: int) -> int:
    """The power of two that is nearest by ratio.

    >>> nearest_doubling(17_900), nearest_doubling(30_000)
    (16384, 32768)
    """
    above = 1 << max(amount - 1, 0).bit_length()
    return above if 2 * amount * amount > above * above else above // 2


def doublings_between(least: int, most: int, count: int) -> tuple[int, ...]:
    """`count` powers of two from `least` to `most`, with both, evenly spread by ratio; fewer if there are not so many.

    >>> doublings_between(1 << 16, 1 << 20, 3), doublings_between(1 << 20, 1 << 16, 3)
    ((65536, 262144, 1048576), (1048576,))
    """
    low, high = least.bit_length() - 1, max(most, least).bit_length() - 1
    steps = {low + round(step * (high - low) / (count - 1)) for step in range(count)}
    return tuple(1 << power for power in sorted(steps))


def round_limit(amount: float) -> int:
    """An amount rounded to two digits, at least 1: a limit as people set them.

    >>> round_limit(43.0), round_limit(3_127.5), round_limit(0.2)
    (43, 3100, 1)
    """
    return max(int(float(f"{amount:.1e}")), 1)


def _within_bounds(grid: NumberGrid) -> dict[str, tuple[Value, ...]]:
    """The grid with values as the catalogue parses them; those above a setting's maximum are lowered to it."""

    def bounded(key: str, value: int) -> Value:
        setting = setting_of(key)
        return setting.parse(str(value if setting.maximum is None else min(value, setting.maximum)))

    return {key: tuple(dict.fromkeys(bounded(key, value) for value in values)) for key, values in grid.items()}
