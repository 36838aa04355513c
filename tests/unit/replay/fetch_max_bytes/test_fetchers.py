"""Kafka's rule says which fetcher of a follower has a partition, and a capture shows whether it was followed."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.tables.fetch_reasons import FETCHERS
from udfs.replay.fetch_max_bytes.closed_loop.fetchers import (
    can_be_dealt,
    captured_fetchers,
    dealt_of_threads,
    fetcher_hash,
    fetcher_hashes,
    follower_and_fetcher,
    is_topic_id,
    java_hash,
    judged_fetchers,
    threads_of_follower,
)
from udfs.replay.fetch_max_bytes.events import group_of_fetcher
from udfs.replay.shared.fidelity_rows import NO_REASON

TOPICS = ("orders", "clicks", "a-topic-with-a-long-name")
KEYS = [f"1\0{topic}\0{partition}" for topic in TOPICS for partition in range(6)]


def threads_of(fetchers: int) -> list[tuple[str, list[str]]]:
    """Broker 2's fetchers, each with its partitions."""
    hashes = fetcher_hashes(KEYS).tolist()
    return [
        (f"broker-2-fetcher-{number}", [key for key, of in zip(KEYS, hashes, strict=True) if of % fetchers == number])
        for number in range(fetchers)
    ]


@pytest.mark.parametrize(
    ("text", "value"), [("", 0), ("a", 97), ("orders", -1008770331), ("polygenelubricants", -(1 << 31))]
)
def test_a_topics_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_a_hash_that_is_the_smallest_int_counts_as_0() -> None:
    """Kafka takes Utils.abs, because Math.abs of Java returns the smallest int unchanged."""
    topic = "polygenelubricants"  # 31 times its hash is the smallest int again
    assert [fetcher_hash(topic, 0), fetcher_hash(topic, 1)] == [0, (1 << 31) - 1]


@pytest.mark.parametrize(
    ("client_id", "named"),
    [
        ("broker-2-fetcher-0", ("broker-2", 0)),
        ("broker-12-fetcher-31", ("broker-12", 31)),
        ("client-0123456789abcdef", None),
        ("broker-2-fetcher-0-alt", None),
        ("", None),
    ],
)
def test_a_client_id_names_the_follower_and_its_fetcher(client_id: str, named: tuple[str, int] | None) -> None:
    assert follower_and_fetcher(client_id) == named


def test_fetchers_of_one_follower_are_a_group() -> None:
    assert group_of_fetcher("broker-2-fetcher-0", "10.0.0.2") == group_of_fetcher("broker-2-fetcher-1", "10.0.0.2")
    assert group_of_fetcher("broker-2-fetcher-0", "10.0.0.2") != group_of_fetcher("broker-20-fetcher-0", "10.0.0.2")
    assert group_of_fetcher("client-0123456789abcdef", "10.0.0.2") == ""


@pytest.mark.parametrize(
    ("topic", "is_id"),
    [("i3gGd4W_S0yyjrpwXsBNCQ", True), ("orders", False), ("my-topic-with-22-chars", False),
     ("AAAAAAAAAAAAAAAAAAAAAA", False)],
)  # fmt: skip
def test_a_topic_id_is_no_topic_name(topic: str, is_id: bool) -> None:
    assert is_topic_id(topic) == is_id


@pytest.mark.parametrize("fetchers", [1, 2, 3, 4])
def test_the_partitions_of_fetchers_show_how_many_fetchers_there_were(fetchers: int) -> None:
    threads = threads_of(fetchers)
    hashes = {number: fetcher_hashes(keys) for number, (_, keys) in enumerate(threads)}
    assert captured_fetchers(hashes) == fetchers
    assert judged_fetchers(threads) == [[NO_REASON] * len(keys) for _, keys in threads]
    assert can_be_dealt(threads)


def test_the_other_fetchers_partitions_show_fetchers_that_have_none() -> None:
    """Of four fetchers, only numbers 1 and 2 have partitions."""
    hashes = {1: np.array([5, 13]), 2: np.array([2, 6])}
    assert captured_fetchers(hashes) == 4


def test_a_partition_with_another_fetcher_is_reported_and_nothing_is_dealt() -> None:
    threads = threads_of(3)
    threads[1][1].append(threads[0][1].pop(0))
    words = judged_fetchers(threads)
    assert words[1][-1] == FETCHERS.other_fetcher
    assert [word for of in words for word in of].count(FETCHERS.other_fetcher) == 1
    assert not can_be_dealt(threads)


def test_partitions_of_a_topic_without_a_known_name_stay_with_their_fetcher_if_there_are_as_many() -> None:
    nameless = [f"1\0i3gGd4W_S0yyjrpwXsBNCQ\0{partition}" for partition in range(9)]
    threads = [(client, [*keys, *nameless[number::3]]) for number, (client, keys) in enumerate(threads_of(3))]
    assert [words.count(FETCHERS.topic_name_unknown) for words in judged_fetchers(threads)] == [3, 3, 3]
    assert can_be_dealt(threads)
    known = threads_of_follower(threads)
    assert known is not None
    assert known.fetchers == 3
    dealt = dealt_of_threads(known)
    assert [set((of % 3).tolist()) for of in dealt] == [{0}, {1}, {2}]
    assert [set((of % 6).tolist()) <= {n, n + 3} for n, of in enumerate(dealt)] == [True] * 3
    assert len({int(of) % 5 for own in dealt for of in own[-3:]}) > 2, "any of five fetchers may have them"


def test_named_partitions_are_dealt_by_the_rule() -> None:
    known = threads_of_follower(threads_of(2))
    assert known is not None
    for own, (_, keys) in zip(dealt_of_threads(known), threads_of(2), strict=True):
        assert own.tolist() == fetcher_hashes(keys).tolist()


def test_pseudonyms_show_no_fetcher() -> None:
    assert judged_fetchers([("client-0123456789abcdef", KEYS[:2])]) == [[FETCHERS.fetcher_unknown] * 2]
