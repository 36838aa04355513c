"""The gold table of what consumers read across racks (KIP-392)."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID
from schemas.tables.table import Spec as C
from schemas.tables.table import table

RACK_READS = table(
    "rack_reads", "gold",
    "How much consumers read from which broker, and from which broker they would read with fetch-from-follower and "
    "without it (KIP-392). It is the same in every lane. There are no rows if no broker's rack is known and no "
    "consumer was sent to another replica. Bytes cross racks where broker_rack is not client_rack.",
    ("run_id", "client_id", "client_address", "topic", "partition", "broker", "leader", "preferred", "unknown_for"),
    "run_id",
    run_id=RUN_ID,
    client_id=C("string", "client.id of the consumer; empty for none"),
    client_address=C("string", "The consumer's IP address"),
    client_rack=C("string", "The consumer's rack: as stated, otherwise its client.rack in Fetch requests; null if it "
                            "is not known", nullable=True),
    topic=C("string", "Topic name, or the topic id if the name is not known"),
    partition=C("int", "Partition of the topic"),
    broker=C("string", "The broker that served the reads: node id, otherwise address and port. Null, with 0 bytes, if "
                       "the leader sent the consumer to a replica of which the capture has no reads", nullable=True),
    broker_rack=C("string", "Rack of that broker: as stated, otherwise as Metadata responses show it", nullable=True),
    leader=C("string", "Leader of the partition, which serves all consumers without fetch-from-follower"),
    leader_rack=C("string", "Rack of the leader", nullable=True),
    preferred=C("string", "The broker that serves the consumer with replica.selector.class=RackAwareReplicaSelector: "
                          "the leader or another replica. Several brokers, separated by commas, if Kafka takes the "
                          "most caught-up of them. Null if it is not known, for the reason in unknown_for",
                nullable=True),
    preferred_rack=C("string", "Rack of the preferred broker or brokers", nullable=True),
    bytes=C("bigint", "Record bytes that the consumer read", "bytes"),
    unknown_for=C("string", "Why preferred is not known. client_rack: nothing says in which rack the consumer is. "
                            "rack_of_no_broker: no broker is in the consumer's rack. broker_rack: the rack of a "
                            "replica is not known. replicas: no Metadata response shows the partition", nullable=True),
)  # fmt: skip
