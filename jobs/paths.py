"""Where the project's own files are, in a clone and in an installed wheel, and how the command is called there."""

from __future__ import annotations

import os
from pathlib import Path

from udfs.errors import SetupError

ROOT = Path(__file__).resolve().parent.parent
"""The folder with the packages jobs, udfs and schemas, and conf: the clone, or refetch/_repository in a wheel."""

_SCRIPT = "spark-submit.sh"

IS_CLONE = (ROOT / _SCRIPT).is_file()
"""Whether this is a clone and not an installed wheel."""

COMMAND = f"./{_SCRIPT}" if IS_CLONE else "refetch"
"""The command that a user is asked to type."""

CONF = ROOT / "conf"
"""Folder of settings.yaml, the Spark defaults and the scenario files that ship with refetch."""

SHOWN_CONF = CONF.name if IS_CLONE else str(CONF)
"""The folder CONF as messages name it."""

SHOWN_DOCS = "docs" if IS_CLONE else str(ROOT / "docs")
"""The folder of the documentation pages, as messages name it."""


def own_text(path: Path) -> str:
    """The text of one of the project's own files. Raises SetupError if it cannot be read. SetupError names the file,
    which the error of a failed read may not do.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        to_do = "it belongs to refetch: check that you may read it, and that it is whole"
        raise SetupError(f"{path}: cannot be read: {fault.strerror or fault}; {to_do}") from fault


def python_path() -> str:
    """PYTHONPATH for processes started here, so that they find the packages wherever this one found them."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
