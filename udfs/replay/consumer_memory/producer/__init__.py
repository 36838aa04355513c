"""Producers' buffer.memory, as Kafka has it: BufferPool, by captured times or, where a lane has batches wait, in a loop."""
