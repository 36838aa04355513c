"""Ids and epochs of fetch sessions that mean something special (FetchMetadata, KIP-227)."""

from __future__ import annotations

FIRST_WITH_SESSIONS = 7
"""The version of Fetch that KIP-227 brought."""
NO_SESSION = 0
"""The session id of a fetch that names no session."""
INITIAL_EPOCH = 0
"""The epoch of a fetch that asks for a new session."""
FINAL_EPOCH = -1
"""The epoch of a fetch that asks for no session and closes the one that it names."""
