"""Tables by lane show each result once, and no further rows for settings that change nothing."""

from __future__ import annotations

from jobs.terminal.lane_rows import merge_equal_lanes


def named(*rows: tuple[str, str, str]) -> list[tuple[str, str]]:
    return [(lane, outcome) for _, lane, outcome in merge_equal_lanes([list(row) for row in rows])]


def test_a_lane_that_changes_nothing_for_its_subject_is_left_out() -> None:
    assert named(("follower", "captured", "9"), ("follower", "a=1", "9"), ("follower", "a=2", "8")) == [
        ("captured", "9"),
        ("a=2", "8"),
    ]


def test_a_setting_that_changes_nothing_is_named_with_all_its_values() -> None:
    """It is named because the captured value is none of these, and may have other results."""
    grid = [("consumers", f"a={a}  b={b}", str(a)) for a in (1, 2) for b in (7, 8)]
    assert named(("consumers", "captured", "0"), *grid) == [("captured", "0"), ("a=1  b=7|8", "1"), ("a=2  b=7|8", "2")]
    more = [("consumers", f"a={a}  b={b}", str(a)) for a in (1, 2) for b in (7, 8, 9)]
    assert named(("consumers", "captured", "0"), *more)[1:] == [("a=1  b=7..9", "1"), ("a=2  b=7..9", "2")]


def test_a_setting_of_others_than_the_subject_is_left_out_if_it_changes_nothing() -> None:
    grid = [("consumers", f"a={a}  producer.b={b}", str(a)) for a in (1, 2) for b in (7, 8)]
    assert named(("consumers", "captured", "0"), *grid) == [("captured", "0"), ("a=1", "1"), ("a=2", "2")]
    kept = [("producers", f"a={a}  b={b}", str(b)) for a in (1, 2) for b in (7, 8)]
    assert named(("producers", "captured", "0"), *kept)[1:] == [("a=1|2  b=7", "7"), ("a=1|2  b=8", "8")]


def test_a_lane_keeps_the_settings_that_distinguish_it_from_a_lane_with_other_results() -> None:
    rows = [("consumers", "a=1  b=1", "x"), ("consumers", "a=1  b=2", "y"), ("consumers", "a=2  b=1", "z"),
            ("consumers", "a=2  b=2", "z")]  # fmt: skip
    assert named(("consumers", "captured", "0"), *rows) == [
        ("captured", "0"), ("a=1  b=1", "x"), ("a=1  b=2", "y"), ("a=2  b=1|2", "z"),
    ]  # fmt: skip


def test_settings_that_all_lanes_have_stay_in_their_names() -> None:
    assert named(("consumers", "captured", "0"), ("consumers", "a=1  b=1", "x"), ("consumers", "a=2  b=1", "y")) == [
        ("captured", "0"), ("a=1  b=1", "x"), ("a=2  b=1", "y"),
    ]  # fmt: skip


def test_subjects_are_not_mixed() -> None:
    assert named(("a", "captured", "1"), ("b", "captured", "1"), ("b", "x=1", "2"), ("a", "x=1", "1")) == [
        ("captured", "1"), ("captured", "1"), ("x=1", "2")
    ]  # fmt: skip


def test_a_setting_that_some_lanes_leave_as_captured_is_named_with_its_only_value() -> None:
    rows = [("consumers", "a=1  b=7", "x"), ("consumers", "a=1", "x"), ("consumers", "b=7", "y")]
    assert named(("consumers", "captured", "0"), *rows) == [
        ("captured", "0"), ("a=1  b=7", "x"), ("a=1", "x"), ("b=7", "y"),
    ]  # fmt: skip
