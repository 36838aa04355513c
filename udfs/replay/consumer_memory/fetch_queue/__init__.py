"""The queue of a librdkafka consumer: what it fetches ahead of the application, and holds until that takes it."""
