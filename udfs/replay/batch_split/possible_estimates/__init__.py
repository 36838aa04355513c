"""Which estimates were possible when each captured batch was created."""
