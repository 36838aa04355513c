"""KIP-126: producers' estimate of compression, and the splitting of batches."""
