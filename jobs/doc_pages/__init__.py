"""The documentation pages that are made from declarations."""
