"""KIP-81 (a proposal), KIP-72 and buffer.memory: memory of consumers, brokers and producers."""
