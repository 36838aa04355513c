"""The lake as Delta tables: where they are, which rows and runs they hold, and how rows come into them."""
