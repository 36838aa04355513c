"""How an advised value is set: in which configuration or by which command, and when it takes effect."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from jobs.report_page.advice.recommendation import Recommendation
from jobs.scenarios.settings import Setting, named_parts, setting_of
from schemas.tables.values import OF_CLIENT, OF_LIMIT, OF_TOPIC
from udfs.replay.shared.lanes import NO_LIMIT

CLIENTS = ("consumer", "producer")
ALTER = "kafka-configs.sh --bootstrap-server BROKER:9092 --alter"
"""The command that changes a setting while brokers run. BROKER is to be replaced."""
ENTITY = "--entity-type {kind}s --entity-name {name}"
DEFAULT_ENTITY = "--entity-type {kind}s --entity-default"
"""Whose setting the command changes: of one user, client.id or topic; of all that have no value of their own."""


class WhereSet(NamedTuple):
    """Where a value is set.

    text: says in which configuration, and when that is read. is_command: a command sets the value while brokers run,
    and the text has its options that say whose value it is.
    """

    text: str
    is_command: bool = False


def how_to_set(changes: Sequence[Recommendation], owners: int = 1) -> str:
    """How to make changes that belong together, as a text. Empty if none of them can be made in any release.

    changes: those of one client or topic, or of the cluster. owners: how many clients or topics make the same changes.
    """
    by_place: dict[WhereSet, list[Recommendation]] = {}
    for one in changes:
        if not one.is_proposal:
            by_place.setdefault(place_of(one, owners), []).append(one)
    return "; ".join(_with_values(place, together) for place, together in by_place.items())


def place_of(one: Recommendation, owners: int) -> WhereSet:
    """Where the value is set."""
    setting = setting_of(one.setting)
    if setting.set_on in CLIENTS:
        return WhereSet(f"in the configuration of {clients_text(one, owners)}")
    if setting.set_on == "topic":
        return WhereSet(topic_entity(one, owners), is_command=True)
    if setting.set_on not in ("broker", "replica"):
        return WhereSet(quota_entities(setting), is_command=True)
    if setting.update_mode == "cluster-wide":
        return WhereSet(DEFAULT_ENTITY.format(kind="broker"), is_command=True)
    return WhereSet("in each broker's server.properties, read when it starts")


def clients_text(one: Recommendation, owners: int) -> str:
    """Whose configuration has a client's setting, and when these clients read it."""
    client = str(setting_of(one.setting).set_on)
    if one.scope.kind == OF_CLIENT and owners == 1:
        return f"this {client}, read when it starts"
    if one.scope.kind == OF_CLIENT:
        return f"these {client}s, read when they start"
    whose = f"the {client}s of these topics" if one.scope.kind in (OF_LIMIT, OF_TOPIC) else f"all {client}s"
    return f"{whose}, read when they start"


def topic_entity(one: Recommendation, owners: int) -> str:
    """The options that name a topic. TOPIC is to be replaced if there are several."""
    is_named = one.scope.kind == OF_TOPIC and owners == 1
    return ENTITY.format(kind="topic", name=shlex.quote(one.scope.name) if is_named else "TOPIC")


def quota_entities(setting: Setting) -> str:
    """The options that name the user and the client.id of a quota.

    >>> quota_entities(setting_of("client.app.consumer_byte_rate"))
    '--entity-type clients --entity-name app'
    >>> quota_entities(setting_of("user.ann.client.consumer_byte_rate"))
    '--entity-type users --entity-name ann --entity-type clients --entity-default'
    """
    return " ".join(
        ENTITY.format(kind=kind, name=shlex.quote(name)) if name else DEFAULT_ENTITY.format(kind=kind)
        for kind, name in named_parts(setting)
    )


def _with_values(place: WhereSet, together: Sequence[Recommendation]) -> str:
    """A place with the values that are set there. A value of `none` is set by leaving the setting out."""
    pairs = {one.name: one.recommended for one in together}
    if not place.is_command:
        words = [f"no {name}" if value == NO_LIMIT else f"{name}={value}" for name, value in pairs.items()]
        return f"{' and '.join(words)} {place.text}"
    added = [f"{name}={value}" for name, value in pairs.items() if value != NO_LIMIT]
    deleted = [name for name, value in pairs.items() if value == NO_LIMIT]
    options = [("--add-config", added), ("--delete-config", deleted)]
    values = " ".join(f"{option} {','.join(of)}" for option, of in options if of)
    return f"{ALTER} {place.text} {values}; it takes effect at once"
