"""KIP-227: a broker's cache of fetch sessions, and its clients."""
