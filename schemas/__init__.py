"""Declarations of Kafka messages and Delta tables: data without behaviour."""
