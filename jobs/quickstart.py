"""What is run where no job is named: the captures that ship with refetch, and where their lake is.

Standard library only, as all of parsing.
"""

from __future__ import annotations

from jobs.paths import CONF, IS_CLONE

SCENARIO = CONF / "quickstart.yaml"
INSTALLED_LAKE = "lake"
"""The lake of an installed wheel, in the working directory: that of the scenario file would be among the packages."""


def quickstart_arguments() -> list[str]:
    """The arguments of the quickstart."""
    return ["pipeline", f"--scenario={SCENARIO}", *([] if IS_CLONE else [f"--lake={INSTALLED_LAKE}"])]
