"""The job side of the replay of batch_split (KIP-126: batches that are split)."""
