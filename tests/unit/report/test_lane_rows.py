"""Tables by lane say what a lane changes, and not the same again for settings that change nothing."""

from __future__ import annotations

from jobs.replays.lane_rows import distinct_lanes


def named(*rows: tuple[str, str, str]) -> list[tuple[str, str]]:
    return [(lane, outcome) for _, lane, outcome in distinct_lanes([list(row) for row in rows])]


def test_a_lane_that_changes_nothing_for_its_subject_is_left_out() -> None:
    assert named(("follower", "captured", "9"), ("follower", "a=1", "9"), ("follower", "a=2", "8")) == [
        ("captured", "9"),
        ("a=2", "8"),
    ]


def test_lanes_that_a_setting_alone_decides_are_called_by_it() -> None:
    grid = [("consumers", f"a={a}  b={b}", str(a)) for a in (1, 2) for b in (7, 8)]
    assert named(("consumers", "captured", "0"), *grid) == [("captured", "0"), ("a=1", "1"), ("a=2", "2")]


def test_a_lane_keeps_what_tells_it_from_one_that_comes_to_something_else() -> None:
    rows = [("consumers", "a=1  b=1", "x"), ("consumers", "a=1  b=2", "y"), ("consumers", "a=2  b=1", "z"),
            ("consumers", "a=2  b=2", "z")]  # fmt: skip
    assert named(("consumers", "captured", "0"), *rows) == [
        ("captured", "0"), ("a=1  b=1", "x"), ("a=1  b=2", "y"), ("a=2", "z"),
    ]  # fmt: skip


def test_what_all_lanes_set_stays_in_their_names() -> None:
    assert named(("consumers", "captured", "0"), ("consumers", "a=1  b=1", "x"), ("consumers", "a=2  b=1", "y")) == [
        ("captured", "0"), ("a=1  b=1", "x"), ("a=2  b=1", "y"),
    ]  # fmt: skip


def test_subjects_are_not_mixed() -> None:
    assert named(("a", "captured", "1"), ("b", "captured", "1"), ("b", "x=1", "2"), ("a", "x=1", "1")) == [
        ("captured", "1"), ("captured", "1"), ("x=1", "2")
    ]  # fmt: skip
