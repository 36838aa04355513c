"""Turns a capture file into TCP segments and frames."""
