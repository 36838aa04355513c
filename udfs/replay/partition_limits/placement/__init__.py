"""Where replicas go: the brokers, the two placers of Kafka and of KIP-578 (a proposal), and their draws."""
