"""KIP-74: what fetches return, in open loop and in closed loop."""
