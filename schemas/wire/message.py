"""What a declaration of a Kafka message consists of.

Types, version ranges and defaults are spelled as in Kafka's JSON (`common/message/README.md` in kafka-clients.jar).
Names are Kafka's in snake_case. So a declaration can easily be compared with its source.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message or struct.

    `versions`, `nullable` and `tagged` are ranges of message versions: "3+", "0-12" or "none". `type` is a primitive
    ("int32", "string", "uuid", "records" ...), the name of a struct, or one of these after "[]" for an array; a
    struct's own fields are in `fields`. `default` is the value if a version lacks the field; "" means the type's zero
    (0, false, empty string or array).
    """

    name: str
    type: str
    versions: str
    nullable: str = "none"
    tagged: str = "none"
    tag: int | None = None
    default: str = ""
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One request or response: every version that Kafka ever had, and those with the flexible encoding (KIP-482).

    Messages are compared by identity: there is one declaration of each, and it is the key for what is compiled from it.
    """

    name: str
    api_key: int
    versions: str
    flexible: str
    fields: tuple[Field, ...]
