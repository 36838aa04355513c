"""The search for the setting that meets an aim: which lanes to replay next, and which of those replayed is best."""
