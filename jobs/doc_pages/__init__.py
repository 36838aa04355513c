"""The pages of docs that are made from declarations."""
