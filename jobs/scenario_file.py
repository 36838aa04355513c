"""From a scenario file, --set and --captured to a resolved Scenario, or to one error with every fault in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from jobs.located_yaml import Address, LocatedYaml, read_located_yaml
from jobs.paths import is_uri
from jobs.scenario import MOST_LANES, Scenario, lane_count
from jobs.settings import Setting, Value, algorithms, did_you_mean, find_setting, settings
from udfs.errors import ScenarioError


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _given(value: object) -> object:
    return {} if value is None else value


Texts = Annotated[list[str], BeforeValidator(_listed)]
Grid = Annotated[dict[str, Texts], BeforeValidator(_given)]


class ScenarioText(BaseModel):
    """The shape of a scenario file before any setting is looked up."""

    model_config = ConfigDict(extra="forbid")

    captures: Texts = Field(default_factory=list)
    lake: str | None = None
    captured: Annotated[dict[str, str], BeforeValidator(_given)] = Field(default_factory=dict)
    replay: Annotated[dict[str, Grid], BeforeValidator(_given)] = Field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A setting as somebody wrote it: its name, its values, and where each stands."""

    where: str
    name: str
    values: tuple[tuple[str, str], ...]


_MEANING = {
    "string_type": "must be one value",
    "list_type": "must be a value or a list of values",
    "dict_type": "must be a mapping of keys to values",
}


def resolve_scenario(path: str | None, sets: Iterable[str] = (), stated: Iterable[str] = ()) -> Scenario:
    """The scenario of a file (None: an empty one) under `--set KEY=VALUE[,VALUE...]` and `--captured KEY=VALUE`.

    A `--set` replaces the values of that setting in every algorithm that takes it, a `--captured` the file's value.
    Raises ScenarioError with all faults of file and flags.
    """
    located = read_located_yaml(path) if path else LocatedYaml("scenario")
    faults = list(located.faults)
    text = _scenario_text(located, faults)
    captured = _captured(located, text, list(_flag_entries("--captured", stated, faults)), faults)
    replay = _replay(located, text, list(_flag_entries("--set", sets, faults)), faults)
    if faults:
        raise ScenarioError(path or "arguments", tuple(faults))
    folder = Path(path).parent if path else Path()
    in_force = {key: s.default_value for key, s in settings().items() if s.captured} | captured
    return Scenario(
        captured={key: value for key, value in in_force.items() if value is not None},
        replay=replay,
        captures=tuple(_beside(folder, capture) for capture in text.captures),
        lake=None if text.lake is None else _beside(folder, text.lake),
        assumed=tuple(key for key in in_force if key not in captured),
    )


def _beside(folder: Path, path: str) -> str:
    """A path of a scenario file, which stands for the file's own folder unless absolute or on another file system."""
    return path if is_uri(path) else str(folder / path)


def _scenario_text(located: LocatedYaml, faults: list[str]) -> ScenarioText:
    try:
        return ScenarioText.model_validate({} if located.data is None else located.data)
    except ValidationError as fault:
        faults.extend(f"{located.at(error['loc'])}: {_told(error)}" for error in fault.errors())
        # What is well formed is still checked, so that one run tells all faults.
        wrong = {error["loc"][0] for error in fault.errors() if error["loc"]}
        rest = (
            {key: value for key, value in located.data.items() if key not in wrong}
            if isinstance(located.data, dict)
            else {}
        )
        return ScenarioText.model_validate(rest)


def _told(error: ErrorDetails) -> str:
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"unknown key `{key}`{did_you_mean(key, ScenarioText.model_fields)}"
    if error["type"] == "model_type":
        return f"a scenario is a mapping with the keys {', '.join(ScenarioText.model_fields)}"
    return f"`{key}` {_MEANING.get(error['type'], error['msg'])}"


def _flag_entries(flag: str, texts: Iterable[str], faults: list[str]) -> Iterator[Entry]:
    for text in texts:
        name, equals, values = text.partition("=")
        if equals and name.strip() and values.strip():
            yield Entry(flag, name.strip(), tuple((flag, value.strip()) for value in values.split(",")))
        else:
            faults.append(f"{flag}: `{text}` is not KEY=VALUE")


def _file_entries(located: LocatedYaml, address: Address, grid: dict[str, list[str]]) -> Iterator[Entry]:
    for name, values in grid.items():
        spot = (*address, name)
        yield Entry(located.at(spot), name, tuple((located.at((*spot, i)), value) for i, value in enumerate(values)))


def _captured(located: LocatedYaml, text: ScenarioText, flags: list[Entry], faults: list[str]) -> dict[str, Value]:
    """Value of each captured setting that was stated; a flag goes before the file."""
    known = [setting for setting in settings().values() if setting.captured]
    in_file = _file_entries(located, ("captured",), {name: [value] for name, value in text.captured.items()})
    found = _look_up(in_file, known, faults, _not_captured) | _look_up(flags, known, faults, _not_captured)
    for setting, entry in found.values():
        if len(entry.values) > 1:
            faults.append(f"{entry.where}: {setting.key}: one value was in force, and {len(entry.values)} are given")
    parsed = {key: _values(setting, entry, faults) for key, (setting, entry) in found.items()}
    return {key: values[0] for key, values in parsed.items() if values}


def _replay(
    located: LocatedYaml, text: ScenarioText, flags: list[Entry], faults: list[str]
) -> dict[str, dict[str, tuple[Value, ...]]]:
    """The grid of each algorithm: all of them, each with the captured lane alone, where the file names none."""
    unknown = [name for name in text.replay if name not in algorithms()]
    for name in unknown:
        faults.append(f"{located.at(('replay', name))}: unknown algorithm `{name}`{did_you_mean(name, algorithms())}")
    wanted = [name for name in text.replay if name not in unknown] or ([] if unknown else list(algorithms()))
    takes = {name: [setting for setting in settings().values() if name in setting.algorithms] for name in wanted}
    in_flags = _look_up(flags, settings().values(), faults, lambda _: "")
    for setting, entry in in_flags.values():
        if wanted and not set(setting.algorithms) & set(wanted):
            faults.append(f"{entry.where}: no algorithm of this scenario takes {setting.key} ({', '.join(wanted)})")
    grids = {}
    for name in wanted:
        in_file = _look_up(
            _file_entries(located, ("replay", name), text.replay.get(name, {})), takes[name], faults, _not_taken(name)
        )
        found = in_file | {key: pair for key, pair in in_flags.items() if name in pair[0].algorithms}
        grids[name] = {key: _values(setting, entry, faults) for key, (setting, entry) in found.items()}
        if lane_count(grids[name]) > MOST_LANES:
            faults.append(
                f"{located.at(('replay', name))}: {name} has {lane_count(grids[name])} lanes; at most {MOST_LANES}"
            )
    return grids


def _look_up(
    entries: Iterable[Entry], known: Iterable[Setting], faults: list[str], why_not: Callable[[str], str]
) -> dict[str, tuple[Setting, Entry]]:
    """Setting and entry by key, each once."""
    known = list(known)
    found: dict[str, tuple[Setting, Entry]] = {}
    for entry in entries:
        try:
            setting = find_setting(entry.name, known)
        except KeyError as hint:
            faults.append(f"{entry.where}: " + (why_not(entry.name) or f"unknown key `{entry.name}`{hint.args[0]}"))
            continue
        if setting.key in found:
            faults.append(f"{entry.where}: {setting.key} is given twice")
        found[setting.key] = (setting, entry)
    return found


def _not_captured(name: str) -> str:
    """Why a setting that exists may not be stated as captured; empty where none of that name exists."""
    try:
        setting = find_setting(name, settings().values())
    except KeyError:
        return ""
    return f"{setting.key} is in the capture, so it cannot be stated; to replay others, vary it (replay:, --set)"


def _not_taken(algorithm: str) -> Callable[[str], str]:
    """Why a setting that exists is no lane of this algorithm."""

    def why_not(name: str) -> str:
        return f"{algorithm} does not take {name}" if name in settings() else ""

    return why_not


def _values(setting: Setting, entry: Entry, faults: list[str]) -> tuple[Value, ...]:
    """The entry's values, parsed, ascending, each once."""
    values: set[Value] = set()
    for where, text in entry.values:
        try:
            values.add(setting.parse(text))
        except ValueError as fault:
            faults.append(f"{where}: {setting.key}: {fault}")
    if not entry.values:
        faults.append(f"{entry.where}: {setting.key} has no value")
    return tuple(sorted(values, key=setting.order))
