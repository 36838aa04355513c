"""A scenario as the text of a scenario file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import yaml

from jobs.scenarios.scenario import Scenario
from jobs.scenarios.settings import Value, setting_of

HEAD = "# What was replayed, as a scenario: --scenario=FILE does it again, and any value may be changed.\n"


def scenario_file_text(scenario: Scenario, captures: Iterable[str]) -> str:
    """The text of a file that states this scenario. captures: the paths and URIs that the file names, all absolute."""
    stated: dict[str, object] = {"captures": list(captures)}
    if scenario.log_zone is not None:
        stated["log_zone"] = scenario.log_zone
    stated |= {key: str(at) for key, at in (("from", scenario.begin), ("to", scenario.end)) if at is not None}
    stated["captured"] = {key: setting_of(key).format(value) for key, value in scenario.stated.items()}
    stated["replay"] = {name: grid_texts(grid) for name, grid in scenario.replay.items()}
    kept = {key: value for key, value in stated.items() if value}
    return HEAD + yaml.safe_dump(kept, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)


def grid_texts(grid: Mapping[str, tuple[Value, ...]]) -> dict[str, list[str]] | None:
    """A grid's values as people write them; None for an empty grid, which asks only for the captured lane."""
    return {key: [setting_of(key).format(value) for value in values] for key, values in grid.items()} or None
