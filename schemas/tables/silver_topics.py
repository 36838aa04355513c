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
    "One row per broker and per partition in a Metadata response, and per ApiVersions response that shows the broker's "
    "release.",
    ("capture_id", "connection_id", "exchange_no", "entry", "position"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    cluster_id=C("string", "The cluster's id; null if the response does not have it", nullable=True),
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    entry=C("string", "What the row is about: broker, partition, topic for a topic without partitions, or release"),
    position=C("int", "Position in the response among entries of the same kind, from 0"),
    node_id=C("int", "The broker's node id", nullable=True),
    host=C("string", "The host that the broker advertises", nullable=True, names="host"),
    port=C("int", "The port that the broker advertises", nullable=True),
    rack=C("string", "The broker's rack", nullable=True, names="host"),
    topic=C("string", "Topic name", nullable=True, names="topic"),
    topic_id=TOPIC_ID,
    is_internal=C("boolean", "The topic is an internal topic of Kafka", nullable=True),
    is_named=C("boolean", "The request names the topic; false if it asks for all topics", nullable=True),
    partition=C("int", "Partition of the topic", nullable=True),
    leader_id=C("int", "Node id of the leader; -1 if there is none", nullable=True),
    leader_epoch=C("int", "The leader's epoch", nullable=True),
    replica_nodes=C("array<int>", "Node ids of the replicas", nullable=True),
    isr_nodes=C("array<int>", "Node ids of the in-sync replicas", nullable=True),
    error_code=C("smallint", "Error of the entry", nullable=True),
    release=C("string", "Release of the broker that answered: the newest Kafka release whose APIs it offers, of "
                        f"{RELEASES}",
              nullable=True),
    controller=C("string", "For releases 3.3 to 3.9, the kind of controller that the broker works with: kraft or "
                           "zookeeper", nullable=True),
    vendor=C("string", "For a release, whose broker it is: automq, confluent or redpanda; other if no release of "
                       "Apache Kafka offers such versions. Null if it may be Apache Kafka's", nullable=True),
)  # fmt: skip

TOPIC_CHANGES = table(
    "topic_changes", "silver",
    "One row per topic that a request creates, deletes or adds partitions to, and per partition that it moves. Changes "
    "that were refused are included.",
    ("capture_id", "connection_id", "exchange_no", "position"), "capture_id",
    capture_id=CAPTURE_ID,
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    broker=BROKER,
    client_address=CLIENT_ADDRESS,
    client_id=CLIENT_ID,
    request_time=REQUEST_TIME,
    response_time=RESPONSE_TIME,
    kind=C("string", "create_topic, delete_topic, create_partitions, reassign_partition or auto_create. auto_create is "
                     "a Metadata request that names the topic and allows its creation, and whose complete response "
                     "does not show the topic"),
    position=C("int", "Position among the topics, or the partitions to be moved, in the request, from 0"),
    topic=TOPIC,
    topic_id=TOPIC_ID,
    partition=C("int", "The partition to be moved", nullable=True),
    num_partitions=C("int", "Number of partitions asked for; -1 for the broker's default; for create_partitions, the "
                            "new total", nullable=True),
    replication_factor=C("smallint", "Replication factor asked for; -1 for the broker's default", nullable=True),
    assignments=C("array<string>", "PARTITION:BROKER,BROKER,... for each partition that the request itself assigns to "
                                   "brokers. Null if Kafka assigns them, and if a move is cancelled", nullable=True),
    configs=C("int", "Number of configurations that the request gives for a new topic", nullable=True),
    max_message_bytes=C("bigint", "max.message.bytes of a new topic, if it is among the configurations",
                        "bytes", nullable=True),
    compression_type=C("string", "compression.type of a new topic, if it is among the configurations and one of "
                                 "Kafka's values", nullable=True),
    remote_storage_enable=C("boolean", "remote.storage.enable of a new topic (KIP-405), if it is among the "
                                       "configurations", nullable=True),
    validate_only=C("boolean", "The request is only checked and not carried out", nullable=True),
    error_code=C("smallint", "Error of the topic or partition, otherwise of the whole response; null without a "
                             "response", nullable=True),
    answered_num_partitions=C("int", "Number of partitions of the new topic, as the response says", nullable=True),
    answered_replication_factor=C("smallint", "Replication factor of the new topic, as the response says",
                                  nullable=True),
)  # fmt: skip
