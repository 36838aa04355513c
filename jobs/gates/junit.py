"""What gates found as JUnit's XML, which CI servers show. There is a testcase for each rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from jobs.gates.results import Result
from jobs.gates.rules import ExpectationRule, Gates, QueryRule, RowRule, Rule
from jobs.gates.views import Subject
from jobs.terminal.screen import printable_text
from udfs.errors import LakeError

CRITICAL = "critical"


class CheckedSubject(NamedTuple):
    """A capture set or run to which a gate was applied, and what each rule found in each table."""

    subject: Subject
    results: Sequence[Result]


def write_junit(path: Path, at: datetime, gates: Gates, checked: Iterable[CheckedSubject]) -> None:
    """Write the file. Raises LakeError if it cannot be written. at: the run's clock."""
    suites = ElementTree.Element("testsuites", name="refetch gate")
    suites.extend(suite_element(at, gates, one) for one in checked)
    ElementTree.indent(suites)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as fault:
        raise LakeError(f"--junit {path}: could not be written: {fault.strerror or fault}") from fault


def suite_element(at: datetime, gates: Gates, of: CheckedSubject) -> ElementTree.Element:
    """The element of a gate that was applied to one subject, with its rules in their order. at: the run's clock."""
    cases = [testcase_element(of, rule, [one for one in of.results if one.rule == rule.name])
             for rule in gates.rules_of(of.subject.gate)]  # fmt: skip
    failures = sum(case.find("failure") is not None for case in cases)
    attributes = {"name": f"{of.subject.gate} gate", "timestamp": at.isoformat(), "tests": f"{len(cases)}",
            "failures": f"{failures}", "errors": "0", "skipped": "0"}  # fmt: skip
    made = ElementTree.Element("testsuite", attributes)
    made.extend([property_element("checked", str(of.subject)), *cases])
    return made


def property_element(name: str, value: str) -> ElementTree.Element:
    """The element of one property of a suite, such as the capture set that it is about."""
    properties = ElementTree.Element("properties")
    ElementTree.SubElement(properties, "property", name=name, value=printable_text(value))
    return properties


def testcase_element(of: CheckedSubject, rule: Rule, results: Sequence[Result]) -> ElementTree.Element:
    """The element of a rule. If a critical rule refused rows it is a failure; what other rules refused is output."""
    case = ElementTree.Element("testcase", classname=f"refetch.{of.subject.gate}", name=rule.name)
    refused = [one for one in results if one.refused]
    if not refused:
        return case
    if rule.severity == CRITICAL:
        message = "; ".join(f"{one.refused:,} of {one.checked:,} rows of {one.table} refused" for one in refused)
        failure = ElementTree.SubElement(case, "failure", type=rule.severity, message=message)
    else:
        failure = ElementTree.SubElement(case, "system-out")
    lines = [*(line for one in refused for line in one.lines()), f"  The rule: {requirement_text(rule)}"]
    failure.text = "\n".join(printable_text(line) for line in lines)
    return case


def requirement_text(rule: Rule) -> str:
    """What a rule demands, as in its file."""
    if isinstance(rule, RowRule):
        return rule.expression
    if isinstance(rule, QueryRule):
        return " ".join(rule.query.split())
    if isinstance(rule, ExpectationRule):
        arguments = ", ".join(f"{name}: {value}" for name, value in rule.arguments.items())
        return f"{rule.expectation} {{{arguments}}}"
    return rule.name
