"""buffer.memory of producers, a setting of Kafka: BufferPool by captured times or, if batches wait, in closed loop."""
