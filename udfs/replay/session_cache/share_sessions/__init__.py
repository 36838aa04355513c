"""Share sessions (KIP-932): a broker's cache of them, which is separate from its cache of fetch sessions."""
