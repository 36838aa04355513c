"""The silver tables of a cluster's topics: what Metadata responses show, and who asks for which changes."""

from __future__ import annotations

from schemas.tables.silver_columns import (
    BROKER,
    CAPTURE_ID,
    CLIENT_ADDRESS,
    CLIENT_ID,
    CONNECTION_ID,
    EXCHANGE_NO,
    REQUEST_TIME,
    RESPONSE_TIME,
    TOPIC,
    TOPIC_ID,
)
from schemas.tables.table import Spec as C
from schemas.tables.table import table
from schemas.wire.releases import MARKS

RELEASES = ", ".join(mark.release for mark in MARKS)
"""The releases that can be distinguished by their API versions."""

CLUSTER_METADATA = table(
    "cluster_metadata", "silver",
    "One row per broker or partition in a Metadata response, or per ApiVersions response that shows the broker's "
    "release.",
    ("capture_id", "connection_id", "exchange_no", "entry", "position"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    cluster_id=C("string", "The cluster's id; null if the response does not have it", nullable=True),
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    entry=C("string", "broker or partition; topic for a topic without partitions; release"),
    position=C("int", "Place in the response among entries of its kind, from 0"),
    node_id=C("int", "The broker's node id", nullable=True),
    host=C("string", "The host the broker advertises", nullable=True, names="host"),
    port=C("int", "The port the broker advertises", nullable=True),
    rack=C("string", "The broker's rack", nullable=True, names="host"),
    topic=C("string", "Topic name", nullable=True, names="topic"),
    topic_id=TOPIC_ID,
    is_internal=C("boolean", "An internal topic of Kafka", nullable=True),
    is_named=C("boolean", "The request names the topic; false if it asks for all topics", nullable=True),
    partition=C("int", "Partition of the topic", nullable=True),
    leader_id=C("int", "Node id of the leader, -1 for none", nullable=True),
    leader_epoch=C("int", "The leader's epoch", nullable=True),
    replica_nodes=C("array<int>", "Node ids of the replicas", nullable=True),
    isr_nodes=C("array<int>", "Node ids of the replicas in sync", nullable=True),
    error_code=C("smallint", "The entry's error", nullable=True),
    release=C("string", f"Kafka release of the broker that answers: the newest whose APIs it offers, of {RELEASES}",
              nullable=True),
    controller=C("string", "Of releases 3.3 to 3.9, which controller that broker works with: kraft or zookeeper",
                 nullable=True),
    vendor=C("string", "Of a release, whose broker that is: automq, confluent, redpanda, or other if no release of "
                       "Apache Kafka offers such versions; null if it can be Apache Kafka's",
             nullable=True),
)  # fmt: skip

TOPIC_CHANGES = table(
    "topic_changes", "silver",
    "One row per topic that a request is to create, delete or grow, or per partition that it is to move. Refused "
    "ones are included.",
    ("capture_id", "connection_id", "exchange_no", "position"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    kind=C("string", "create_topic, delete_topic, create_partitions, reassign_partition or auto_create. The last is "
                     "a Metadata request that names the topic and allows its creation, with a whole response that "
                     "does not show it"),
    position=C("int", "Place in the request among its topics, or partitions to be moved, from 0"),
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=C("int", "Partition to be moved", nullable=True),
    num_partitions=C("int", "Partitions asked for, -1 for the broker's default; the new total if some are added",
                     nullable=True),
    replication_factor=C("smallint", "Replication factor asked for, -1 for the broker's default", nullable=True),
    assignments=C("array<string>", "PARTITION:BROKER,BROKER,... for each partition that the request itself places; "
                                   "null if Kafka is to place them, or a move is to be cancelled",
                  nullable=True),
    configs=C("int", "How many configurations a topic to be created is given", nullable=True),
    max_message_bytes=C("bigint", "... max.message.bytes, if that is among them", "bytes", nullable=True),
    compression_type=C("string", "... compression.type, if that is among them, as one of Kafka's words", nullable=True),
    remote_storage_enable=C("boolean", "... remote.storage.enable (KIP-405), if that is among them", nullable=True),
    validate_only=C("boolean", "The request is only to be checked, not carried out", nullable=True),
    error_code=C("smallint", "The error of the topic or partition, else of the whole response; null without a response",
                 nullable=True),
    answered_num_partitions=C("int", "Partitions of the new topic as the response says", nullable=True),
    answered_replication_factor=C("smallint", "Replication factor of the new topic as the response says",
                                  nullable=True),
)  # fmt: skip
