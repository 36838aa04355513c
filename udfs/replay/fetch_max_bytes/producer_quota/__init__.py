"""What brokers' quotas make of producers: who is throttled, for how long, and how much later everything is sent."""
