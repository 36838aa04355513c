"""KIP-227: a broker's cache of fetch sessions, and the broker's clients."""
