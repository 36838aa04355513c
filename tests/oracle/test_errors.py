"""The error codes that are declared, beside Kafka's own."""

from __future__ import annotations

from pathlib import Path

from schemas.wire import errors
from tests.oracle.conftest import RunJava

NEWER_THAN_3_9 = {"SHARE_SESSION_LIMIT_REACHED"}
"""Errors of later releases (KIP-932)."""


def test_each_error_has_kafkas_code(run_java: RunJava, kafka_clients: Path) -> None:
    lines = run_java("ErrorCodes.java", kafka_clients).splitlines()
    kafkas = {name: int(code) for name, code in map(str.split, lines)}
    declared = {name: code for name, code in vars(errors).items() if name.isupper()}
    newer = NEWER_THAN_3_9 if "-3.9" in kafka_clients.name else set()
    assert {name: code for name, code in declared.items() if name not in newer} == {
        name: kafkas[name] for name in declared if name not in newer
    }
    assert len(declared) == len(set(declared.values())) > 0
