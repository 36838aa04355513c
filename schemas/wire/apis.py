"""Every API of Kafka up to 4.4, including removed versions.

`flexible_from` is the first version with flexible encoding: request header v2 and response header v1 (KIP-482); None
if no version has it. A frame of an API that contains credentials is never decoded beyond its header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Api:
    """One API: `name` as in Kafka's ApiKeys and request logs; the first and the last version are included."""

    key: int
    name: str
    first_version: int
    last_version: int
    flexible_from: int | None
    bears_credentials: bool = False


# A table.
# fmt: off
APIS = (
    Api(0, "PRODUCE", 0, 13, 9),
    Api(1, "FETCH", 0, 18, 12),
    Api(2, "LIST_OFFSETS", 0, 11, 6),
    Api(3, "METADATA", 0, 13, 9),
    Api(4, "LEADER_AND_ISR", 0, 7, 4),
    Api(5, "STOP_REPLICA", 0, 4, 2),
    Api(6, "UPDATE_METADATA", 0, 8, 6),
    Api(7, "CONTROLLED_SHUTDOWN", 0, 3, 3),
    Api(8, "OFFSET_COMMIT", 0, 10, 8),
    Api(9, "OFFSET_FETCH", 0, 10, 6),
    Api(10, "FIND_COORDINATOR", 0, 6, 3),
    Api(11, "JOIN_GROUP", 0, 9, 6),
    Api(12, "HEARTBEAT", 0, 4, 4),
    Api(13, "LEAVE_GROUP", 0, 5, 4),
    Api(14, "SYNC_GROUP", 0, 5, 4),
    Api(15, "DESCRIBE_GROUPS", 0, 6, 5),
    Api(16, "LIST_GROUPS", 0, 5, 3),
    Api(17, "SASL_HANDSHAKE", 0, 1, None),
    Api(18, "API_VERSIONS", 0, 5, 3),
    Api(19, "CREATE_TOPICS", 0, 7, 5),
    Api(20, "DELETE_TOPICS", 0, 6, 4),
    Api(21, "DELETE_RECORDS", 0, 2, 2),
    Api(22, "INIT_PRODUCER_ID", 0, 6, 2),
    Api(23, "OFFSET_FOR_LEADER_EPOCH", 0, 4, 4),
    Api(24, "ADD_PARTITIONS_TO_TXN", 0, 5, 3),
    Api(25, "ADD_OFFSETS_TO_TXN", 0, 4, 3),
    Api(26, "END_TXN", 0, 5, 3),
    Api(27, "WRITE_TXN_MARKERS", 0, 2, 1),
    Api(28, "TXN_OFFSET_COMMIT", 0, 6, 3),
    Api(29, "DESCRIBE_ACLS", 0, 3, 2),
    Api(30, "CREATE_ACLS", 0, 3, 2),
    Api(31, "DELETE_ACLS", 0, 3, 2),
    Api(32, "DESCRIBE_CONFIGS", 0, 4, 4),
    Api(33, "ALTER_CONFIGS", 0, 2, 2, bears_credentials=True),
    Api(34, "ALTER_REPLICA_LOG_DIRS", 0, 2, 2),
    Api(35, "DESCRIBE_LOG_DIRS", 0, 5, 2),
    Api(36, "SASL_AUTHENTICATE", 0, 2, 2, bears_credentials=True),
    Api(37, "CREATE_PARTITIONS", 0, 3, 2),
    Api(38, "CREATE_DELEGATION_TOKEN", 0, 3, 2, bears_credentials=True),
    Api(39, "RENEW_DELEGATION_TOKEN", 0, 2, 2, bears_credentials=True),
    Api(40, "EXPIRE_DELEGATION_TOKEN", 0, 2, 2, bears_credentials=True),
    Api(41, "DESCRIBE_DELEGATION_TOKEN", 0, 3, 2, bears_credentials=True),
    Api(42, "DELETE_GROUPS", 0, 3, 2),
    Api(43, "ELECT_LEADERS", 0, 2, 2),
    Api(44, "INCREMENTAL_ALTER_CONFIGS", 0, 1, 1, bears_credentials=True),
    Api(45, "ALTER_PARTITION_REASSIGNMENTS", 0, 1, 0),
    Api(46, "LIST_PARTITION_REASSIGNMENTS", 0, 0, 0),
    Api(47, "OFFSET_DELETE", 0, 0, None),
    Api(48, "DESCRIBE_CLIENT_QUOTAS", 0, 1, 1),
    Api(49, "ALTER_CLIENT_QUOTAS", 0, 1, 1),
    Api(50, "DESCRIBE_USER_SCRAM_CREDENTIALS", 0, 0, 0),
    Api(51, "ALTER_USER_SCRAM_CREDENTIALS", 0, 0, 0, bears_credentials=True),
    Api(52, "VOTE", 0, 2, 0),
    Api(53, "BEGIN_QUORUM_EPOCH", 0, 1, 1),
    Api(54, "END_QUORUM_EPOCH", 0, 1, 1),
    Api(55, "DESCRIBE_QUORUM", 0, 2, 0),
    Api(56, "ALTER_PARTITION", 0, 3, 0),
    Api(57, "UPDATE_FEATURES", 0, 2, 0),
    Api(58, "ENVELOPE", 0, 0, 0, bears_credentials=True),
    Api(59, "FETCH_SNAPSHOT", 0, 1, 0),
    Api(60, "DESCRIBE_CLUSTER", 0, 2, 0),
    Api(61, "DESCRIBE_PRODUCERS", 0, 0, 0),
    Api(62, "BROKER_REGISTRATION", 0, 4, 0),
    Api(63, "BROKER_HEARTBEAT", 0, 2, 0),
    Api(64, "UNREGISTER_BROKER", 0, 0, 0),
    Api(65, "DESCRIBE_TRANSACTIONS", 0, 0, 0),
    Api(66, "LIST_TRANSACTIONS", 0, 2, 0),
    Api(67, "ALLOCATE_PRODUCER_IDS", 0, 0, 0),
    Api(68, "CONSUMER_GROUP_HEARTBEAT", 0, 1, 0),
    Api(69, "CONSUMER_GROUP_DESCRIBE", 0, 1, 0),
    Api(70, "CONTROLLER_REGISTRATION", 0, 0, 0),
    Api(71, "GET_TELEMETRY_SUBSCRIPTIONS", 0, 0, 0),
    Api(72, "PUSH_TELEMETRY", 0, 0, 0),
    Api(73, "ASSIGN_REPLICAS_TO_DIRS", 0, 0, 0),
    Api(74, "LIST_CONFIG_RESOURCES", 0, 1, 0),
    Api(75, "DESCRIBE_TOPIC_PARTITIONS", 0, 0, 0),
    Api(76, "SHARE_GROUP_HEARTBEAT", 0, 1, 0),
    Api(77, "SHARE_GROUP_DESCRIBE", 0, 1, 0),
    Api(78, "SHARE_FETCH", 0, 2, 0),
    Api(79, "SHARE_ACKNOWLEDGE", 0, 2, 0),
    Api(80, "ADD_RAFT_VOTER", 0, 1, 0),
    Api(81, "REMOVE_RAFT_VOTER", 0, 0, 0),
    Api(82, "UPDATE_RAFT_VOTER", 0, 0, 0),
    Api(83, "INITIALIZE_SHARE_GROUP_STATE", 0, 0, 0),
    Api(84, "READ_SHARE_GROUP_STATE", 0, 0, 0),
    Api(85, "WRITE_SHARE_GROUP_STATE", 0, 1, 0),
    Api(86, "DELETE_SHARE_GROUP_STATE", 0, 0, 0),
    Api(87, "READ_SHARE_GROUP_STATE_SUMMARY", 0, 1, 0),
    Api(88, "STREAMS_GROUP_HEARTBEAT", 0, 1, 0),
    Api(89, "STREAMS_GROUP_DESCRIBE", 0, 1, 0),
    Api(90, "DESCRIBE_SHARE_GROUP_OFFSETS", 0, 1, 0),
    Api(91, "ALTER_SHARE_GROUP_OFFSETS", 0, 0, 0),
    Api(92, "DELETE_SHARE_GROUP_OFFSETS", 0, 0, 0),
    Api(93, "STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE", 0, 0, 0),
    Api(94, "UNREGISTER_CONTROLLER", 0, 0, 0),
)
# fmt: on

API_KEYS: Mapping[str, int] = {api.name: api.key for api in APIS}
"""By name."""
