"""The driver side of refetch: one short module a job, and the command line that runs them."""

from __future__ import annotations
