"""Columns that silver tables share."""

from __future__ import annotations

from schemas.tables.table import Spec as C

CAPTURE_ID = C("string", "Id of the capture set: a hash of the content of its files")
CONNECTION_ID = C(
    "bigint",
    "Id of the TCP connection: a hash of its endpoints and of how often they had connected before; in a "
    "request log, a hash of the connection's name there",
)
EXCHANGE_NO = C(
    "bigint",
    "Number of the request on its connection, from 0; responses whose request is not in the capture are -1, -2 "
    "and so on",
)
BROKER = C(
    "string", "The broker's node id if Metadata responses show it, otherwise its address and port", names="endpoint"
)
CLIENT_ID = C("string", "client.id of the request", nullable=True, names="client")
CLIENT_ADDRESS = C("string", "The client's IP address", names="host")
REQUEST_TIME = C(
    "timestamp",
    "When the last byte of the request was captured; in a request log, when it had arrived at the broker",
    "UTC",
    nullable=True,
)
RESPONSE_TIME = C(
    "timestamp",
    "When the last byte of the response was captured; in a request log, when the broker had sent it",
    "UTC",
    nullable=True,
)
TOPIC = C("string", "Topic name; the topic id if no response of the capture set shows the name", names="topic")
TOPIC_ID = C(
    "string",
    "Topic id as Kafka prints it (url-safe base64); null if no response shows which id the name had at the time",
    nullable=True,
)
PARTITION = C("int", "Partition of the topic")
