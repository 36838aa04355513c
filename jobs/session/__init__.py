"""The Spark session and what it stands on: Java, properties, compiled kernels."""
