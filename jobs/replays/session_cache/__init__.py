"""The job side of the replay of session_cache (KIP-227: fetch sessions)."""
