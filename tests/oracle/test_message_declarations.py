"""Every declared message agrees with Kafka's own JSON schema, field by field, and every API with Kafka's table."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from schemas.wire.apis import APIS
from schemas.wire.message import Field, Message
from tests.oracle.conftest import KAFKA_NEWEST, Jars, RunJava
from tests.unit.wire.reference import MESSAGES

Described = list[dict[str, Any]]
CREDENTIALS = {
    "SASL_AUTHENTICATE", "CREATE_DELEGATION_TOKEN", "RENEW_DELEGATION_TOKEN", "EXPIRE_DELEGATION_TOKEN",
    "DESCRIBE_DELEGATION_TOKEN", "ALTER_USER_SCRAM_CREDENTIALS", "ALTER_CONFIGS", "INCREMENTAL_ALTER_CONFIGS",
    "ENVELOPE",  # carries any other request from a broker to the controller
}  # fmt: skip


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def schema(kafka_clients: Path, name: str) -> dict[str, Any]:
    with zipfile.ZipFile(kafka_clients) as archive:
        text = archive.read(f"common/message/{name}.json").decode()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


def kafkas(fields: list[dict[str, Any]], spoken: list[int], common: dict[str, list[dict[str, Any]]]) -> Described:
    """Kafka's fields in the versions that a release speaks. common: structs that several fields share."""
    return [
        {
            "name": snake_case(field["name"]),
            "type": field["type"],
            "versions": among(spoken, field["versions"]),
            "nullable": among(spoken, field.get("nullableVersions", "none")),
            "tagged": among(spoken, field.get("taggedVersions", "none")),
            "tag": field.get("tag"),
            "default": zero_is_empty(str(field.get("default", ""))),
            "fields": kafkas(field.get("fields") or common.get(field["type"].removeprefix("[]"), []), spoken, common),
        }
        for field in fields
        if among(spoken, field["versions"])
    ]


def ours(fields: tuple[Field, ...], spoken: list[int]) -> Described:
    return [
        {
            "name": field.name,
            "type": field.type,
            "versions": among(spoken, field.versions),
            "nullable": among(spoken, field.nullable),
            "tagged": among(spoken, field.tagged),
            "tag": field.tag,
            "default": field.default,
            "fields": ours(field.fields, spoken),
        }
        for field in fields
        if among(spoken, field.versions)
    ]


def among(spoken: list[int], versions: str) -> list[int]:
    return [version for version in up_to(versions, spoken[-1]) if version in spoken]


def zero_is_empty(default: str) -> str:
    return "" if default in ("0", "false") else default


def up_to(versions: str, newest: int) -> list[int]:
    """The versions in a range such as `2-5` or `3+`, up to the newest."""
    if versions == "none":
        return []
    first, _, last = versions.partition("-")
    if versions.endswith("+"):
        first, last = versions[:-1], str(newest)
    return list(range(int(first), min(int(last or first), newest) + 1))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_a_message_is_declared_as_kafka_declares_it(kafka_clients: Path, message: Message) -> None:
    theirs = schema(kafka_clients, message.name)
    spoken = up_to(theirs["validVersions"], 99)
    common = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", [])}
    assert (message.name, message.api_key, message.flexible) == (
        theirs["name"], theirs["apiKey"], theirs["flexibleVersions"],
    )  # fmt: skip
    assert ours(message.fields, spoken) == kafkas(theirs["fields"], spoken, common)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_a_message_has_every_version_of_either_release(jars: Jars, message: Message) -> None:
    spoken = {
        version
        for release in (KAFKA_NEWEST, "3.9.1")
        for version in up_to(
            schema(jars(f"org.apache.kafka:kafka-clients:{release}")[0], message.name)["validVersions"], 99
        )
    }
    assert up_to(message.versions, 99) == sorted(spoken)


def test_every_api_and_header_version_is_in_the_table(kafka_clients: Path, run_java: RunJava) -> None:
    table = {api.key: api for api in APIS}
    for line in run_java("ApiKeysTable.java", kafka_clients).splitlines():
        key, name, *versions = line.split()
        api = table[int(key)]
        # The API was renamed in 4.1, when it began to list other resources too (KIP-1142).
        assert api.name == name.replace("LIST_CLIENT_METRICS_RESOURCES", "LIST_CONFIG_RESOURCES")
        for version, request_header, response_header in (map(int, numbers.split(":")) for numbers in versions):
            assert api.first_version <= version <= api.last_version
            is_flexible = api.flexible_from is not None and version >= api.flexible_from
            has_client_id = (name, version) != ("CONTROLLED_SHUTDOWN", 0)
            assert request_header == (2 if is_flexible else int(has_client_id))
            assert response_header == int(is_flexible and name != "API_VERSIONS")


def test_the_table_has_no_api_or_version_that_kafka_has_not(jars: Jars, run_java: RunJava) -> None:
    spoken = set()
    for release in (KAFKA_NEWEST, "3.9.1"):
        for line in run_java("ApiKeysTable.java", *jars(f"org.apache.kafka:kafka-clients:{release}")).splitlines():
            key, _, *versions = line.split()
            spoken |= {(int(key), int(numbers.split(":")[0])) for numbers in versions}
    declared = {(api.key, version) for api in APIS for version in range(api.first_version, api.last_version + 1)}
    assert declared == spoken


def test_apis_that_bear_credentials_are_marked() -> None:
    assert {api.name for api in APIS if api.bears_credentials} == CREDENTIALS
