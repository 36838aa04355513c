"""What is in each fetch: the partitions that it lists and is answered, and its bytes on the wire."""
