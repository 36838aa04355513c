"""Rules about tables: reading and checking them, applying them, and reporting their results."""
