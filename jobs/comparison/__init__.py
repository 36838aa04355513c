"""Two runs side by side: what changed between them, and whether what the earlier one predicted came true."""
