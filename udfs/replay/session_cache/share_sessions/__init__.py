"""Share sessions (KIP-932): a broker's cache of them, which is none of the cache of fetch sessions."""
