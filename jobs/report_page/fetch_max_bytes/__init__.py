"""Questions of the report that fetch_max_bytes answers (KIP-74: fetch limits)."""
