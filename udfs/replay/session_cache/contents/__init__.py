"""The contents of each fetch: the partitions in its request and its response, and their bytes on the wire."""
