"""A producer's buffer.memory."""
