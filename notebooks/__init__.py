"""Walks through a lake, one for each family of questions; each is a script here and a notebook beside it."""
