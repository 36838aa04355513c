"""The silver tables about the captures as a whole: what they lack, and how packets agree with request logs."""

from __future__ import annotations

from schemas.tables.silver_columns import BROKER, CAPTURE_ID
from schemas.tables.table import Spec as C
from schemas.tables.table import table

CAPTURE_QUALITY = table(
    "capture_quality", "silver", "What the capture lacks: one row per connection, and one for the whole capture set.",
    ("capture_id", "connection_id"), "capture_id",
    capture_id=CAPTURE_ID,
    scope=C("string", "connection or capture set"),
    connection_id=C("bigint", "The connection; null in the row of the whole capture set", nullable=True),
    protocol=C("string", "Protocol of the connection, as in connections", nullable=True),
    broker=C("string", "Broker of the connection, as in connections", nullable=True, names="endpoint"),
    client=C("string", "Client of the connection, as in connections", nullable=True, names="endpoint"),
    connections=C("bigint", "TCP connections"),
    foreign_connections=C("bigint", "Connections that do not show Kafka: TLS, another protocol, or no payload that "
                                    "shows which"),
    connections_begun_before=C("bigint", "Connections that the capture does not show being opened"),
    payload_bytes=C("bigint", "Captured TCP payload", "bytes"),
    repeated_bytes=C("bigint", "Captured payload that had been captured before", "bytes"),
    foreign_bytes=C("bigint", "Captured payload of foreign connections", "bytes"),
    quarantined_bytes=C("bigint", "Captured payload of Kafka connections that is in no frame", "bytes"),
    missing_bytes=C("bigint", "Bytes of the streams that the capture lacks", "bytes"),
    missing_share=C("double", "missing_bytes as a share of all bytes of the streams"),
    exchanges=C("bigint", "Requests, and responses whose request is not in the capture"),
    unanswered_requests=C("bigint", "Requests whose response is not in the capture"),
    orphan_responses=C("bigint", "Responses whose request is not in the capture"),
    cut_exchanges=C("bigint", "Exchanges with missing bytes"),
    undecoded_exchanges=C("bigint", "Exchanges with a body that could not be decoded"),
    fetches=C("bigint", "Fetches that name a partition or belong to a session"),
    fetches_of_unknown_sessions=C("bigint", "Fetches that could read more than the capture shows, because their "
                                            "session is from before the capture (KIP-227)"),
    continued_connections=C("bigint", "Kafka connections that continue one of the capture set before (`--continue`)",
                            nullable=True),
    uncontinued_connections=C("bigint", "Kafka connections that began before the capture but are not in the capture "
                                        "set before, or do not fit it; connections.continuation says which",
                              nullable=True),
    unnamed_connections=C("bigint", "Connections to a broker whose node id is not known, so that each of its listeners "
                                    "counts as a broker of its own. Listeners of controllers do not count as brokers"),
    unnamed_brokers=C("array<string>", "The brokers whose node id is not known: address, port, why the node id is not "
                                       "known, and what to do. The row of the capture set has the first 20"),
    other_brokers=C("array<string>", "Brokers that are not Apache Kafka's: the broker, and its vendor as in "
                                     "cluster_metadata. The row of the capture set has the first 20. Null in lakes "
                                     "written by releases that did not look for them", nullable=True),
)  # fmt: skip

LOG_AGREEMENT = table(
    "log_agreement", "silver",
    "How packets agree with the request logs of the same traffic: one row per broker and compared column of exchanges, "
    "and one per broker for the requests themselves. No rows if only one of the two was given.",
    ("capture_id", "broker", "field"), "capture_id",
    capture_id=CAPTURE_ID,
    broker=BROKER,
    field=C("string", "The compared column of exchanges; `request` for whether the request is there at all"),
    in_both=C("bigint", "Requests that both packets and log have; for a column, those for which both have a value"),
    different=C("bigint", "Requests in both with different values; in the row of the requests, those that differ in "
                          "any column"),
    only_in_packets=C("bigint", "Requests (for a column: values) that only the packets have"),
    only_in_log=C("bigint", "Requests (for a column: values) that only the log has"),
    different_connection_id=C("bigint", "Connection of the first exchange that differs; null if none differs",
                              nullable=True),
    different_exchange_no=C("bigint", "Number of the first exchange that differs; null if none differs", nullable=True),
    log_behind_us=C("bigint", "By how much the log's times of responses are later than those of the packets, as a "
                              "median; hours if the log's times are not in UTC. Null in the rows of columns",
                    "microseconds", nullable=True),
)  # fmt: skip
