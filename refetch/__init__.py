"""refetch as it is installed: the command, and what notebooks import.

from refetch import open_capture, open_lake

An installed wheel has the repository's folders in one of its own, so that no other project's `jobs`, `udfs` or
`schemas` is in the way of these: they can be imported from here on, in this process alone.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.frame_functions import register_frame_functions
    from jobs.open_capture import OpenCapture, open_capture
    from jobs.open_lake import OpenLake, open_lake

__all__ = ["OpenCapture", "OpenLake", "open_capture", "open_lake", "register_frame_functions"]

_HERE = Path(__file__).resolve().parent
_INSTALLED = _HERE / "_repository"
_ROOT = _INSTALLED if _INSTALLED.is_dir() else _HERE.parent
_PACKAGES = ("jobs", "udfs", "schemas")
_MODULES = {
    "OpenCapture": "jobs.open_capture",
    "OpenLake": "jobs.open_lake",
    "open_capture": "jobs.open_capture",
    "open_lake": "jobs.open_lake",
    "register_frame_functions": "jobs.frame_functions",
}
"""Where each name is, which is loaded when it is first asked for: pyspark and the kernels take seconds."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_MODULES[name]), name)


def _put_on_path() -> None:
    """Have the packages found before any others of their names. Raises ImportError where others are loaded already."""
    loaded = {name: getattr(sys.modules.get(name), "__file__", None) for name in _PACKAGES}
    others = [f"{name} ({file})" for name, file in loaded.items() if file and _ROOT not in Path(file).resolve().parents]
    if others:
        raise ImportError(
            f"refetch has packages called {', '.join(_PACKAGES)}, and this process has loaded others: "
            f"{', '.join(others)}. Use refetch in a process of its own, such as another notebook."
        )
    if str(_ROOT) not in sys.path:
        sys.path.insert(0, str(_ROOT))


_put_on_path()
