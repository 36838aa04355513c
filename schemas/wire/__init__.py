"""Kafka's messages and APIs as data, with one declaration for all versions.

Source: `common/message/*.json` inside kafka-clients.jar 4.4.0, and 3.9.1 for the versions removed in 4.0.
"""
