"""From a capture file to TCP segments and frames."""
