"""A cluster described in a YAML file, with its topics and their growth, to size partition limits on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from jobs.scenarios.located_yaml import Address, Fault, LocatedYaml, Place, Plain, read_located_yaml
from jobs.scenarios.settings import did_you_mean
from udfs.errors import ScenarioError

MOST_PARTITIONS = 5_000_000
"""Partitions that a described cluster may come to; more is a slip of the pen."""

_STRICT = ConfigDict(extra="forbid", frozen=True)
_Factor = Annotated[int, Field(ge=1, le=32767, alias="replication.factor")]


class Broker(BaseModel):
    """A broker by its node id."""

    model_config = _STRICT
    id: Annotated[int, Field(ge=0, le=(1 << 31) - 1)]
    rack: str | None = None


class Topics(BaseModel):
    """Topics of the same size that are there; NAME, or NAME-0, NAME-1, ... where there are several."""

    model_config = _STRICT
    name: str
    count: Annotated[int, Field(ge=1)] = 1
    partitions: Annotated[int, Field(ge=1)]
    replication_factor: _Factor


class SizeClass(BaseModel):
    """Topics of the same size that come to be, so many a day: NAME-0, NAME-1, ..."""

    model_config = _STRICT
    name: str
    partitions: Annotated[int, Field(ge=1)]
    replication_factor: _Factor
    per_day: Annotated[float, Field(gt=0, alias="topics.per.day")]


class Growth(BaseModel):
    """What comes to be in so many days."""

    model_config = _STRICT
    start: Annotated[AwareDatetime, Field(alias="from")] = datetime(2026, 1, 1, tzinfo=UTC)
    days: Annotated[float, Field(gt=0, le=36500)]
    topics: Annotated[list[SizeClass], Field(min_length=1)]


class Cluster(BaseModel):
    """A described cluster."""

    model_config = _STRICT
    brokers: Annotated[list[Broker], Field(min_length=1)]
    topics: list[Topics] = Field(default_factory=list)
    growth: Growth


_MODELS: Mapping[tuple[str, ...], type[BaseModel]] = {
    (): Cluster, ("brokers",): Broker, ("topics",): Topics, ("growth",): Growth, ("growth", "topics"): SizeClass
}  # fmt: skip
"""What a mapping of the file is, by the keys that lead to it."""


def read_cluster(path: str) -> Cluster:
    """The cluster that a file describes. Raises ScenarioError with every fault of the file and its line."""
    located = read_located_yaml(path, "a file that describes a cluster, such as conf/clusters/example.yaml")
    faults = list(located.faults)
    located.data = _listed_brokers(located, faults)
    cluster = None
    try:
        cluster = Cluster.model_validate({} if located.data is None else located.data)
    except ValidationError as fault:
        faults += [Fault(located.at(tuple(error["loc"])), _told(error)) for error in fault.errors()]
    if cluster is not None:
        faults += _contradictions(located, cluster)
    if cluster is None or faults:
        raise ScenarioError(path, tuple(map(str, sorted(faults, key=lambda fault: fault.place.line))))
    return cluster


def _listed_brokers(located: LocatedYaml, faults: list[Fault]) -> Plain:
    """The file's data with `brokers: {count: N, racks: [...]}` written out: ids from 1, dealt to the racks in turn."""
    data = located.data
    if not isinstance(data, dict) or not isinstance(data.get("brokers"), dict):
        return data
    short = data["brokers"]
    place = located.at(("brokers",))
    count, racks = (short.get("count"), short.get("racks") or []) if isinstance(short, dict) else (None, [])
    unknown = sorted(set(short) - {"count", "racks"}) if isinstance(short, dict) else []
    if unknown or not isinstance(racks, list) or not isinstance(count, str) or not count.isdecimal():
        told = "`brokers` is a list of {id, rack}, or {count: N, racks: [a, b]}"
        return data | {"brokers": _fault(faults, place, told)}
    if not 1 <= int(count) <= 10_000:
        return data | {"brokers": _fault(faults, place, f"`brokers.count` is {count}, and not from 1 to 10,000")}
    turn = [racks[i % len(racks)] if racks else None for i in range(int(count))]
    dealt: list[Plain] = [{"id": str(i + 1), "rack": rack} for i, rack in enumerate(turn)]
    return data | {"brokers": dealt}


def _fault(faults: list[Fault], place: Place, text: str) -> list[Plain]:
    """Note a fault of the brokers; one broker stands for them, so that the rest is still checked."""
    faults.append(Fault(place, text))
    return [{"id": "1"}]


def _told(error: ErrorDetails) -> str:
    key = ".".join(map(str, error["loc"])) or "the file"
    if error["type"] == "extra_forbidden":
        model = _MODELS[tuple(step for step in error["loc"][:-1] if isinstance(step, str))]
        known = [field.alias or name for name, field in model.model_fields.items()]
        return f"unknown key `{key}`{did_you_mean(str(error['loc'][-1]), known)}"
    if error["type"] == "missing":
        return f"`{key}` is missing"
    return f"`{key}`: {error['msg'].lower()}"


def _contradictions(located: LocatedYaml, cluster: Cluster) -> list[Fault]:
    """What is wrong between values of which each is right by itself."""
    ids = Counter(broker.id for broker in cluster.brokers)
    faults = [Fault(located.at(("brokers",)), f"broker {node} is given twice") for node, n in ids.items() if n > 1]
    sized: list[tuple[Address, Topics | SizeClass]] = [(("topics", i), t) for i, t in enumerate(cluster.topics)]
    sized += [(("growth", "topics", i), t) for i, t in enumerate(cluster.growth.topics)]
    names = Counter(topics.name for _, topics in sized)
    for address, topics in sized:
        if topics.replication_factor > len(ids):
            told = f"{topics.name}: replication.factor {topics.replication_factor} on {len(ids)} brokers"
            faults.append(Fault(located.at(address), told))
        if names[topics.name] > 1:
            faults.append(Fault(located.at(address), f"{topics.name} is given twice"))
    total = sum(topics.count * topics.partitions for topics in cluster.topics) + sum(
        int(cluster.growth.days * size.per_day) * size.partitions for size in cluster.growth.topics
    )
    if total > MOST_PARTITIONS:
        faults.append(Fault(located.at(()), f"{total:,} partitions in the end; at most {MOST_PARTITIONS:,}"))
    return faults
