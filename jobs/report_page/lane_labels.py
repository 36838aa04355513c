"""Lanes from the view of an answer's subject: named by the settings that concern it, each combination once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pyspark.sql import Row

from jobs.report_page.question import Findings
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import Setting, setting_of
from jobs.terminal.lane_rows import SCENARIO, settings_in_name
from jobs.terminal.wording import changed_settings
from udfs.replay.shared.lanes import NO_LIMIT

Subject = Literal["consumers", "brokers", "producers", "anyone"]
_POOL_OF_BROKERS = (
    "broker.queued.max.request.bytes", "broker.socket.request.max.bytes", "broker.num.network.threads"
)  # fmt: skip


def own_lanes(findings: Findings, rows: Iterable[Row], subject: Subject) -> list[Row]:
    """The rows of a subject, one for each lane. Lanes that differ only in settings of others share a row.

    A row's lane is named by the settings that concern the subject, `captured` if none does. Lanes that would have the
    same name but have different outcomes keep their whole names. rows: in the order of the lanes.
    """
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(own_name(findings, row[SCENARIO], subject), []).append(row)
    return [row for name, same in alike.items() for row in _rows_by_name(name, same)]


def own_name(findings: Findings, lane: str, subject: Subject = "anyone") -> str:
    """A lane's name, made of its settings that concern the subject and change something; `captured` if none does."""
    parts = [
        f"{key}={value}" for key, value in settings_in_name(lane).items() if _is_named(findings, key, value, subject)
    ]
    return ",".join(parts) or CAPTURED_LANE


def own_labels(findings: Findings, lanes: Sequence[str], subject: Subject) -> dict[str, str]:
    """The names of lanes in a plot or table about the subject, by lane.

    A name is made of the settings that concern the subject, if the names then differ and all lanes change the same
    settings; else it is the lane's whole name.
    """
    names = {lane: own_name(findings, lane, subject) for lane in lanes}
    keys = {tuple(changed_settings(name)) for lane, name in names.items() if lane != CAPTURED_LANE}
    tells = len(set(names.values())) == len(names) and len(keys) <= 1
    return names if tells else {lane: lane for lane in lanes}


def settings_of_consumers(lane: str) -> dict[str, str]:
    """The settings of a lane that concern consumers, by key."""
    return {
        key: value for key, value in settings_in_name(lane).items() if _owner_of_setting(setting_of(key)) == "consumers"
    }


def can_be_set(row: Row) -> bool:
    """Whether somebody can set everything that a lane changes, so that the lane may be advised."""
    return all(setting_of(key).can_be_set for key in settings_in_name(row[SCENARIO]))


def _is_named(findings: Findings, key: str, value: str, subject: Subject) -> bool:
    """Whether a lane's name for the subject has this setting: it must concern the subject and change something. To set
    `none` if there was no bound changes nothing.
    """
    lifts_nothing = value == NO_LIMIT and setting_of(key).is_optional and key not in findings.captured
    return subject in ("anyone", _owner_of_setting(setting_of(key))) and not lifts_nothing


def _owner_of_setting(setting: Setting) -> str:
    """Whose setting it is, for settings of the replays of fetches and memory."""
    if setting.key in _POOL_OF_BROKERS:
        return "brokers"
    return {"producer": "producers", "replica": "followers"}.get(setting.set_on or "", "consumers")


def _rows_by_name(name: str, rows: list[Row]) -> Iterator[Row]:
    """One row with this name as its lane if all rows have the same outcomes, else all rows with their own lanes."""
    outcomes = [{key: value for key, value in row.asDict().items() if key != SCENARIO} for row in rows]
    if all(outcome == outcomes[0] for outcome in outcomes):
        yield Row(**{**rows[0].asDict(), SCENARIO: name})
    else:
        yield from rows
