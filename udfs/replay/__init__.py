"""Kafka's algorithms, replayed on arrays: one algorithm a file, no Spark."""
