"""Fetcher threads of a follower: which of them fetches each partition, and whether the capture agrees.

A broker has `num.replica.fetchers` fetchers for each leader. Each has its own connection, fetch session and limits, and
its client.id ends with its number (`broker-2-fetcher-0`).
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from schemas.tables.fetch_reasons import FETCHERS
from udfs.columns.arrays import Bools, Ints
from udfs.replay.shared.fidelity_rows import NO_REASON
from udfs.replay.shared.key_numbers import partition_of

MOST_FETCHERS = 128
"""The most fetchers that a captured follower is taken to have."""
ANY = 1 << 20
"""How many different numbers the partitions of one fetcher can have if their topics' names are unknown."""
_CLIENT_ID = re.compile(r"(broker-[0-9]{1,9})-fetcher-([0-9]{1,4})")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")


def follower_and_fetcher(client_id: str) -> tuple[str, int] | None:
    """The follower that a client.id names, and the number of its fetcher (BrokerBlockingSender, Kafka 4.3); None if the
    client.id has another form, such as a pseudonym.

    >>> follower_and_fetcher("broker-2-fetcher-0")
    ('broker-2', 0)
    """
    found = _CLIENT_ID.fullmatch(client_id)
    return None if found is None else (found[1], int(found[2]))


def fetcher_hash(topic: str, partition: int) -> int:
    """The number that, modulo num.replica.fetchers, is the number of the fetcher of a partition
    (AbstractFetcherManager.getFetcherId and Utils.abs, Kafka 4.3).
    """
    value = as_java_int(31 * java_hash(topic) + partition)
    return 0 if value == -(1 << 31) else abs(value)


@cache
def java_hash(text: str) -> int:
    """java.lang.String.hashCode: the text's UTF-16 units as the digits of a number to the base 31, in 32 bits."""
    units, value = text.encode("utf-16-be", "surrogatepass"), 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = as_java_int(31 * value + (high << 8 | low))
    return value


def as_java_int(value: int) -> int:
    """A number as a Java `int`, which keeps the lowest 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def fetcher_hashes(keys: Sequence[str]) -> Ints:
    """`fetcher_hash` of each partition: int64[numbers]. keys: broker, topic and partition of each, by its number."""
    partitions = (partition_of(key) for key in keys)
    return np.array([fetcher_hash(topic, int(partition)) for _, topic, partition in partitions], np.int64)


def is_topic_id(topic: str) -> bool:
    """Whether this is a topic's id instead of its name: a random UUID in the form of Uuid.toString of Kafka 4.3."""
    if not _TOPIC_ID.fullmatch(topic):
        return False
    try:
        raw = urlsafe_b64decode(f"{topic}==")
    except Error:
        return False
    is_version_4, is_rfc_4122 = raw[6] >> 4 == 4, raw[8] >> 6 == 2
    return is_version_4 and is_rfc_4122 and urlsafe_b64encode(raw).decode("ascii").rstrip("=") == topic


def captured_fetchers(hashes: Mapping[int, Ints]) -> int:
    """num.replica.fetchers of a captured follower: the number under which Kafka's rule assigns the most partitions to
    the fetchers that fetched them; of several such numbers the lowest.

    Fetchers without a partition make no difference. hashes: `fetcher_hashes` of the partitions of each fetcher, by the
    fetcher's number.
    """
    counts = np.arange(max(hashes, default=0) + 1, MOST_FETCHERS + 1)
    right = [np.count_nonzero(are_fetched_by(hashes, count)) for count in counts.tolist()]
    return int(counts[np.argmax(right)]) if right else max(hashes) + 1


def are_fetched_by(hashes: Mapping[int, Ints], fetchers: int) -> Bools:
    """Whether each partition belongs to the fetcher that fetched it, if there are `fetchers`: bool[partitions]."""
    return np.concatenate([np.zeros(0, np.bool_), *(of % fetchers == number for number, of in hashes.items())])


class Threads(NamedTuple):
    """A follower's captured fetchers.

    numbers: the number in the client.id of each. fetchers: how many there were; some may have had no partition. keys:
    for each, the keys of its partitions.
    """

    numbers: list[int]
    fetchers: int
    keys: list[Sequence[str]]


def threads_of_follower(threads: Sequence[tuple[str, Sequence[str]]]) -> Threads | None:
    """A follower's fetchers; None if a client.id does not say which fetcher it is.

    threads: for each the client.id, and the keys of its partitions.
    """
    named = [follower_and_fetcher(client_id) for client_id, _ in threads]
    numbers, keys = [of[1] for of in named if of is not None], [keys for _, keys in threads]
    if len(numbers) < len(named):
        return None
    hashes = {
        number: fetcher_hashes([key for key in own if not has_unknown_topic(key)])
        for number, own in zip(numbers, keys, strict=True)
    }
    return Threads(numbers, captured_fetchers(hashes), keys)


def has_unknown_topic(key: str) -> bool:
    """Whether only the id of a partition's topic is known."""
    return is_topic_id(partition_of(key)[1])


def dealt_of_threads(threads: Threads) -> list[Ints]:
    """The number by which each partition is dealt, modulo the number of fetchers: `fetcher_hash`, int64[partitions]
    each.

    If a topic's name is unknown, so is the hash. The number is then one of those that the captured fetcher can have.
    """
    return [
        np.where([has_unknown_topic(key) for key in keys], number + threads.fetchers * (of % ANY), of)
        for number, keys, of in zip(threads.numbers, threads.keys, map(fetcher_hashes, threads.keys), strict=True)
    ]


def judged_fetchers(threads: Sequence[tuple[str, Sequence[str]]]) -> list[list[str]]:
    """For each partition, whether Kafka's rule gives it to the fetcher that has it: NO_REASON, or a word of FETCHERS.

    threads: for each the client.id, and the keys of its partitions.
    """
    known = threads_of_follower(threads)
    if known is None:
        return [[FETCHERS.fetcher_unknown] * len(keys) for _, keys in threads]
    return [
        [judged_partition(key, known.fetchers, number) for key in keys]
        for number, keys in zip(known.numbers, known.keys, strict=True)
    ]


def judged_partition(key: str, fetchers: int, number: int) -> str:
    """Whether Kafka's rule, with `fetchers` fetchers, gives a partition to the fetcher that has it. number: of that
    one.
    """
    if has_unknown_topic(key):
        return FETCHERS.topic_name_unknown
    return NO_REASON if fetcher_hashes([key])[0] % fetchers == number else FETCHERS.other_fetcher


def can_be_dealt(threads: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Whether the partitions of a follower's fetchers can be dealt among another number of fetchers."""
    refused = {FETCHERS.fetcher_unknown, FETCHERS.other_fetcher}
    return refused.isdisjoint(word for words in judged_fetchers(threads) for word in words)
