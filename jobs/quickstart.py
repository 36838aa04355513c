"""What runs if no job is named: the quickstart, over captures that ship with refetch.

Standard library only, like all of parsing.
"""

from __future__ import annotations

from jobs.paths import CONF, IS_CLONE

SCENARIO = CONF / "quickstart.yaml"
INSTALLED_LAKE = "lake"
"""The lake of an installed wheel, in the working directory. The scenario file's own lake would be in site-packages."""


def quickstart_arguments() -> list[str]:
    """The arguments of the quickstart."""
    return ["pipeline", f"--scenario={SCENARIO}", *([] if IS_CLONE else [f"--lake={INSTALLED_LAKE}"])]
