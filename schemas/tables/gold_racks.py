"""The gold table of what consumers read across racks (KIP-392)."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID
from schemas.tables.table import Spec as C
from schemas.tables.table import table

RACK_READS = table(
    "rack_reads", "gold",
    "What consumers read from which broker, and from which they would with fetch-from-follower and without (KIP-392). "
    "It is the same in every lane, and has no rows where no broker's rack is known and no consumer was sent elsewhere. "
    "Bytes cross racks where the broker's rack is not client_rack.",
    ("run_id", "client_id", "client_address", "topic", "partition", "broker", "leader", "preferred", "unknown_for"),
    "run_id",
    run_id=RUN_ID,
    client_id=C("string", "client.id of the consumer; empty for none"),
    client_address=C("string", "The consumer's IP address"),
    client_rack=C("string", "Its rack, as somebody stated it, else its client.rack in Fetch requests; null if that is "
                            "not known", nullable=True),
    topic=C("string", "Topic name, or its id where the name is not known"),
    partition=C("int", "Partition of the topic"),
    broker=C("string", "The broker that served it: node id, else address and port. Null, with 0 bytes, for a consumer "
                       "that the leader sent to a replica from which the capture has no read of it", nullable=True),
    broker_rack=C("string", "That broker's rack, as somebody stated it, otherwise as Metadata responses show it",
                  nullable=True),
    leader=C("string", "The partition's leader, who serves all consumers without fetch-from-follower"),
    leader_rack=C("string", "The leader's rack", nullable=True),
    preferred=C("string", "Who serves the consumer with replica.selector.class=RackAwareReplicaSelector: the leader or "
                          "another replica. Several, with commas between, if Kafka takes the one of them that is "
                          "caught up most; null if unknown_for says why", nullable=True),
    preferred_rack=C("string", "The rack of these", nullable=True),
    bytes=C("bigint", "Record bytes that the consumer read", "bytes"),
    unknown_for=C("string", "Why preferred is not known: client_rack, for nobody states where the consumer is; "
                            "rack_of_no_broker, for no broker is in its rack; broker_rack, for the rack of a replica "
                            "is not known; replicas, for no Metadata response shows the partition", nullable=True),
)  # fmt: skip
