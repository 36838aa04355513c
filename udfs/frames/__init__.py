"""Decodes columns of Kafka frames into columns of structs, for users who have their own frames.

A frame is binary, as it was sent, with the 4 bytes of its size (docs/frames.md). A message becomes a struct with the
fields of its declaration in schemas/wire. Records and other opaque bytes are replaced by their sizes.
`udfs.frames.spark_functions` has the functions for Spark; the other modules need only Arrow.
"""
