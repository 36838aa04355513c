"""Where the project's own files are, in a clone and in an installed wheel."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""Folder that holds the packages jobs, udfs and schemas: the clone, or site-packages."""

_IN_WHEEL = Path(__file__).resolve().parent / "conf"

CONF = _IN_WHEEL if _IN_WHEEL.is_dir() else ROOT / "conf"
"""Folder of settings.yaml, the Spark defaults and the scenario files that ship with refetch."""


def python_path() -> str:
    """PYTHONPATH for processes started here, so that they find the packages wherever this one found them."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
