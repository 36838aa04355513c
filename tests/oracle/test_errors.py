"""The error codes that are declared, beside Kafka's own."""

from __future__ import annotations

from pathlib import Path

from schemas.wire import errors
from tests.oracle.conftest import RunJava


def test_each_error_has_kafkas_code(run_java: RunJava, kafka_clients: Path) -> None:
    lines = run_java("ErrorCodes.java", kafka_clients).splitlines()
    kafkas = {name: int(code) for name, code in map(str.split, lines)}
    declared = {name: code for name, code in vars(errors).items() if name.isupper()}
    assert declared == {name: kafkas[name] for name in declared}
    assert len(declared) == len(set(declared.values())) > 0
