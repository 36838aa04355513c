"""One algorithm of Kafka each: what brings the silver rows to it, and what the summary tells of it."""
