"""buffer.memory of producers, which Kafka has: BufferPool by captured times or, where batches wait, in closed loop."""
