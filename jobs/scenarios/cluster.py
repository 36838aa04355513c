"""A cluster on paper: its brokers, its topics, and future topics."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

MAX_COUNT = 1_000_000_000
"""The largest count of anything; more counts as a typing error."""

_STRICT = ConfigDict(extra="forbid", frozen=True)
_Factor = Annotated[int, Field(ge=1, le=32767, alias="replication.factor")]


class Broker(BaseModel):
    """A broker by its node id."""

    model_config = _STRICT
    id: Annotated[int, Field(ge=0, le=(1 << 31) - 1)]
    rack: str | None = None


class Topics(BaseModel):
    """Existing topics of one size: NAME, or NAME-0, NAME-1, ... if there are several."""

    model_config = _STRICT
    name: str
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1
    partitions: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    replication_factor: _Factor


class SizeClass(BaseModel):
    """Topics of one size that will be created, a number of them each day: NAME-0, NAME-1, ..."""

    model_config = _STRICT
    name: str
    partitions: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    replication_factor: _Factor
    per_day: Annotated[float, Field(gt=0, le=MAX_COUNT, alias="topics.per.day")]


class Growth(BaseModel):
    """The topics that will be created, and in how many days."""

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
