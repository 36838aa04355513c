"""The lake as Delta tables: where they are, which capture sets and runs they hold, how rows are written and removed."""
