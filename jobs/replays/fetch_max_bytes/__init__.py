"""The job side of the replay of fetch_max_bytes (KIP-74: fetch limits)."""
