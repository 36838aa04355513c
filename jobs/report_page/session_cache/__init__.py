"""Questions of the report that session_cache answers (KIP-227: fetch sessions)."""
