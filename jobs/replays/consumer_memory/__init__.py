"""The job side of the replay of consumer_memory (KIP-81, a proposal, and KIP-72: memory of clients and brokers)."""
