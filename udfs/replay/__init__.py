"""Kafka's algorithms, replayed on arrays, without Spark: a package for each of the five replays."""
