"""Each partition's log pieced together from what a capture shows, and what was there to be read by each fetch of it."""
