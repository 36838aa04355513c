"""Looks up settings that somebody wrote in a file or a flag in the catalogue, and parses them. Faults are collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jobs.scenarios.located_yaml import MALFORMED, Address, Fault, LocatedYaml, Place
from jobs.scenarios.settings import Setting, Value, find_setting


@dataclass(frozen=True)
class Entry:
    """A setting as somebody wrote it: its name and its values, each with its place. A value may be MALFORMED."""

    place: Place
    name: str
    values: tuple[tuple[Place, str], ...]


def flag_entries(flag: str, texts: Iterable[str], faults: list[Fault]) -> Iterator[Entry]:
    """Entries of KEY=VALUE[,VALUE...] texts; any other text is a fault."""
    place = Place(0, flag)
    for text in texts:
        name, equals, values = text.partition("=")
        if equals and name.strip() and values.strip():
            yield Entry(place, name.strip(), tuple((place, value.strip()) for value in values.split(",")))
        else:
            faults.append(Fault(place, f"`{text}` is not KEY=VALUE"))


def file_entries(located: LocatedYaml, address: Address, grid: dict[str, list[str]]) -> Iterator[Entry]:
    """Entries of the mapping at this address of the file."""
    for name, values in grid.items():
        spot = (*address, name)
        yield Entry(located.at(spot), name, tuple((located.at((*spot, i)), value) for i, value in enumerate(values)))


def look_up_settings(
    entries: Iterable[Entry], known: Iterable[Setting], faults: list[Fault], why_not: Callable[[str], str]
) -> dict[str, tuple[Setting, Entry]]:
    """Each setting with its entry, by key. Unknown settings, and those that are given twice, are faults.

    why_not: says why a setting with this name may not be given here; empty if there is no such setting.
    """
    known = list(known)
    entries_by_key: dict[str, tuple[Setting, Entry]] = {}
    for entry in entries:
        try:
            setting = find_setting(entry.name, known)
        except KeyError as hint:
            message = why_not(entry.name) or f"unknown key `{entry.name}`{hint.args[0]}"
            faults.append(Fault(entry.place, message))
            continue
        if setting.key in entries_by_key:
            faults.append(Fault(entry.place, f"{setting.key} is given twice"))
            parse_values(*entries_by_key[setting.key], faults)  # its faults count, too
        entries_by_key[setting.key] = (setting, entry)
    return entries_by_key


def parse_values(setting: Setting, entry: Entry, faults: list[Fault]) -> tuple[Value, ...]:
    """The entry's values, parsed, ascending, each once; without MALFORMED, whose fault is already noted."""
    values: set[Value] = set()
    for place, text in entry.values:
        if text == MALFORMED:
            continue
        try:
            values.add(setting.parse(text))
        except ValueError as fault:
            faults.append(Fault(place, f"{setting.key}: {fault}"))
    if not entry.values:
        faults.append(Fault(entry.place, f"{setting.key} has no value"))
    return tuple(sorted(values, key=setting.order))
