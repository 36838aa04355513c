"""Questions of the report that batch_split answers (KIP-126: batches that are split)."""
