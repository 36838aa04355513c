"""What runs inside Python workers, on arrays and Arrow batches."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path


def code_digest(*packages: Path) -> str:
    """16 hex digits that change with any Python source of the packages."""
    digest = hashlib.sha256()
    for package in packages:
        for source in sorted(package.rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def kernel_cache_dir(package: Path) -> str:
    """Where numba keeps the machine code of this version of the kernels.

    Numba compares the time stamp of the file that a cached kernel is in, not of the files whose functions it has
    inlined: a change to one of those would go unnoticed. So the folder is named after the content of all of them; and
    after their place, by which numba tells its files apart, so that what one clone has compiled is not another's.
    """
    place = hashlib.sha256(str(package.resolve()).encode()).hexdigest()[:8]
    return str(cache_dir() / f"kernels-{code_digest(package)}-{place}")


def cache_dir() -> Path:
    """Where refetch keeps what it can make again: among the user's caches, or a folder for temporary files."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    base = home if os.access(home, os.W_OK) or os.access(home.parent, os.W_OK) else Path(tempfile.gettempdir())
    return base / "refetch"


# Numba reads this when it is first imported, which only modules below this one do.
os.environ.setdefault("NUMBA_CACHE_DIR", kernel_cache_dir(Path(__file__).parent))
