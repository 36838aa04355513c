"""The replays, a package for each of Kafka's algorithms: how silver rows come to it, and its lines of the summary."""
