"""Rows of the query `fetching_software`, for tests of what changed with a client's version."""

from __future__ import annotations

from typing import Any

from schemas.tables.silver import EXCHANGES

JAVA, PYTHON = "apache-kafka-java", "kafka-python"


def fetched(name: str | None, version: str | None, api: int, full: int, fetches: int = 1000) -> dict[str, Any]:
    """A row of the query `fetching_software` for one version."""
    x = EXCHANGES
    return {
        x.client_software_name: name, x.client_software_version: version, "fetches": fetches, "full": full,
        "not_found": 0, "sessions": 3, "request_bytes": 100 * fetches, "response_bytes": 1000 * fetches,
        "oldest": api, "newest": api,
    }  # fmt: skip
