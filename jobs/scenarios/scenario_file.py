"""Resolves a scenario file, --set, --captured and --find into a Scenario, or into one error with every fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from jobs.places import is_folder
from jobs.scenarios.aim_entries import KEYS_OF_AIM, AimTexts, resolve_aims
from jobs.scenarios.aims import Aim
from jobs.scenarios.located_yaml import (
    MALFORMED,
    Address,
    Fault,
    LocatedYaml,
    Place,
    Plain,
    Texts,
    TextsByKey,
    empty_as_mapping,
    read_located_yaml,
)
from jobs.scenarios.moment import Moment, parse_moment
from jobs.scenarios.scenario import MOST_LANES, Scenario, lane_count, with_grids
from jobs.scenarios.setting_entries import Entry, file_entries, flag_entries, look_up_settings, parse_values
from jobs.scenarios.settings import (
    BROKER,
    ON_REQUEST,
    Setting,
    Value,
    algorithms,
    did_you_mean,
    find_setting,
    setting_of,
    settings,
)
from udfs.errors import ScenarioError
from udfs.replay.partition_limits.schedule import EXPECTED


class ScenarioText(BaseModel):
    """The keys of a scenario file before any setting is looked up."""

    model_config = ConfigDict(extra="forbid")

    captures: Texts = Field(default_factory=list)
    log_zone: str | None = None
    lake: str | None = None
    cluster: str | None = None
    captured: Annotated[dict[str, str], BeforeValidator(empty_as_mapping)] = Field(default_factory=dict)
    replay: Annotated[dict[str, TextsByKey], BeforeValidator(empty_as_mapping)] = Field(default_factory=dict)
    find: AimTexts = Field(default_factory=dict)
    begin: str | None = Field(default=None, alias="from")
    end: str | None = Field(default=None, alias="to")


KEYS = tuple(field.alias or name for name, field in ScenarioText.model_fields.items())
"""The keys of a scenario file."""
_MEANING = {
    "string_type": "must be one value",
    "list_type": "must be a value or a list of values",
    "dict_type": "must be a mapping of keys to values",
}

_MOST_WRITTEN = 100 * MOST_LANES
"""The most lanes that a grid may have by its values as written. Values of a larger grid are not even parsed."""


def resolve_scenario(
    path: str | None,
    sets: Iterable[str] = (),
    stated: Iterable[str] = (),
    aimed: Iterable[str] = (),
    window: Mapping[str, str | None] = MappingProxyType({}),
) -> Scenario:
    """The scenario of a file (None for an empty one) with the flags `--set KEY=VALUE[,VALUE...]`,
    `--captured KEY=VALUE` and `--find AIM`.

    A `--set` replaces the values of that setting in every algorithm that takes it, a `--captured` the file's value, and
    a `--find` the file's aim for that replay. window: the values of `--from` and `--to`, by `from` and `to`; each
    replaces the file's. Raises ScenarioError with all faults of file and flags.
    """
    located = read_located_yaml(path, "a scenario file") if path else LocatedYaml("scenario")
    faults = list(located.faults)
    for other in located.others:
        _resolve_parts(other, (), (), (), faults)
    text, captured, replay, aims = _resolve_parts(located, sets, stated, aimed, faults)
    begin, end = _window_of(located, {"from": text.begin, "to": text.end}, window, faults)
    if faults:
        in_order = sorted(faults, key=lambda fault: (not fault.place.line, fault.place.line))
        # A flag's value is parsed for each replay that takes it.
        raise ScenarioError(path or "arguments", tuple(dict.fromkeys(map(str, in_order))))
    folder = Path(path).parent if path else Path()
    captures = tuple(_from_folder(folder, capture) for capture in text.captures)
    scenario = Scenario(
        captured={},
        replay={},
        captures=captures,
        places={capture: str(located.at(("captures", i))) for i, capture in enumerate(captures)},
        log_zone=text.log_zone,
        lake=None if text.lake is None else _from_folder(folder, text.lake),
        cluster=None if text.cluster is None else _from_folder(folder, text.cluster),
        stated=captured,
        aims=aims,
        begin=begin,
        end=end,
    )
    is_named = bool(text.replay) or any(replay.values()) or bool(aims)
    return replace(with_grids(scenario, replay), names_replays=is_named)


def _window_of(
    located: LocatedYaml, in_file: Mapping[str, str | None], in_flags: Mapping[str, str | None], faults: list[Fault]
) -> tuple[Moment | None, Moment | None]:
    """The begin and the end of the window; None for one that is not given. Whether they lie within the capture is
    checked later, when the capture is known.
    """
    ends: dict[str, tuple[Place, Moment]] = {}
    for key in ("from", "to"):
        flag = in_flags.get(key)
        text, place = (in_file[key], located.at((key,))) if flag is None else (flag, Place(0, f"--{key}"))
        if text is None or text == MALFORMED:
            continue
        try:
            ends[key] = place, parse_moment(text)
        except ValueError as fault:
            faults.append(Fault(place, str(fault) if flag is not None else f"{key}: {fault}"))
    moments = {key: at for key, (_, at) in ends.items()}
    begin, end = moments.get("from"), moments.get("to")
    if begin is not None and end is not None and begin.is_after_begin == end.is_after_begin and begin.us >= end.us:
        faults.append(Fault(ends["to"][0], f"the window ends at {end}, and begins no earlier than that, at {begin}"))
    return begin, end


def _resolve_parts(
    located: LocatedYaml, sets: Iterable[str], stated: Iterable[str], aimed: Iterable[str], faults: list[Fault]
) -> tuple[ScenarioText, dict[str, Value], dict[str, dict[str, tuple[Value, ...]]], dict[str, Aim]]:
    """(the file's text, the settings in force that somebody stated, the grid of each algorithm, the aim of each)."""
    text = _scenario_text(located, faults)
    captured = _captured_settings(located, text, list(flag_entries("--captured", stated, faults)), faults)
    aims = resolve_aims(located, text.find, aimed, faults)
    sets_given = list(flag_entries("--set", sets, faults))
    return text, captured, _replay_grids(located, text, sets_given, captured, aims, faults), aims


def _from_folder(folder: Path, path: str) -> str:
    """A path in a scenario file, resolved against the file's folder. An absolute path, a URI and a lake in a catalog
    stay unchanged.
    """
    return str(folder / path) if is_folder(path) else path


def _scenario_text(located: LocatedYaml, faults: list[Fault]) -> ScenarioText:
    try:
        return ScenarioText.model_validate({} if located.data is None else located.data)
    except ValidationError as fault:
        faults.extend(Fault(located.at(error["loc"]), _shape_fault_text(error)) for error in fault.errors())
        # What is around it is still checked, so that one run reports all faults.
        return ScenarioText.model_validate(_without_malformed(located.data, fault.errors()))


def _without_malformed(data: Plain, errors: Iterable[ErrorDetails]) -> Plain:
    """The data without unknown keys. A malformed mapping is replaced by an empty one, any other malformed value by
    MALFORMED.
    """
    if not isinstance(data, dict):
        return {}
    for error in errors:
        *around, last = error["loc"]
        within: Any = data
        for step in around:
            within = within[step]
        if error["type"] == "extra_forbidden":
            del within[last]
        else:
            within[last] = {} if error["type"] in ("dict_type", "model_type") else MALFORMED
    return data


def _shape_fault_text(error: ErrorDetails) -> str:
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        fields = KEYS_OF_AIM if error["loc"][0] == "find" else KEYS
        return f"unknown key `{key}`{did_you_mean(str(error['loc'][-1]), fields)}"
    if error["type"] == "model_type" and error["loc"]:
        return f"`{key}` is a mapping with the keys {', '.join(KEYS_OF_AIM)}"
    if error["type"] == "model_type":
        return f"a scenario is a mapping with the keys {', '.join(KEYS)}"
    return f"`{key}` {_MEANING.get(error['type'], error['msg'])}{_form_of(error['loc'])}"


def _form_of(address: Address) -> str:
    """How to write a limit, if the value at this address is one: people write its times as a mapping or a list."""
    name = next(str(step) for step in reversed(address) if isinstance(step, str))
    try:
        is_limit = find_setting(name, settings().values()).type == "limit"
    except KeyError:
        return ""
    return f", {EXPECTED}" if is_limit else ""


def _captured_settings(
    located: LocatedYaml, text: ScenarioText, flags: Sequence[Entry], faults: list[Fault]
) -> dict[str, Value]:
    """The value of each setting that somebody stated as in force, by key; a flag overrides the file."""
    known = [setting for setting in settings().values() if setting.captured]
    in_file = file_entries(located, ("captured",), {name: [value] for name, value in text.captured.items()})
    entries = look_up_settings(in_file, known, faults, _why_not_captured) | look_up_settings(
        flags, known, faults, _why_not_captured
    )
    for setting, entry in entries.values():
        if len(entry.values) > 1:
            message = f"{setting.key}: one value was in force, and {len(entry.values)} are given"
            faults.append(Fault(entry.place, message))
    parsed = {key: parse_values(setting, entry, faults) for key, (setting, entry) in entries.items()}
    return {key: values[0] for key, values in parsed.items() if values}


def _replay_grids(
    located: LocatedYaml, text: ScenarioText, flags: Sequence[Entry], stated: Iterable[str], aims: Iterable[str],
    faults: list[Fault],
) -> dict[str, dict[str, tuple[Value, ...]]]:  # fmt: skip
    """The grid of each algorithm that is replayed.

    If the file names no replay, all are replayed, with only the captured lane if no flag adds values. Those in
    ON_REQUEST are then left out, unless a flag names one of their settings, or they have an aim.
    """
    names = [*dict.fromkeys(name for name in (*text.replay, *aims) if name in algorithms())]
    names = names if text.replay else [*algorithms()]
    varied = [setting.in_lanes for setting in settings().values() if set(setting.algorithms) & set(names)]
    in_flags = look_up_settings(flags, varied, faults, _why_not_taken(", ".join(names)))
    taken_by = [setting_of(key).algorithms for key in (*in_flags, *stated)]
    requested = {names[0] for names in taken_by if names} | {*aims}
    grids = {}
    for name in _wanted_replays(located, text, requested, aims, faults):
        takes = [setting.in_lanes for setting in settings().values() if name in setting.algorithms]
        entries = file_entries(located, ("replay", name), text.replay.get(name, {}))
        in_file = look_up_settings(entries, takes, faults, _why_not_taken(name))
        given_settings = in_file | {key: pair for key, pair in in_flags.items() if name in pair[0].algorithms}
        # One value may be written in several ways. So this count may be too high, and is only for very large grids.
        written = {key: tuple({text for _, text in entry.values}) for key, (_, entry) in given_settings.items()}
        lanes = lane_count(written)
        if lanes <= _MOST_WRITTEN:
            grids[name] = {
                key: parse_values(setting, entry, faults) for key, (setting, entry) in given_settings.items()
            }
            lanes = lane_count(grids[name])
        if lanes > MOST_LANES:
            faults.append(Fault(located.at(("replay", name)), f"{name} has {lanes} lanes; at most {MOST_LANES}"))
    return grids


def _wanted_replays(
    located: LocatedYaml, text: ScenarioText, requested: Set[str], aimed: Iterable[str], faults: list[Fault]
) -> list[str]:
    """The names of the algorithms to replay: those that the file and the aims name. If the file names none: all that
    need no request, and those in `requested`. Unknown names in the file are faults.
    """
    known = algorithms()
    usual = [name for name in known if name not in ON_REQUEST or name in requested]
    for name in text.replay:
        if name not in known:
            place = located.at(("replay", name))
            faults.append(Fault(place, f"unknown algorithm `{name}`{did_you_mean(name, known)}"))
    return [name for name in (dict.fromkeys((*text.replay, *aimed)) if text.replay else usual) if name in known]


def _why_not_captured(name: str) -> str:
    """Why an existing setting may not be stated as captured; empty if no setting has this name."""
    try:
        setting = find_setting(name, settings().values())
    except KeyError:
        return _of_no_broker(name)
    return f"{setting.key} is in the capture, so it cannot be stated; to replay others, vary it (replay:, --set)"


def _of_no_broker(name: str) -> str:
    """Why a setting cannot be given for one broker; empty if the name has not the form broker.ID.SETTING."""
    spelt = re.fullmatch(r"broker\.([^.]+)\.(.+)", name)
    known = [setting for setting in settings().values() if setting.named == BROKER]
    of_all = [key.removeprefix("broker.") for key in settings() if key.startswith("broker.")]
    if spelt is None or spelt[1] in {name.partition(".")[0] for name in of_all}:  # a misspelt setting of all brokers
        return ""
    if of_broker := next((setting for setting in known if spelt[2] in (setting.name, setting.key)), None):
        right = f"broker.{spelt[1] if spelt[1].isdecimal() else 'ID'}.{of_broker.name}"
        return f"{name}: expected {right}, in which ID is the broker's node id, a number"
    if any(spelt[2] == setting.key and not setting.captured for setting in settings().values()):
        return f"{name}: {spelt[2]} is in the capture, for each broker, so it cannot be stated"
    names = ", ".join(f"broker.ID.{setting.name}" for setting in known)
    return f"{name} cannot be stated for one broker; what can be is {names}"


def _why_not_taken(replays: str) -> Callable[[str], str]:
    """A function that says why lanes of these replays cannot vary the setting with a given name; empty if no setting
    has the name.
    """

    def why_not(name: str) -> str:
        try:
            setting = find_setting(name, settings().values())
        except KeyError:
            return _of_no_broker(name)
        if setting.is_of_one_broker and setting.algorithms:
            return f"{name}: a lane has one value for all brokers; vary {setting.of_all.key}, or state this as captured"
        return f"{name} is no setting of {replays}: {_where_it_belongs(setting)}"

    return why_not


def _where_it_belongs(setting: Setting) -> str:
    """Where to give a setting that lanes cannot vary where it was given, as the end of a message."""
    if not setting.algorithms:
        return "no replay varies it; state it under `captured:`, or with --captured"
    first, *others = setting.algorithms
    also = f" and {' and '.join(others)}" if others else ""
    return f"it is one of {first}{also}; have `{first}:` under `replay:` for it"
