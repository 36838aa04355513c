"""Rules of gates in files: what is read, which rule replaces which, and every fault with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.gates.results import Result, tell_results
from jobs.gates.rule_files import default_gates, read_gates
from jobs.gates.rules import ExpectationRule, QueryRule, RowRule
from jobs.gates.set_rules import example_text
from jobs.gates.views import Subject
from schemas.tables.gold import GOLD
from schemas.tables.silver import EXCHANGES, SILVER
from udfs.errors import ArgumentError, GateError, ScenarioError

MINE = """\
silver:
  known_clients_alone:
    table: exchanges
    expression: client_id is not null
    severity: warning
    reason: Who does not say who it is
      is not ours.
gold:
  no_lane_waits_long:
    table: [fetch_fairness, fetch_consumers]
    query: select * from {table} where bytes = 0
    severity: info
    reason: Nobody starves.
  little_is_unknown:
    table: fidelity
    expectation:
      expect_column_values_to_be_between: {column: unknown, max_value: 10, strict_max: true}
    severity: critical
    reason: The capture tells enough.
"""

WRONG = """\
bronze: {}
silver:
  first:
    tabel: exchanges
    severity: fatal
    reason: a
  second:
    table: fidelity
    expression: agreed > 0
    severity: info
    reason: b
  third:
    table: exchanges
    expression: request_bytes > 0
    query: select * from {table}
    severity: info
    reason: c
  fourth:
    table: connections
    query: select * from {exchange} where request_bytes < 0
    severity: info
    reason: d
  fifth:
    every_table_with: [payload]
    expression: payload is null
    severity: info
    reason: e
  Sixth:
    table: quarantine
    expression: bytes > 0
    severity: info
    reason: f
  seventh:
    table: exchanges
    severity: info
    severity: warning
    expression: x
  eighth:
    expression: x = {lanes}
    severity: info
    reason: g
  tenth:
    table: exchange
    query: select * from {exchanges}
    severity: bad
    in_pipeline: maybe
  ninth:
    table: {every_table_with: [client_id]}
    expression: x
    severity: info
    reason: h
"""


def written(folder: Path, text: str, name: str = "mine.yaml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_refetchs_own_rules_have_no_fault_and_each_gate_refuses_something() -> None:
    gates = default_gates()
    assert gates.faults == ()
    for gate in ("silver", "gold"):
        assert [rule for rule in gates.rules_of(gate) if rule.severity == "critical"]
        assert all(table.layer == gate for _, table in gates.pairs(gate))


def test_no_two_tables_have_the_same_name() -> None:
    names = [table.name for table in (*SILVER, *GOLD)]
    assert len(names) == len(set(names))


def test_a_users_rules_are_applied_in_addition_to_refetchs_own(tmp_path: Path) -> None:
    gates = read_gates([written(tmp_path, MINE)])
    assert gates.faults == ()
    assert gates.rules[: len(default_gates().rules)] == default_gates().rules
    of_rows, query, expectation = gates.rules[len(default_gates().rules) :]
    assert isinstance(of_rows, RowRule)
    assert (of_rows.tables, of_rows.severity) == ((EXCHANGES,), "warning")
    assert of_rows.reason == "Who does not say who it is is not ours."
    assert str(of_rows.place) == f"{tmp_path}/mine.yaml:4"
    assert isinstance(query, QueryRule)
    assert [table.name for table in query.tables] == ["fetch_fairness", "fetch_consumers"]
    assert isinstance(expectation, ExpectationRule)
    assert expectation.arguments == {"column": "unknown", "max_value": 10, "strict_max": True}


def test_a_folder_of_rules_is_read_by_name_and_a_later_rule_replaces_an_earlier(tmp_path: Path) -> None:
    rule = "silver: {no_negative_size: {table: exchanges, expression: '%s', severity: info, reason: r}}"
    written(tmp_path, rule % "2 > 1", "b.yaml")
    written(tmp_path, rule % "1 > 2", "a.yml")
    gates = read_gates([str(tmp_path)])
    (found,) = [rule for rule in gates.rules if rule.name == "no_negative_size"]
    assert isinstance(found, RowRule)
    assert (found.expression, found.severity) == ("2 > 1", "info")
    assert len(gates.rules) == len(default_gates().rules)


def test_every_fault_of_a_file_is_reported_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, WRONG)
    told = sorted(read_gates([path]).faults, key=lambda fault: fault.place.line)
    assert [(fault.place.line, fault.text.split("; known")[0]) for fault in told] == [
        (1, "unknown key `bronze`"),
        (4, "first: unknown key `tabel`; did you mean `table`?"),
        (5, "first: `severity` is one of info, warning, critical, and not `fatal`"),
        (8, "second: unknown silver table `fidelity`"),
        (12, "third: give one of expression, query, expectation, and not expression and query"),
        (20, "fourth: the query does not ask {table}"),
        (20, "fourth: unknown table {exchange}; did you mean `exchanges`?"),
        (24, "fifth: no silver table has the columns payload"),
        (28, "Sixth: a rule's name is of a-z, 0-9 and _, and begins with a-z"),
        (30, "Sixth: rows of quarantine cannot be put there; ask by a query"),
        (33, "seventh: `reason` is missing"),
        (36, "key `severity` is given twice"),
        (38, "eighth: give `table` or `every_table_with`, one of them"),
        (39, "eighth: unknown {lanes} in an expression"),
        (42, "tenth: `reason` is missing"),
        (43, "tenth: unknown silver table `exchange`; did you mean `exchanges`?"),
        (44, "tenth: the query does not ask {table}"),
        (45, "tenth: `severity` is one of info, warning, critical, and not `bad`"),
        (46, "tenth: `in_pipeline` is true or false, and not `maybe`"),
        (
            48,
            "ninth: `table` is a name or a list of names; every table with some columns is `every_table_with: [...]` "
            "instead",
        ),
    ]


def test_the_message_says_what_should_be_a_text_or_a_mapping(tmp_path: Path) -> None:
    wrong = "silver: {one: {table: exchanges, expectation: expect_it, severity: info, reason: [a]}}"
    assert [fault.text for fault in read_gates([written(tmp_path, wrong)]).faults] == [
        "one: `expectation` is a mapping: of an expectation's name to its arguments, and not `expect_it`",
        "one: `reason` is a text, and not `['a']`",
    ]


def test_the_other_faults_of_a_rule_with_a_fault_are_found_too(tmp_path: Path) -> None:
    """For example those that Spark finds in its expression."""
    path = written(tmp_path, "silver: {one: {table: exchanges, expression: no_column > 0, severity: bad, reason: r}}")
    gates = read_gates([path])
    assert len(gates.faults) == 1
    assert gates.rules[-1].name == "one"


def test_the_message_on_a_long_list_of_tables_names_the_page_of_tables(tmp_path: Path) -> None:
    wrong = "silver: {one: {table: exchanges, query: 'select * from {table} join {zzz}', severity: info, reason: r}}"
    (fault,) = read_gates([written(tmp_path, wrong)]).faults
    assert fault.text.startswith("one: unknown table {zzz}; nearest are ")
    assert fault.text.endswith("; docs/tables.md has all")


def test_missing_files_of_rules_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"--gates .*nowhere: no such file, and no folder with \*\.yaml in it"):
        read_gates([str(tmp_path / "nowhere")])
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(ScenarioError, match=r"folder\.yaml: cannot be read: .* path of a file of gate rules"):
        read_gates([str(tmp_path)])


def test_the_id_of_rules_does_not_depend_on_their_place_but_on_every_word(tmp_path: Path) -> None:
    here, there = (read_gates([written(tmp_path, f"{head}{MINE}", name)]) for head, name in (("", "a"), ("\n#\n", "b")))
    other = read_gates([written(tmp_path, MINE.replace("is not null", "is null"), "c")])
    assert here.quarantine_id == there.quarantine_id != other.quarantine_id
    assert here.rules_id("gold") == there.rules_id("gold") == other.rules_id("gold")


RESULT = Result("no_negative_size", "exchanges", "critical", "Sizes count.", 1200, 7, ("connection_id=5", "b=6"))


def test_a_refusal_names_the_rule_the_count_the_reason_and_examples() -> None:
    passed = Result("other", "exchanges", "critical", "r", 1200, 0)
    with pytest.raises(GateError) as raised:
        tell_results("/lake", Subject("silver", "abc"), [passed, RESULT])
    assert str(raised.value).splitlines() == [
        "gate silver: 1 of 2 rules refused rows of capture abc",
        "  critical: no_negative_size: 7 of 1,200 rows of exchanges. Sizes count.",
        "    connection_id=5",
        "    b=6",
        "  /lake/gold/gate_results has all",
    ]


def test_a_warning_is_shown_and_refuses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    told = Result("slow", "exchanges", "warning", "Too slow.", 3, 1)
    quiet = Result("odd", "exchanges", "info", "Odd.", 3, 1)
    tell_results("/lake", Subject("gold", "abc", "def"), [told, quiet])
    printed = capsys.readouterr().err
    assert "refetch: gate gold: 1 of 2 rules refused rows of run def\n  warning: slow: 1 of 3 rows" in printed
    assert "odd" not in printed


def test_an_example_moves_no_cursor() -> None:
    assert example_text({"topic": "a\x1b[2J", "partition": 3}) == r"topic=a\x1b[2J, partition=3"
    assert len(example_text({"topic": "x" * 1000})) < 310
