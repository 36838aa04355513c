"""The queue of a librdkafka consumer: messages that it fetches ahead, and holds until the application takes them."""
