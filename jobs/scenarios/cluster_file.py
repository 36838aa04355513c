"""Reads a cluster from a YAML file, with its topics and their growth, to size partition limits on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from jobs.paths import SHOWN_CONF
from jobs.scenarios.cluster import Broker, Cluster, Growth, SizeClass, Topics
from jobs.scenarios.located_yaml import Address, Fault, LocatedYaml, Plain, read_located_yaml
from jobs.scenarios.settings import did_you_mean
from udfs.errors import ScenarioError

MAX_PARTITIONS = 5_000_000
"""The most partitions that a described cluster may have in the end; more counts as a typing error."""
_MODELS: Mapping[tuple[str, ...], type[BaseModel]] = {
    (): Cluster, ("brokers",): Broker, ("topics",): Topics, ("growth",): Growth, ("growth", "topics"): SizeClass
}  # fmt: skip
"""The model of each mapping in the file, by the keys that lead to it."""
_LISTS = (("brokers",), ("growth", "topics"))
"""Where the file must have a list of mappings."""
_BROKERS = "`brokers` is a list of {id, rack}, or {count: N, racks: [a, b]}"
_EXPECTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a number",
    "greater_than": "more than {gt:,.0f}",
    "greater_than_equal": "{ge:,.0f} or more",
    "less_than_equal": "at most {le:,.0f}",
    "timezone_aware": "a time with its zone, such as 2026-01-31T12:00:00Z",
    "datetime_from_date_parsing": "a time with its zone, such as 2026-01-31T12:00:00Z",
    "list_type": "a list",
    "model_type": "a mapping",
    "string_type": "one value",
}
"""What is expected, by pydantic's error type."""
_LEAST = {"id": "0", "partitions": "1", "replication.factor": "1", "topics.per.day": "5e-324", "days": "5e-324"}
"""The smallest allowed value of a key."""


def read_cluster(path: str) -> Cluster:
    """The cluster that a file describes. Raises ScenarioError, which has every fault of the file with its line."""
    located = read_located_yaml(path, f"a file that describes a cluster, such as {SHOWN_CONF}/clusters/example.yaml")
    faults, unknown = list(located.faults), set[Address]()
    data = {} if located.data is None else located.data
    if isinstance(data, dict) and isinstance(short := data.get("brokers"), dict):
        brokers = _brokers_from_count(short)
        if isinstance(brokers, str):
            faults.append(Fault(located.at(("brokers",)), brokers))
            unknown, brokers = {("brokers",)}, _stand_in(("brokers",))
        data = data | {"brokers": brokers}
    try:
        cluster = Cluster.model_validate(data)
    except ValidationError as fault:
        errors = fault.errors()
        faults += [Fault(located.at(error["loc"]), _fault_text(error)) for error in errors]
        unknown |= {error["loc"] for error in errors}
        cluster = Cluster.model_validate(_with_stand_ins(data, errors))
    faults += contradictions(located, cluster, unknown)
    if faults:
        raise ScenarioError(path, tuple(map(str, sorted(faults, key=lambda fault: fault.place.line))))
    return cluster


def _brokers_from_count(short: dict[str, Plain]) -> Plain:
    """The list of brokers for `{count: N, racks: [...]}`: their ids begin at 1, and the racks take turns.

    If the mapping is wrong, a text that says what is wrong.
    """
    count, racks = short.get("count"), short.get("racks") or []
    if not isinstance(racks, list) or any(isinstance(rack, list | dict) for rack in racks):
        return _BROKERS
    if set(short) - {"count", "racks"} or not isinstance(count, str) or not count.isdecimal():
        return _BROKERS
    if len(count) > 9 or not 1 <= int(count) <= 10_000:
        return f"`brokers.count` is {count}, and not from 1 to 10,000"
    return [{"id": str(i + 1), "rack": racks[i % len(racks)] if racks else None} for i in range(int(count))]


def _fields_at(address: Address) -> dict[str, FieldInfo]:
    """The fields of the mapping at this address, by key."""
    model = _MODELS[tuple(step for step in address if isinstance(step, str))]
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _fault_text(error: ErrorDetails) -> str:
    if not error["loc"]:
        keys = ", ".join(_fields_at(()))
        return f"a cluster is a mapping with the keys {keys}; {SHOWN_CONF}/clusters/example.yaml is one"
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"unknown key `{key}`{did_you_mean(str(error['loc'][-1]), _fields_at(error['loc'][:-1]))}"
    if error["type"] == "missing":
        return f"`{key}` is missing"
    if error["loc"] == ("brokers",):
        return _BROKERS
    expected = _EXPECTED.get(error["type"])
    if expected is None:
        return f"`{key}`: {error['msg'].lower()}"
    return f"`{key}` is {_kind_or_value(error['input'])}; expected {expected.format(**error.get('ctx', {}))}"


def _kind_or_value(value: object) -> str:
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"{value}"


def _with_stand_ins(data: Plain, errors: Iterable[ErrorDetails]) -> Plain:
    """The data without wrong values, or with stand-ins for them, so that everything around them is still checked."""
    for error in errors:
        if not error["loc"]:
            return _stand_in(())
        *around, last = error["loc"]
        within: Any = data
        for step in around:
            within = within[step]
        field = _fields_at(tuple(around)).get(last) if isinstance(last, str) else None
        if isinstance(last, str) and (field is None or not field.is_required()):
            del within[last]
        else:
            within[last] = _stand_in(error["loc"])
    return data


def _stand_in(address: Address) -> Plain:
    """The smallest value allowed at an address, which contradicts nothing. A name is made from the address."""
    if address in _LISTS:
        return [_stand_in((*address, 0))]
    if address and address[-1] == "name":
        return f"`{'.'.join(map(str, address[:-1]))}`"
    if address and address[-1] in _LEAST:
        return _LEAST[str(address[-1])]
    return {key: _stand_in((*address, key)) for key, field in _fields_at(address).items() if field.is_required()}


def contradictions(located: LocatedYaml, cluster: Cluster, unknown: Set[Address]) -> Iterator[Fault]:
    """The contradictions in a file, such as a broker that is given twice.

    unknown: the addresses at which the file is malformed; there the cluster has the smallest allowed values.
    """
    sized: dict[Address, Topics | SizeClass] = {("topics", i): topics for i, topics in enumerate(cluster.topics)}
    sized |= {("growth", "topics", i): topics for i, topics in enumerate(cluster.growth.topics)}
    brokers = enumerate(cluster.brokers)
    ids = [broker.id for i, broker in brokers if not {("brokers", i), ("brokers", i, "id")} & unknown]
    yield from (Fault(located.at(("brokers",)), f"broker {node} is given twice") for node in _repeated_values(ids))
    if not {(), ("brokers",)} & unknown:
        yield from _short_of_brokers(located, sized, len(cluster.brokers) - len(ids) + len(set(ids)))
    names = set(_repeated_values(topics.name for topics in sized.values()))
    again = [(address, topics.name) for address, topics in sized.items() if topics.name in names]
    yield from (Fault(located.at(address), f"{name} is given twice") for address, name in again)
    partitions = partitions_in_the_end(cluster)
    if partitions > MAX_PARTITIONS:
        fault = f"{'at least ' if unknown else ''}{partitions:,} partitions in the end; at most {MAX_PARTITIONS:,}"
        yield Fault(located.at(()), fault)


def _short_of_brokers(
    located: LocatedYaml, sized: Mapping[Address, Topics | SizeClass], brokers: int
) -> Iterator[Fault]:
    """A fault for each entry of topics with more replicas than there are brokers.

    sized: the entries by address. brokers: how many brokers there are.
    """
    for address, topics in sized.items():
        if topics.replication_factor > brokers:
            fault = f"{topics.name}: replication.factor {topics.replication_factor} on {brokers} brokers"
            yield Fault(located.at(address), fault)


def partitions_in_the_end(cluster: Cluster) -> int:
    """The number of partitions of existing and future topics."""
    present = sum(topics.count * topics.partitions for topics in cluster.topics)
    growth = cluster.growth
    return present + sum(int(growth.days * size.per_day) * size.partitions for size in growth.topics)


def _repeated_values(values: Iterable[int | str]) -> list[int | str]:
    """The values that occur more than once."""
    return [value for value, times in Counter(values).items() if times > 1]
