"""Question 18: what changed with the versions of a client."""

from __future__ import annotations

from jobs.comparison.upgrades import find_upgrades
from tests.unit.comparison.software_rows import JAVA, PYTHON, fetched


def test_a_new_version_is_compared_with_the_one_that_is_gone() -> None:
    before = [fetched(JAVA, "3.9.0", 16, 40), fetched(PYTHON, "2.0.2", 11, 10), fetched(None, None, 17, 5)]
    after = [fetched(JAVA, "4.1.0", 17, 300), fetched(PYTHON, "2.0.2", 11, 900), fetched(None, None, 17, 5)]
    (one,) = find_upgrades(before, after)
    assert (one.name, one.was, one.now, one.apis) == (JAVA, ("3.9.0",), ("4.1.0",), ((16, 16), (17, 17)))
    judged = {of.metric: of.judgement for of in one.changes}
    assert judged == {
        "full_fetch_share": "beyond", "not_found_share": "same", "bytes_a_request": "same", "bytes_a_response": "same",
    }  # fmt: skip


def test_a_version_in_addition_to_an_old_one_is_compared_with_all_that_were_there() -> None:
    before = [fetched(JAVA, "3.8.0", 16, 40), fetched(JAVA, "3.9.0", 16, 60)]
    (one,) = find_upgrades(before, [*before, fetched(JAVA, "4.1.0", 18, 55)])
    assert (one.was, one.now, one.apis) == (("3.8.0", "3.9.0"), ("4.1.0",), ((16, 16), (18, 18)))
    (full, *_) = one.changes
    assert full.before is not None
    assert (full.before.value, full.before.cases, full.judgement) == (0.05, 2000, "noise")


def test_a_version_that_only_goes_and_a_client_that_is_new_are_no_upgrade() -> None:
    both = [fetched(JAVA, "3.9.0", 16, 40), fetched(JAVA, "4.1.0", 17, 40)]
    assert find_upgrades(both, both[1:]) == []
    assert find_upgrades(both, [fetched(PYTHON, "2.0.2", 11, 10)]) == []
