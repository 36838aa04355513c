"""What brokers' quotas do to producers: who is throttled, for how long, and how much later everything is sent."""
