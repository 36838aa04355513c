"""The driver side of refetch: one short module per job, and the command line that runs them."""

from __future__ import annotations
