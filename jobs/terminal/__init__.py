"""What a run says on the screen while it works, when it is done, and when it fails."""
