"""The decoder of Kafka frames: numba kernels over one arena of bytes, no Spark."""
