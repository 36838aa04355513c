"""Rules about tables: how they are read and checked, how they are applied, and how their results are reported."""
