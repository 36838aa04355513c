"""Which client's rules a reader follows if it does not say what software it is."""

from __future__ import annotations

import numpy as np
import pytest

from udfs.replay.fetch_max_bytes.closed_loop.settings import keeps_order


@pytest.mark.parametrize(
    ("responses", "keeps"),
    [
        (["ab", "ab", "b", "ab", "ab"], True),
        (["ab", "ba", "ab", "ba"], False),
        (["abc", "bca", "cab"], False),
        (["ab", "ab", "ab", "ba"], True),
        (["ab", "ab", "ba", "ab"], False),
        (["a", "a", "b", "a"], False),
        (["ab", "cd", "ab"], False),
        ([], False),
    ],
    ids=["one order", "in turn", "in turn of three", "mostly one", "half", "one partition", "others each time", "none"],
)
def test_a_client_whose_partitions_keep_their_order_is_not_librdkafka(responses: list[str], *, keeps: bool) -> None:
    """Each letter of a response is a partition with records."""
    request = np.repeat(np.arange(len(responses)), [len(parts) for parts in responses]).astype(np.int64)
    partition = np.array([ord(letter) for letter in "".join(responses)], np.int64)
    assert keeps_order(request, partition) == keeps
