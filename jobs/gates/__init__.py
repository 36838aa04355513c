"""Rules about the tables: read and checked, evaluated in the writing pass or by Great Expectations, and told."""
