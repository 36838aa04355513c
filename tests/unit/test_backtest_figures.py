"""How the backtest compares predictions with live runs."""

from __future__ import annotations

from tests.backtest.coverage import Case, Range
from tests.backtest.figures import alike, alike_of, relative, row, span


def test_an_error_is_that_of_the_median_and_is_shown_with_how_far_equal_runs_differ() -> None:
    cells = row("splits", [1, 1, 1], [90, 110, 130], [100, 100, 120])
    assert cells == ("splits", "1", "90 to 130", "100 to 120", "+10.00 %", "+20.00 %")


def test_a_number_that_some_runs_do_not_have_is_shown_without_an_error() -> None:
    """The 99th percentile of no responses is null, and so is a catch-up that does not end."""
    assert row("p99 response", [None, None], [900, 1000], [950, None]) == (
        "p99 response", "none", "900 to 1,000", "950 or none", "-", "-",
    )  # fmt: skip
    assert row("p99 response", [None], [None], [None])[1:4] == ("none", "none", "none")


def test_each_value_that_is_no_number_is_shown_once() -> None:
    assert row("waits longest", ["nobody"], ["partition 1"], ["partition 1", "nobody"]) == (
        "waits longest", "nobody", "partition 1", "partition 1 / nobody", "", "",
    )  # fmt: skip


def test_a_value_that_should_be_0_is_shown_as_it_is() -> None:
    assert [relative(5, 0), relative(0, 0)] == ["+5", "0"]


def test_sequences_are_alike_as_far_as_they_stand_in_the_same_order() -> None:
    assert alike({"1": [10, 20, 30, 40]}, {"1": [10, 30, 20, 40]}) == 3 / 4


def test_a_part_that_only_one_side_has_is_not_alike() -> None:
    assert alike({"a": 1, "b": 2}, {"a": 1}) == 1 / 2


def test_two_empty_results_are_alike() -> None:
    assert alike({}, {}) == 1.0


def test_a_sequence_that_only_one_side_has_is_not_alike() -> None:
    assert [alike({}, {"a": [10, 20]}), alike({"a": [10, 20]}, {})] == [0.0, 0.0]


def test_a_run_is_not_compared_with_itself() -> None:
    runs = [{"a": 1}, {"a": 1}, {"a": 2}]
    assert sorted(alike_of(runs, runs)) == [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]


def test_equal_values_of_all_runs_are_shown_once() -> None:
    assert [span([7, 7, 7]), span([5, 7, 6])] == ["7", "5 to 7"]


def test_runs_that_are_predicted_from_one_another_are_not_compared_with_their_own_range() -> None:
    ranges, values = [Range(1, 2), Range(1, 4), Range(3, 5)], [1, 4, 5]
    assert Case(ranges, values, values).within() == 5 / 9
    assert Case(ranges, values, values, are_same=True).within() == 2 / 6
