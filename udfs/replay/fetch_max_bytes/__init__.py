"""The replay of fetch limits (KIP-74, in Kafka since 0.10.1), in open loop and in closed loop."""
