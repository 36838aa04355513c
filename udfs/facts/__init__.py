"""Turns frames into rows of the silver tables."""
