"""Columns that gold tables share."""

from __future__ import annotations

from schemas.tables.table import Spec as C

RUN_ID = C("string", "The run: a hash of the capture set's content and the resolved scenario")
SCENARIO = C("string", "The lane: `captured`, or the settings it changes as KEY=VALUE,...")
