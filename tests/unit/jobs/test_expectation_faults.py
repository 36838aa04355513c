"""All faults of expectations are reported at once, in the words of rules and not in pydantic's."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.gates.rule_files import read_gates
from jobs.gates.rules import ExpectationRule

RULE = "silver: {one: {table: [captures, exchanges], expectation: {%s}, severity: info, reason: r}}"
BETWEEN = "expect_column_values_to_be_between"


def told(folder: Path, expectation: str) -> list[str]:
    from jobs.gates.expectation_faults import expectation_faults  # which takes seconds to load

    path = folder / "mine.yaml"
    path.write_text(RULE % expectation, encoding="utf-8")
    gates = read_gates([str(path)])
    assert gates.faults == ()
    rule = gates.rules[-1]
    assert isinstance(rule, ExpectationRule)
    return list(dict.fromkeys(expectation_faults(rule)))


@pytest.mark.parametrize(
    ("expectation", "faults"),
    [
        ("expect_table_row_count_to_be_between: {min_value: 1}", []),
        (
            "expect_table_row_count_to_be_between: {min_value: many, max_valeu: 3, strict_min: [1]}",
            [
                "expect_table_row_count_to_be_between has no argument `max_valeu`; did you mean `max_value`?",
                "`min_value` is 'many'; expected a whole number or a time",
                "`strict_min` is [1]; expected true or false",
            ],
        ),
        (
            f"{BETWEEN}: {{column: capture_idd, mostly: 3, max_value: 1}}",
            [
                "captures has no column `capture_idd`; did you mean `capture_id`?",
                "exchanges has no column `capture_idd`; did you mean `capture_id`?",
                "`mostly` is 3; expected at most 1.0",
            ],
        ),
        (f"{BETWEEN}: ", ["`column` is missing", "min_value and max_value cannot both be None"]),
        (
            "expect_multicolumn_sum_to_equal: {column_list: capture_id, sum_total: x}",
            ["`column_list` is 'capture_id'; expected a list", "`sum_total` is 'x'; expected a number"],
        ),
        (
            "expect_column_values_to_not_be_null: {column: capture_id, severity: info}",
            ["`severity` is no argument of an expectation here: a rule has `severity` and `reason` beside it"],
        ),
        (
            "expect_column_value_to_be_null: {column: capture_id}",
            [
                "Great Expectations has no `expect_column_value_to_be_null`; "
                "did you mean `expect_column_values_to_be_null`?"
            ],
        ),
    ],
)
def test_every_fault_of_an_expectation_is_reported_with_what_was_expected(
    tmp_path: Path, expectation: str, faults: list[str]
) -> None:
    assert told(tmp_path, expectation) == faults
