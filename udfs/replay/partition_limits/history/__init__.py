"""Turns what a capture shows of a cluster's topics into the changes that are replayed."""
