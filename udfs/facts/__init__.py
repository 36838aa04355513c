"""From frames to the rows of the silver tables."""
