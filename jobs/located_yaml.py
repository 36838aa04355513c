"""YAML read as plain text values, with the line of each: what a checker needs to say where a fault is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import yaml

from udfs.errors import ScenarioError

Plain = str | None | list["Plain"] | dict[str, "Plain"]
Address = tuple[str | int, ...]
"""Where a value is: keys and list positions from the top."""


@dataclass
class LocatedYaml:
    """A YAML file: `data` with every scalar as written (null is None), `lines` by address, `faults` of form."""

    name: str
    data: Plain = None
    lines: dict[Address, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def at(self, address: Address) -> str:
        """`file:line` of the value at this address, or of the nearest one around it."""
        while address and address not in self.lines:
            address = address[:-1]
        return f"{self.name}:{self.lines.get(address, 1)}"


def read_located_yaml(path: str) -> LocatedYaml:
    """Read one YAML document. Scalars stay text: a profile written 4.10 must not become the number 4.1.

    Raises ScenarioError where the file cannot be read or is no YAML. A key given twice, or an alias, is in `faults`.
    """
    try:
        root = yaml.compose(Path(path).read_bytes(), Loader=yaml.SafeLoader)
    except OSError as fault:
        raise ScenarioError(
            path, (f"{path}: cannot be read: {fault.strerror}; give the path of a scenario file",)
        ) from fault
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        line = mark.line + 1 if mark else 1
        raise ScenarioError(path, (f"{path}:{line}: not YAML: {fault.problem or fault.context}",)) from fault
    except yaml.YAMLError as fault:
        raise ScenarioError(path, (f"{path}:1: not YAML text: {str(fault).splitlines()[0]}",)) from fault
    located = LocatedYaml(path)
    if root is not None:
        located.data = _Walk(located).plain(root, ())
    return located


class _Walk:
    """One pass over the composed nodes that fills a LocatedYaml."""

    def __init__(self, located: LocatedYaml) -> None:
        self.located = located
        self.seen: set[int] = set()

    def plain(self, node: yaml.Node, address: Address) -> Plain:
        self.located.lines.setdefault(address, node.start_mark.line + 1)
        # An alias may nest without end or multiply a small file into a huge one, and no scenario needs it.
        if id(node) in self.seen:
            self.fault(address, "an alias (*name) is not taken here; write the value out")
            return None
        self.seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, address)
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, (*address, i)) for i, item in enumerate(node.value)]
        return None if node.tag == "tag:yaml.org,2002:null" else str(node.value)

    def mapping(self, node: yaml.MappingNode, address: Address) -> dict[str, Plain]:
        plain: dict[str, Plain] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in plain:
                self.located.faults.append(
                    f"{self.located.name}:{key_node.start_mark.line + 1}: key `{key}` is given twice"
                )
                continue
            self.located.lines[(*address, key)] = key_node.start_mark.line + 1
            plain[key] = self.plain(value_node, (*address, key))
        return plain

    def fault(self, address: Address, text: str) -> None:
        self.located.faults.append(f"{self.located.at(address)}: {text}")
