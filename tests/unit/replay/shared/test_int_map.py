"""A map from integers to integers has what was put into it, as a dict does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from udfs.replay.shared.int_map import ABSENT, new_map, place_of_key, put_key, with_room_for

KEYS = st.integers(-20, 20) | st.integers(-(1 << 62), 1 << 62)


@given(st.lists(st.tuples(KEYS, st.integers(0, 9)), max_size=30))
def test_the_last_value_of_a_key_counts_and_the_map_grows_with_its_keys(puts: list[tuple[int, int]]) -> None:
    known, expected = new_map(2), dict[int, int]()
    for key, value in puts:
        known = with_room_for(known, 1)
        put_key(known, key, value)
        expected[key] = value
        assert 2 * len(expected) <= len(known.keys)
    assert known.used[0] == len(expected)
    assert {key: int(known.values[place_of_key(known, key)]) for key in expected} == expected
    assert known.values[place_of_key(known, 1 << 40)] == expected.get(1 << 40, ABSENT)


def test_keys_are_spread_over_the_places_so_that_each_is_found_soon() -> None:
    """If places were random, 1,000 keys would have about 790 different ones. Far fewer would make the map slow."""
    known = new_map(2048)
    assert len({place_of_key(known, key) for key in range(1000)}) > 700


def test_a_map_grows_only_if_it_would_be_more_than_half_full() -> None:
    assert len(with_room_for(new_map(8), 4).keys) == 8
    assert len(with_room_for(new_map(8), 5).keys) == 16
