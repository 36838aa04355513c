"""Columns of numbers, texts and lists: numpy arrays and Arrow arrays, and what every room does with them."""
