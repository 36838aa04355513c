"""Installs the layer of `tests.faults.audit` in a Python process that has this folder on its path, if asked to."""

from __future__ import annotations

import os

if os.environ.get("REFETCH_FAULTS_AUDIT"):
    from tests.faults.audit import install

    install()
