"""What differs between two runs, and what is noise."""

from __future__ import annotations

from math import inf

import pytest

from jobs.comparison.figures import Change, Figure, Judgement, changes_beyond_noise, judge_figures, range_of_share

EXACT, WIDE = Figure(10.0), Figure(10.0, 8.0, 12.0)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (WIDE, Figure(11.0, 9.0, 13.0), "noise"),
        (WIDE, Figure(12.5, 12.0, 13.0), "noise"),
        (WIDE, Figure(13.0, 12.1, 14.0), "beyond"),
        (Figure(13.0, 12.1, 14.0), WIDE, "beyond"),
        (WIDE, Figure(10.0, 2.0, 90.0), "same"),
        (EXACT, Figure(11.0), "exact"),
        (EXACT, Figure(10.0), "same"),
        (WIDE, Figure(11.0), "noise"),
        (WIDE, Figure(13.0), "beyond"),
        (Figure(0.0, 0.0, 0.0), WIDE, "beyond"),
        (Figure(0.0, 0.0, 0.0), Figure(5.0, 0.0, 9.0), "noise"),
        (Figure(text="1"), Figure(text="2"), "exact"),
        (Figure(text="1"), Figure(text="1"), "same"),
        (None, EXACT, "new"),
        (EXACT, None, "gone"),
        (Figure(124.0, 80.0, 220.0), Figure(inf, inf, inf), "beyond"),
        (Figure(inf, 80.0, inf), Figure(inf, inf, inf), "same"),
    ],
)
def test_two_figures_differ_if_their_ranges_do_not_meet(
    before: Figure | None, after: Figure | None, told: Judgement
) -> None:
    assert judge_figures(before, after) == told


def test_a_value_outside_of_its_own_range_widens_it() -> None:
    """With one burst in an hour, most slices of time have nothing, but the rate is not 0."""
    assert Figure(5.0, 0.0, 0.0).range == (0.0, 5.0)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [((4, 10), (6, 10), "noise"), ((400, 1000), (600, 1000), "beyond"), ((0, 20), (1, 20), "noise"),
     ((0, 2000), (100, 2000), "beyond")],
)  # fmt: skip
def test_a_share_of_few_cases_has_a_wide_range(
    before: tuple[int, int], after: tuple[int, int], told: Judgement
) -> None:
    figures = [Figure(part / cases, cases=cases) for part, cases in (before, after)]
    assert judge_figures(*figures) == told


def test_the_range_of_a_share_is_wilsons() -> None:
    """It has the shares that a test at 20 % does not reject (Wilson 1927); the ends for 3 of 10 fulfil his formula."""
    low, high = range_of_share(0.3, 10)
    for end in (low, high):
        assert abs(0.3 - end) == pytest.approx(1.2816 * (end * (1 - end) / 10) ** 0.5)
    assert range_of_share(0.0, 10)[0] == 0.0
    assert range_of_share(1.0, 10)[1] == 1.0
    assert range_of_share(0.0, 0) == (0.0, 1.0)


def test_changes_are_ordered_by_size_and_have_no_noise() -> None:
    def one(scope: str, before: Figure, after: Figure) -> Change:
        return Change("outcomes", "client", scope, "longest_wait_ms", before, after)

    made = [
        one("b", Figure(10.0), Figure(11.0)),
        one("noise", WIDE, Figure(11.0, 9.0, 13.0)),
        one("a", Figure(10.0), Figure(11.0)),
        one("most", Figure(10.0), Figure(inf)),
        one("same", EXACT, EXACT),
        one("half", Figure(10.0), Figure(20.0)),
    ]
    assert [of.scope for of in changes_beyond_noise(made)] == ["most", "half", "a", "b"]
    assert [of.size for of in changes_beyond_noise(made)] == [1.0, 0.5, pytest.approx(1 / 11), pytest.approx(1 / 11)]
