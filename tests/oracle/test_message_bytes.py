"""Kafka's classes read what the reference encoder writes, and write the same bytes. The decoder reads them too."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import Phase, given, settings

from schemas.wire.message import Message
from tests.oracle.conftest import RunJava
from tests.oracle.test_message_declarations import schema, up_to
from tests.unit.wire.reference import (
    MESSAGE_VERSIONS,
    Struct,
    encode,
    expected,
    lay_in_arena,
    message_values,
    read_back,
)
from udfs.wire.messages import decode_bodies


def spoken(kafka_clients: Path) -> list[tuple[Message, int]]:
    """The declared messages and versions that a release has."""
    return [
        (message, version)
        for message, version in MESSAGE_VERSIONS
        if version in up_to(schema(kafka_clients, message.name)["validVersions"], 99)
    ]


def line(message: Message, version: int, body: bytes) -> str:
    return f"{message.api_key} {'request' if message.name.endswith('Request') else 'response'} {version} {body.hex()}"


@cache
def examples(message: Message, version: int) -> list[Struct]:
    """Random values of a message, gathered so that Java is started only once for each release."""
    found: list[Struct] = []

    @settings(max_examples=5, phases=[Phase.generate])
    @given(value=message_values(message, version))
    def gather(value: Struct) -> None:
        found.append(value)

    gather()
    return found


def test_kafka_writes_what_it_reads_byte_for_byte_as_encoded_here(kafka_clients: Path, run_java: RunJava) -> None:
    sent = [
        (message, version, value) for message, version in spoken(kafka_clients) for value in examples(message, version)
    ]
    bodies = [encode(message, version, value) for message, version, value in sent]
    lines = [line(message, version, body) for (message, version, _), body in zip(sent, bodies, strict=True)]
    rewritten = run_java("Reencode.java", kafka_clients, stdin="\n".join(lines)).splitlines()
    assert rewritten == [body.hex() for body in bodies]
    for (message, version, value), body in zip(sent, map(bytes.fromhex, rewritten), strict=True):
        arena, starts, ends = lay_in_arena([body])
        decoded = decode_bodies(message, arena, starts, ends, np.array([version], np.int16))
        assert read_back(message, decoded, arena, 0) == expected(message.fields, value, version)
