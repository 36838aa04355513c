"""What a capture tells of the topics of a cluster, as the changes to them that are replayed."""
