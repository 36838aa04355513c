"""Columns of numbers, texts and lists: numpy and Arrow arrays, and functions on them that all packages use."""
