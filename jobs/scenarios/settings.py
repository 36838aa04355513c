"""The catalogue of settings, read from conf/settings.yaml: names, units, bounds and defaults, each declared once."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from jobs.paths import CONF, SHOWN_DOCS, own_text
from jobs.units import format_bytes, format_ms, format_number, parse_bytes, parse_int, parse_ms, parse_number
from udfs.errors import SettingError
from udfs.facts.pseudonyms import ADDRESS, HOST, is_pseudonym
from udfs.replay.partition_limits.schedule import format_schedule, parse_schedule
from udfs.replay.shared.lanes import NO_LIMIT, numbers_of_release
from udfs.replay.shared.lanes import Value as Value

_PARSERS: Mapping[str, Callable[[str], int | float]] = {
    "bytes": parse_bytes, "ms": parse_ms, "int": parse_int, "number": parse_number
}  # fmt: skip
_FORMATS: Mapping[str, Callable[[int], str]] = {"bytes": format_bytes, "ms": format_ms}
ON_REQUEST = frozenset({"batch_split"})
"""Replays that read more of a capture than others do. They are made only if a scenario names them, if a flag names a
setting whose `algorithms` begin with them, if they have an aim, or if nobody names anything."""
TRIES: Mapping[str, str] = {
    "fetch_max_bytes": "consumer.fetch.max.bytes=1MiB,8MiB,50MiB",
    "consumer_memory": "consumer.buffer.memory=16MiB,64MiB",
    "session_cache": "max.incremental.fetch.session.cache.slots=500,1000,2000",
    "batch_split": "producer.batch.size=16KiB,64KiB",
    "partition_limits": "max.broker.partitions=2000,4000",
}
"""An example of --set that asks for a replay, by replay."""
MOST_LISTED, NEAREST = 12, 3
"""For an unknown word, messages name all known words if there are at most MOST_LISTED, else the NEAREST ones."""
_SETTINGS_FILE = CONF / "settings.yaml"
_TOPIC = "[a-zA-Z0-9._-]{1,249}"
"""A topic's name (org.apache.kafka.common.internals.Topic)."""
NOT_REPLAYED: Mapping[str, str] = {
    "request_percentage": ": no replay has this quota (KIP-124), for packets do not show how long a broker's threads "
    "worked on a request; QUOTA lines say whom it held back in the capture"
}
"""Why a setting that operators use cannot be varied or stated, as the end of a message, by the setting's name."""
BROKER = "broker"
"""The value of `named` of settings that can be for one broker."""
Called = Callable[[str, str], str]
"""A function from a kind of thing (topic, user, client) and a name to the lake's name for it."""
_NAME = r"[^\s,=]{1,249}"
"""A client.id or a user's name, as far as a lane's name can have it."""
NAMED: Mapping[str, str] = {
    "topic": rf"topic\.{_TOPIC}",
    "broker": r"broker\.[0-9]{1,10}",
    "client or address": rf"(client\.{_NAME}|address\.{_NAME})",
    "client": rf"client\.{_NAME}",
    "user": rf"user\.{_NAME}",
    "user.client": rf"user(\.{_NAME})?\.client(\.{_NAME})?",
}
"""How the key of a setting for one topic, broker, client or user begins, by the setting's `named`."""
_RACK = r"[^\s,=]{1,249}"
"""The name of a rack, as far as a key or a flag can have it."""
_RELEASE = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?")


class Setting(BaseModel):
    """One setting; the fields are described at the top of conf/settings.yaml.

    one: whom it is for if it is not for all, as in its key: topic.orders, or user.ann.client.app.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    set_on: Literal["consumer", "producer", "replica", "broker", "topic", "user", "user.client"] | None
    type: Literal["bytes", "ms", "int", "number", "limit", "enum", "rack"]
    unit: str
    default: Value | None
    default_before: Mapping[str, Value] = {}
    minimum: int | float | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    captured: bool
    only_with: tuple[str, ...] = ()
    algorithms: tuple[str, ...]
    kip: str | None
    doc: str
    named: Literal["topic", "broker", "client", "client or address", "user", "user.client"] | None = None
    one: str | None = None
    searched: str | None = None
    exists_as: Literal["setting", "release", "proposal", "model"] = "setting"
    update_mode: Literal["read-only", "cluster-wide"] = "read-only"

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if (self.type == "enum") != bool(self.choices):
            raise ValueError("an enum has choices, and nothing else has")
        for default in (self.default, *self.default_before.values()):
            if default is not None:
                self.parse(str(default))
        if self.searched is not None:
            self.span(self.searched)
        return self

    @property
    def key(self) -> str:
        """The unambiguous spelling: consumer.fetch.max.bytes, replica.fetch.max.bytes, kafka; for one topic
        topic.orders.max.message.bytes.
        """
        if self.one is not None:
            return f"{self.one}.{self.name}"
        is_in_name = self.set_on is None or f".{self.set_on}." in f".{self.name}"
        return self.name if is_in_name else f"{self.set_on}.{self.name}"

    @property
    def is_of_one_broker(self) -> bool:
        """Whether the setting is for one broker, as in broker.2.fetch.max.bytes."""
        return self.named == BROKER and self.one is not None

    @property
    def of_all(self) -> Setting:
        """The same setting for all topics, brokers, clients or users."""
        return self.model_copy(update={"one": None})

    @property
    def in_lanes(self) -> Setting:
        """The setting as lanes take it: only --captured states one for a single broker."""
        return self.model_copy(update={"named": None}) if self.named == BROKER else self

    @property
    def can_be_set(self) -> bool:
        """Whether somebody can set it, now or once its proposal is in a release, so that it may be advised."""
        return self.exists_as in ("setting", "proposal")

    @property
    def is_in_production(self) -> bool:
        """Whether a cluster in production can have it. Only then a capture can show whether a prediction was right."""
        return self.exists_as in ("setting", "release")

    @property
    def is_optional(self) -> bool:
        """Whether the setting can be `none`; if it can, that is the default."""
        return self.default == NO_LIMIT and not self.choices

    @property
    def default_value(self) -> Value | None:
        """The default, parsed; None if the capture shows the value."""
        return None if self.default is None else self.parse(str(self.default))

    def default_in(self, release: tuple[int, ...] | None) -> Value | None:
        """The default in a release such as (2, 4) of the software that has the setting; None for the newest release."""
        for first, value in sorted(self.default_before.items(), key=lambda earlier: numbers_of_release(earlier[0])):
            if release is not None and release < numbers_of_release(first):
                return self.parse(str(value))
        return self.default_value

    def parse(self, text: str) -> Value:
        """The value in `text`. Raises ValueError, which says what is wrong with it and what would be right."""
        if self.type == "enum":
            if text not in self.choices:
                raise ValueError(f"`{text}` is none of {', '.join(self.choices)}{self._of_a_release(text)}")
            return text
        if self.is_optional and text == NO_LIMIT:
            return NO_LIMIT
        if self.type == "limit":
            return format_schedule(parse_schedule(text))
        if self.type == "rack":
            return self._rack(text)
        value = _PARSERS[self.type](text)
        if self.minimum is not None and value < self.minimum:
            raise ValueError(f"`{text}` is below the minimum, {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"`{text}` is above the maximum, {self.maximum}")
        return value

    def _rack(self, text: str) -> str:
        """The name of a rack. Raises ValueError if the text is no such name, or if the key has an invalid address."""
        kind, _, address = (self.one or "").partition(".")
        if kind == ADDRESS:
            subnet_of(address)
        if not re.fullmatch(_RACK, text):
            raise ValueError(f"`{text}` is no rack: expected 1 to 249 characters, without spaces, commas and `=`")
        return text

    def span(self, text: str) -> tuple[int, int]:
        """The ends of FROM..TO. Raises ValueError, which says what is wrong with it."""
        if self.choices or self.type in ("number", "rack"):
            raise ValueError(f"`{text}`: only whole numbers have values between; list the values, as A,B")
        ends = [self.parse(end.strip()) for end in text.split("..", 1)]
        if not all(isinstance(end, int) or str(end).isdecimal() for end in ends):
            raise ValueError(f"`{text}`: both ends have to be numbers")
        least, most = map(int, ends)
        if least >= most:
            raise ValueError(f"`{text}`: {self.format(ends[0])} is not below {self.format(ends[1])}")
        return least, most

    @property
    def searched_span(self) -> tuple[int, int]:
        """The ends of `searched`. Only for settings that have it."""
        return self.span(str(self.searched))

    def _of_a_release(self, text: str) -> str:
        """The end of a message on an unknown release: which known one has the same rules. Empty for other texts."""
        releases = [choice for choice in self.choices if _RELEASE.fullmatch(choice)]
        followed = followed_for(text, releases) if _RELEASE.fullmatch(text) else None
        return f"; the rules of {text} are those of {followed}" if followed else ""

    def format(self, value: Value) -> str:
        """The short spelling of a value, as in lane names; parse() reads it back."""
        if isinstance(value, str):
            return value
        return _FORMATS[self.type](int(value)) if self.type in _FORMATS else format_number(value)

    def order(self, value: Value) -> tuple[float, ...]:
        """Sort key of a value: numbers by size and then `none`, choices as declared, limits by their values and times,
        racks as text.
        """
        if self.type == "limit":
            schedule = parse_schedule(str(value))
            return *schedule.values, *schedule.times
        if self.type == "rack":
            return tuple(map(float, map(ord, str(value))))
        if self.choices:
            return (self.choices.index(str(value)),)
        return (math.inf if value == NO_LIMIT else float(value),)


def subnet_of(address: str) -> IPv4Network | IPv6Network | None:
    """The subnet in a text that is an address or a subnet; None for the pseudonym of an address. Raises ValueError for
    any other text.

    >>> str(subnet_of("10.0.1.0/24")), str(subnet_of("2001:db8::1")), subnet_of("host-0123456789abcdef")
    ('10.0.1.0/24', '2001:db8::1/128', None)
    """
    if is_pseudonym(HOST, address):
        return None
    try:
        return ip_network(address, strict=False)
    except ValueError:
        raise ValueError(f"`{address}` is neither an IP address nor a subnet, such as 10.0.1.0/24") from None


def followed_for(release: str, releases: Sequence[str]) -> str | None:
    """The release among `releases`, newest first, whose rules `release` follows: the oldest one that is not older than
    `release`. None if `release` is newer than all.

    >>> followed_for("3.5", ["4.0", "3.7", "2.4"]), followed_for("3.7.1", ["4.0", "3.7", "2.4"])
    ('3.7', '3.7')
    """
    wanted = numbers_of_release(release)[:2]
    return next((candidate for candidate in reversed(releases) if numbers_of_release(candidate) >= wanted), None)


@cache
def settings(path: Path = _SETTINGS_FILE) -> Mapping[str, Setting]:
    """Every setting by key, in the order of the file. Raises SettingError with all faults of the file, and SetupError
    if it cannot be read.
    """
    try:
        listed = TypeAdapter(list[Setting]).validate_python(yaml.safe_load(own_text(path)))
    except ValidationError as fault:
        lines = (f"entry {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in fault.errors())
        raise SettingError(path.name, tuple(lines)) from fault
    by_key = {setting.key: setting for setting in listed}
    if len(by_key) != len(listed):
        keys = [setting.key for setting in listed]
        twice = sorted(key for key in by_key if keys.count(key) > 1)
        raise SettingError(path.name, tuple(f"{key} is declared twice" for key in twice))
    return by_key


def algorithms() -> tuple[str, ...]:
    """Names of the replays that take any setting, in the order of the file."""
    return tuple(dict.fromkeys(name for setting in settings().values() for name in setting.algorithms))


def setting_of(key: str) -> Setting:
    """The setting with this key, also for one topic, client or user. Raises KeyError if there is none."""
    return settings().get(key) or find_setting(key, settings().values())


def key_with_names(key: str, called: Called) -> str:
    """The key of a setting, with other names for its topic, user and client.id. Keys without these stay unchanged."""
    setting = setting_of(key)
    if setting.one is None or setting.named == BROKER:
        return key
    spelt = (f"{kind}.{called(kind, name)}" if name else kind for kind, name in named_parts(setting))
    return setting.model_copy(update={"one": ".".join(spelt)}).key


def named_parts(setting: Setting) -> list[tuple[str, str]]:
    """The kinds of things that a setting is for, each with the name of one, or with an empty name for all of them.

    >>> named_parts(setting_of("topic.orders.max.message.bytes"))
    [('topic', 'orders')]
    >>> named_parts(setting_of("user.ann.client.consumer_byte_rate"))
    [('user', 'ann'), ('client', '')]
    """
    of_one = setting.one or setting.set_on or "client"
    if setting.named == "user.client":
        user, _, client = f"{of_one}.".removeprefix("user").partition(".client.")
        return [("user", user.strip(".")), ("client", client.strip("."))]
    kind, _, name = of_one.partition(".")
    return [(kind, name)]


def value_with_names(key: str, value: Value, called: Called) -> Value:
    """The value of a setting; a rack gets another name, as hosts do."""
    return called(HOST, str(value)) if setting_of(key).type == "rack" else value


def in_catalogue_order(keys: Iterable[str]) -> list[str]:
    """Keys in the order of the file. Keys for single topics, clients or users follow the key for all, by name."""
    places = {setting.key: place for place, setting in enumerate(settings().values())}

    def place(key: str) -> tuple[int, str]:
        setting = setting_of(key)
        return places[setting.of_all.key], setting.one or ""

    return sorted(keys, key=place)


def setting_of_one(name: str, setting: Setting) -> Setting | None:
    """The setting for one topic, client or user, if `name` has the form topic.NAME.max.message.bytes; else None."""
    if setting.named is None or not re.fullmatch(rf"{NAMED[setting.named]}\.{re.escape(setting.name)}", name):
        return None
    return setting.model_copy(update={"one": name.removesuffix(f".{setting.name}")})


def find_setting(name: str, candidates: Iterable[Setting]) -> Setting:
    """The candidate with this key; else the first one with this Kafka name; else the one for a single topic, client or
    user; else the only one whose name contains the word: `slots` is max.incremental.fetch.session.cache.slots.

    A bare Kafka name stands for the first setting in conf/settings.yaml that may be given in that place:
    `fetch.max.bytes` is the consumer's among lanes, and the broker's among captured settings. Raises KeyError with a
    hint if there is none.
    """
    candidates = tuple(candidates)
    for setting in candidates:
        if setting.key == name:
            return setting
    for setting in candidates:
        if setting.name == name:
            return setting
    for setting in candidates:
        if of_one := setting_of_one(name, setting):
            return of_one
    holding = [setting for setting in candidates if f".{name}." in f".{setting.name}."]
    if len(holding) == 1:
        return holding[0]
    if refused := next((why for word, why in NOT_REPLAYED.items() if name.rpartition(".")[2] == word), None):
        raise KeyError(refused)
    raise KeyError(did_you_mean(name, [spelling for s in candidates for spelling in (s.name, s.key)]))


def nearest_word_hint(word: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` with the nearest known word; empty if none is near."""
    near = difflib.get_close_matches(word, tuple(known), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def nearest_or_all_hint(word: str, known: Iterable[str], beside: Iterable[str] = ()) -> str:
    """`; did you mean ...?` with the nearest word, if one is near, and a list of all known words.

    beside: further words that may be meant, too many for the list.
    """
    known = tuple(dict.fromkeys(known))
    return f"{nearest_word_hint(word, (*known, *beside)) or ';'} known are {', '.join(known)}"


def did_you_mean(word: str, known: Iterable[str], listed: str = f"{SHOWN_DOCS}/settings.md") -> str:
    """`; did you mean ...?` with the nearest known word. If none is near, the list of known words; if that is long, the
    nearest ones and where the list is.
    """
    known = tuple(dict.fromkeys(known))
    if near := nearest_word_hint(word, known):
        return near
    if len(known) <= MOST_LISTED:
        return f"; known here: {', '.join(known)}"
    nearest = difflib.get_close_matches(word, known, n=NEAREST, cutoff=0)
    return f"; nearest are {', '.join(f'`{name}`' for name in nearest)}; {listed} has all"
