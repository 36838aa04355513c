"""Replaces names of topics, clients, principals and hosts by keyed hashes. Equal names stay equal in tables and runs.

The hashes are HMAC-SHA-256 (RFC 2104) with a key that only the user has. Without the key, nobody can read or guess a
name.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from schemas.tables.table import Column, Table
from udfs.errors import ArgumentError

DIGITS = 16
KEY = "key"
"""The kind of a key's own pseudonym."""
KNOWN_TO_ALL = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "User:ANONYMOUS"}
)
"""Kafka's own topics and principal: their names say nothing about users, and replays have rules for them."""


HOST, ADDRESS = "host", "address"
"""The kind of an address: the first in tables, the second in keys of settings."""
USER_TYPE = "User"
"""KafkaPrincipal.USER_TYPE, the type of principals to which quotas of users apply."""


@dataclass(frozen=True)
class Pseudonyms:
    """Pseudonyms under one key, which is never shown."""

    key: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """A text that distinguishes this key from others without revealing it."""
        return pseudonym(self.key, KEY, "")

    def applied_to(self, table: Table, rows: pa.RecordBatch) -> pa.RecordBatch:
        """A table's rows with pseudonyms instead of the names of topics, clients, hosts, principals and groups."""
        columns = [self._of_column(column, rows[str(column)]) for column in table.columns]
        return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)

    def _of_column(self, column: Column, values: pa.Array[Any]) -> pa.Array[Any]:
        if not column.names:
            return values
        encoded = values.dictionary_encode()
        called = [None if name is None else self.of(column.names, str(name)) for name in encoded.dictionary.to_pylist()]
        return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(called, pa.string()))

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of one name: `topic-…`, `client-…`, `host-…` and so on. An endpoint keeps its port."""
        if kind == "endpoint":
            host, _, port = name.rpartition(":")
            return f"{self.of('host', host.strip('[]'))}:{port}"
        return name if name in KNOWN_TO_ALL or not name else pseudonym(self.key, kind, name)

    def given(self, kind: str, name: str) -> str:
        """The pseudonym of a topic, client, host, address or user that somebody gives by its name, or by its pseudonym.
        Users are principals in tables, and addresses are hosts. Raises ArgumentError for a subnet.
        """
        if is_given_pseudonym(kind, name):
            return name
        if kind == ADDRESS and "/" in name:
            raise ArgumentError(
                f"address.{name}: tables of pseudonyms do not show which addresses are in a subnet; name clients by "
                "their client.id, as client.NAME.client.rack, or by single addresses"
            )
        kind = HOST if kind == ADDRESS else kind
        return self.of("principal", f"{USER_TYPE}:{name}") if kind == "user" else self.of(kind, name)


def is_pseudonym(kind: str, name: str) -> bool:
    """Whether a name has the form of a pseudonym of this kind, or is a name that gets no pseudonym."""
    return name in KNOWN_TO_ALL or re.fullmatch(f"{kind}-[0-9a-f]{{{DIGITS}}}", name) is not None


def is_given_pseudonym(kind: str, name: str) -> bool:
    """Whether a given name of a topic, client, host, address or user is a pseudonym, or a name that gets none."""
    kind = HOST if kind == ADDRESS else kind
    return (
        is_pseudonym("principal", name) or f"{USER_TYPE}:{name}" in KNOWN_TO_ALL
        if kind == "user"
        else (is_pseudonym(kind, name))
    )


@lru_cache(maxsize=1 << 16)
def pseudonym(key: bytes, kind: str, name: str) -> str:
    """A pseudonym: the kind, and 64 bits of the keyed hash of kind and name."""
    return f"{kind}-{hmac.digest(key, f'{kind}:{name}'.encode(), 'sha256').hex()[:DIGITS]}"
