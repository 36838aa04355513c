"""Which settings to replay if nobody names any: grids of a few values, around what a capture set shows.

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
"""Shards of a broker's fetch-session cache since Kafka 3.8. With fewer slots than shards there are no slots at all."""
FULL = 0.5
"""A response that has this share of the bytes that its request allows may have been limited by the request."""
NumberGrid = Mapping[str, tuple[int, ...]]
"""The values of a replay's settings in ascending order, by setting. Empty if only the captured lane is replayed."""


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

    max_bytes, partition_max_bytes: the most that a request allows, in total and for a partition. response, partition:
    the most record bytes in a response, and of a partition in a response. held: the most that one client holds if all
    its brokers send their largest responses at the same time.
    """

    max_bytes: int
    partition_max_bytes: int
    response: int
    partition: int
    held: int


@dataclass(frozen=True)
class Amounts:
    """The amounts in a capture set that settings limit; None for what it does not show.

    consumers, followers: what they fetch. batch: bytes of the largest batch. readers: the most connections that fetch
    in sessions from one broker at the same time. produced: bytes of the largest batch of several records that a broker
    accepted, 0 if all batches have a single record. sent: bytes of the largest produce request. replicas: the most
    replicas on one broker, without internal topics, by the last Metadata responses.
    """

    consumers: FetchAmounts | None = None
    followers: FetchAmounts | None = None
    batch: int = 0
    readers: int | None = None
    produced: int | None = None
    sent: int | None = None
    replicas: int | None = None


def choose_grids(amounts: Amounts, stated: Mapping[str, Value]) -> Grids:
    """The grid of each replay, with at most 12 lanes in addition to the captured one. A grid is empty if captures show
    nothing from which to choose. `batch_split` is left out if no producer is captured.

    stated: the settings that somebody stated as in force, by key.
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
    """Fetch limits of consumers, or of followers if no consumer fetches. They begin at the largest batch.

    Limits of a response go up to the largest response, and include what requests ask for. Limits of a partition go up
    to what requests ask for. If a response is at least half as large as the request allows, they go up to four times
    what requests ask for.
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
    """Pools of a consumer: all that it may hold, a quarter and a sixteenth of it. Pools of a producer: its largest
    request, and four and sixteen times as much. All start from a power of two.
    """
    grid = dict[str, tuple[int, ...]]()
    if amounts.consumers:
        held = next_doubling(amounts.consumers.held)
        grid[CONSUMER_BUFFER] = tuple(sorted({max(held // part, 1) for part in (1, 4, 16)}))
    if amounts.sent is not None:
        grid[PRODUCER_BUFFER] = tuple(next_doubling(amounts.sent) * times for times in (1, 4, 16))
    return grid


def slot_grid(amounts: Amounts) -> NumberGrid:
    """The slots that would be enough if all readers had a session at the same time, half and twice as many, in whole
    shards.
    """
    if amounts.readers is None:
        return {}
    enough = -(-amounts.readers // DEFAULT_SHARDS) * DEFAULT_SHARDS
    half = max(enough // 2 // DEFAULT_SHARDS, 1) * DEFAULT_SHARDS
    return {SLOTS: tuple(sorted({half, enough, 2 * enough}))}


def batch_size_grid(produced: int, stated: Mapping[str, Value]) -> NumberGrid:
    """From a quarter of the batch.size in force to four times as much. The stated value counts as in force; else
    Kafka's default, or the power of two nearest to the largest captured batch if that is larger.
    """
    default = int(setting_of(BATCH_SIZE).default_value or 0)
    base = int(stated.get(BATCH_SIZE, max(default, nearest_doubling(produced))))
    return {BATCH_SIZE: tuple(sorted({max(base * times // 4, 1) for times in (1, 2, 4, 8, 16)}))}


def partition_grid(amounts: Amounts) -> NumberGrid:
    """Limits from three quarters to twice the number of replicas on the broker with most of them."""
    if amounts.replicas is None:
        return {}
    return {BROKER_PARTITIONS: tuple(sorted({round_limit(amounts.replicas * part / 4) for part in (3, 4, 5, 8)}))}


def next_doubling(amount: int) -> int:
    """The smallest power of two that is at least the amount and at least 1 KiB.

    >>> next_doubling(40_000), next_doubling(65_536), next_doubling(0)
    (65536, 65536, 1024)
    """
    return max(1 << max(amount - 1, 0).bit_length(), 1024)


def nearest_doubling(amount: int) -> int:
    """The power of two that is nearest to the amount by ratio.

    >>> nearest_doubling(17_900), nearest_doubling(30_000)
    (16384, 32768)
    """
    above = 1 << max(amount - 1, 0).bit_length()
    return above if 2 * amount * amount > above * above else above // 2


def doublings_between(least: int, most: int, count: int) -> tuple[int, ...]:
    """`count` powers of two from `least` to `most`, both included, evenly spread by ratio; fewer if there are fewer.

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
