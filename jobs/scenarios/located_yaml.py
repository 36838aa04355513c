"""Reads YAML as plain text values with the line of each, so that a checker can say where a fault is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

import yaml
from pydantic import BeforeValidator

from udfs.errors import ScenarioError

Plain = str | None | list["Plain"] | dict[str, "Plain"]
Address = tuple[str | int, ...]
"""Where a value is: keys and list positions from the top."""
MOST_NESTED = 32
MALFORMED = "\0"
"""Replaces a value whose fault is already noted, so that the values around it are still checked. No YAML has this
character.
"""


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def empty_as_mapping(value: object) -> object:
    """The value, or an empty mapping if a file leaves it empty."""
    return {} if value is None else value


Texts = Annotated[list[str], BeforeValidator(_as_list)]
"""A list of texts in a model of a file; a single text counts as a list of one."""
TextsByKey = Annotated[dict[str, Texts], BeforeValidator(empty_as_mapping)]
"""A mapping from names to such lists in a model of a file; an empty value counts as an empty mapping."""


class Place(NamedTuple):
    """Where something was written: a line of a file (from 1), or a flag (line 0)."""

    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name


class Fault(NamedTuple):
    """What is wrong, and where."""

    place: Place
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass
class LocatedYaml:
    """A YAML file: `data` with every scalar as written (null is None), `lines` by address, `faults` of form.

    If a key is given several times, the data has the first value.
    others: for each further value, the file with only that value; for keys within lists there are none.
    """

    name: str
    data: Plain = None
    lines: dict[Address, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    others: list[LocatedYaml] = field(default_factory=list)

    def at(self, address: Address) -> Place:
        """The place of the value at this address; if there is none, of the nearest value around it."""
        while address and address not in self.lines:
            address = address[:-1]
        return Place(self.lines.get(address, 1), self.name)


def read_located_yaml(path: str, kind: str) -> LocatedYaml:
    """Read one YAML document. Scalars stay text: a profile written as 4.10 must not become the number 4.1.

    kind: the kind of file for messages, such as `a scenario file`. Raises ScenarioError if the file cannot be read, is
    not YAML, or has an alias. A key that is given twice is in `faults`.
    """
    try:
        text = Path(path).read_bytes()
        aliases = _aliases_in(path, text)
        root = None if aliases else yaml.compose(text, yaml.SafeLoader)
    except OSError as fault:
        raise _error_at_line(path, 0, f"cannot be read: {fault.strerror}; give the path of {kind}") from fault
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        raise _error_at_line(
            path, mark.line + 1 if mark else 1, f"not YAML: {fault.problem or fault.context}"
        ) from fault
    except yaml.YAMLError as fault:
        raise _error_at_line(path, 1, f"not YAML text: {str(fault).splitlines()[0]}") from fault
    for alias in aliases:
        line = alias.start_mark.line + 1 if alias.start_mark else 1
        raise _error_at_line(path, line, f"alias *{alias.anchor} is not taken here; write the value out")
    located = LocatedYaml(path)
    if root is not None:
        located.data = _plain_value(located, root, ())
    return located


def _aliases_in(path: str, text: bytes) -> list[yaml.AliasEvent]:
    """The aliases in a YAML file. An alias may nest without end or make a small file huge, and no scenario needs one.

    Raises ScenarioError if lists and mappings nest deeper than those of any scenario.
    """
    aliases, depth = [], 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_NESTED:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise _error_at_line(
                path, line, f"lists and mappings are nested more than {MOST_NESTED} deep, which is not needed"
            )
        if isinstance(event, yaml.AliasEvent):
            aliases.append(event)
    return aliases


def _error_at_line(path: str, line: int, text: str) -> ScenarioError:
    return ScenarioError(path, (str(Fault(Place(line, path), text)),))


def _plain_value(located: LocatedYaml, node: yaml.Node, address: Address) -> Plain:
    """The node as plain text values. Lines, and keys that are given twice, are noted in `located`."""
    located.lines.setdefault(address, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _plain_mapping(located, node, address)
    if isinstance(node, yaml.SequenceNode):
        return [_plain_value(located, item, (*address, i)) for i, item in enumerate(node.value)]
    return None if node.tag == "tag:yaml.org,2002:null" else str(node.value)


def _plain_mapping(located: LocatedYaml, node: yaml.MappingNode, address: Address) -> dict[str, Plain]:
    """As `_plain_value`."""
    plain: dict[str, Plain] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in plain:
            other = _file_with_one_value(located, value, (*address, name), line)
            located.faults += [Fault(Place(line, located.name), f"key `{name}` is given twice"), *other.faults]
            located.others += [] if other.data is None else [other, *other.others]
        else:
            located.lines[(*address, name)] = line
            plain[name] = _plain_value(located, value, (*address, name))
    return plain


def _file_with_one_value(located: LocatedYaml, node: yaml.Node, address: Address, line: int) -> LocatedYaml:
    """The file with only this value, inside the mappings around it. Its data is None if a list is around the value.

    node: the value. address, line: where it is.
    """
    around = {address[:n]: located.at(address[:n]).line for n in range(len(address))}
    other = LocatedYaml(located.name, lines=around | {address: line})
    plain = _plain_value(other, node, address)
    for step in reversed(address):
        plain = {str(step): plain}
    other.data = plain if all(isinstance(step, str) for step in address) else None
    return other
