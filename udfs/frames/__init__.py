"""Columns of Kafka frames decoded into columns of structs, for those who have frames of their own.

A frame is binary, as it was sent, with the 4 bytes of its size (docs/frames.md). A message becomes a struct of Kafka's
field names, derived from its declaration in schemas/wire. Record bytes and other opaque ones never leave: their sizes
do. `udfs.frames.spark_functions` has the functions for Spark, the other modules are Arrow alone.
"""
