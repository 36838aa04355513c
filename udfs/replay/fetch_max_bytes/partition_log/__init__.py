"""Each partition's log, pieced together from the capture, and the records that each fetch could read of it."""
