"""Closed loop: each reader goes on from what it received, by the client's own rules, in every lane."""
