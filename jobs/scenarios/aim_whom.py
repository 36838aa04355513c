"""Whom an aim is for, as somebody wrote it: clients or topics, by name or by pattern. Faults are collected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from jobs.scenarios.aims import COLUMNS, Over, Whom
from jobs.scenarios.located_yaml import MALFORMED, Fault, Place
from jobs.scenarios.settings import nearest_or_all_hint, setting_of
from schemas.tables.outcomes import Outcome
from schemas.tables.values import CONSUMER, OF_CLIENT, OF_TOPIC, PRODUCER

KINDS: Mapping[str, str] = {"client": OF_CLIENT, "client_id": OF_CLIENT, "topic": OF_TOPIC}
"""The kind of scope for each word with which an aim can name whom it is for."""
HAVE_OWN: Mapping[str, tuple[str, ...]] = {
    CONSUMER: (OF_CLIENT,), PRODUCER: (OF_CLIENT, OF_TOPIC), "topic": (OF_TOPIC,)
}  # fmt: skip
"""The kinds of scope that can have values of their own, by what settings are set on."""


def resolve_whom(
    place_of: Callable[[str], Place], text: Mapping[str, Sequence[str]], aimed: Iterable[Outcome], over: Over,
    faults: list[Fault],
) -> Whom:  # fmt: skip
    """The names and patterns of those that an aim is for, by kind of scope.

    It is a fault if they cannot have their own values of the aim's settings, or if an outcome is not counted by client
    or topic.

    place_of: where a key of `text` is written. text: the names, by the word for clients or topics. aimed: the outcomes
    that the aim names.
    """
    whom = dict[str, tuple[str, ...]]()
    for key, patterns in text.items():
        kind, place = KINDS.get(key), place_of(key)
        if kind is None:
            faults.append(
                Fault(place, f"an aim is for clients or topics, and not for `{key}`{nearest_or_all_hint(key, KINDS)}")
            )
            continue
        unfit = [pattern for pattern in patterns if pattern != MALFORMED and re.search(r"[\s,]", pattern)]
        faults += [Fault(place, f"`{pattern}` has a blank or a comma; write ? for it") for pattern in unfit]
        others = [setting for setting in over if kind not in HAVE_OWN.get(setting_of(setting).set_on or "", ())]
        others += [one.name for one in aimed if COLUMNS[kind] not in map(str, one.table.columns)]
        faults += [Fault(place, f"{name} is not of one {kind}, so leave out `for {kind}`") for name in others]
        whom[kind] = (*whom.get(kind, ()), *patterns)
    return whom
