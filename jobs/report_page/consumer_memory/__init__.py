"""Questions of the report that consumer_memory answers (KIP-81, a proposal; KIP-72)."""
