"""What a run prints on the screen while it works, when it is done, and when it fails."""
