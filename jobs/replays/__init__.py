"""The replays, a package for each algorithm of Kafka: what it reads of silver tables, and its lines of the summary."""
