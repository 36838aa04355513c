"""Captures of one direction alone, which answer nothing: requests without responses, or what may be such responses."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Row

from jobs.terminal.wording import counted
from schemas.tables.silver import CONNECTIONS

NO_RESPONSE = "The capture shows requests, and no response of a broker to any: capture both directions of connections."


def one_way(apis: Sequence[Row], connections: Sequence[Row]) -> str | None:
    """Which direction the capture lacks, and what to do; None where it has exchanges, or nothing one-sided.

    apis, connections: rows of these queries of `jobs.report_page.trust`.
    """
    if apis:
        return None if any(row["answered"] for row in apis) else NO_RESPONSE
    if not any(row[CONNECTIONS.one_sided] for row in connections):
        return None
    return f"The capture shows no request; {one_sided(connections)}."


def one_sided(connections: Sequence[Row]) -> str:
    """How many connections show one side alone and are not known to be Kafka's; empty where none does."""
    alone = sum(row[CONNECTIONS.one_sided] for row in connections)
    if not alone:
        return ""
    return (
        f"of {counted(alone, 'connection')} only one side was captured; if they are Kafka's, capture both directions, "
        "because responses are recognised by their requests"
    )
