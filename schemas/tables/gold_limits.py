"""The gold tables of KIP-578: limits on partitions. It is a proposal; no release of Kafka has it."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

KIND = C("string", "create_topic, auto_create, create_partitions, reassign_partition or delete_topic")
LIMIT = C("string", "max.broker.partitions or max.partitions (both of the proposal)")
CLIENT_ID = C("string", "client.id of the client that asked for the change; empty for none")
PRINCIPAL = C(
    "string", "Principal that asked for the change, as a request log shows it; empty for none", names="principal"
)
PRODUCES_FAILED = C(
    "bigint",
    "Produce requests with batches for a topic that does not exist because it was refused, until the next "
    "change to the topic. It is not followed when clients would retry",
)
FETCHES_FAILED = C(
    "bigint",
    "Fetch requests of consumers for a topic that does not exist because it was refused, until the next change "
    "to the topic",
)
METADATA_FAILED = C(
    "bigint",
    "Metadata requests that name a topic that does not exist because it was refused, until the next change to "
    "the topic. It is not followed whether a broker with auto.create.topics.enable would create the topic for "
    "a request that allows it",
)
CONNECTION_ID = C("bigint", "Connection of the request")
EXCHANGE_NO = C("bigint", "Number of the request on its connection")
POSITION = C("int", "Position among the topics in the request, from 0")

PARTITION_LIMITS = table(
    "partition_limits", "gold",
    "What partition limits (KIP-578, a proposal) would have allowed and refused, by kind of change, topic prefix, "
    "client and principal.",
    ("run_id", "scenario", "kind", "topic_prefix", "client_id", "principal"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    kind=KIND,
    topic_prefix=C("string", "The topic's name up to the first of the characters . - _"),
    client_id=CLIENT_ID,
    principal=PRINCIPAL,
    tried=C("bigint", "Changes to topics that were asked for"),
    done=C("bigint", "Changes that the lane allows"),
    refused_by_broker_limit=C("bigint", "Changes that max.broker.partitions refuses"),
    refused_by_cluster_limit=C("bigint", "Changes that max.partitions refuses"),
    refused_by_kafka=C("bigint", "Changes that Kafka's own limits refuse today: 10,000 partitions or records in a "
                                 "request, or the controller mutation quota"),
    refused_before=C("bigint", "Changes that fail because their topic was refused earlier"),
    otherwise_failed=C("bigint", "Changes that fail for another reason, such as a topic that exists already"),
    replicas_asked=C("bigint", "Replicas that the changes ask for"),
    replicas_refused=C("bigint", "Replicas that are asked for by changes that a limit refuses"),
    produces_failed=PRODUCES_FAILED,
    fetches_failed=FETCHES_FAILED,
    metadata_failed=METADATA_FAILED,
)  # fmt: skip

PARTITION_LIMIT_REFUSALS = table(
    "partition_limit_refusals", "gold",
    "One row per change to topics that a limit (KIP-578, a proposal) would have refused, and per change that fails "
    "because its topic was refused.",
    ("run_id", "scenario", "connection_id", "exchange_no", "position"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    request_time=C("timestamp", "When the change was asked for", "UTC"),
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    position=POSITION,
    kind=KIND,
    topic=C("string", "The topic", names="topic"),
    client_id=CLIENT_ID,
    principal=PRINCIPAL,
    error_code=C("smallint", "44 (POLICY_VIOLATION) for a limit, 89 for a quota, -1 for too many records, 3 for a "
                             "topic that was refused before"),
    refused_by=C("string", "Name of the limit that refused it; refused_before if its topic was refused earlier"),
    limit_value=C("bigint", "Value of the limit; 0 for refused_before"),
    present=C("bigint", "How many there are already of what the limit counts: replicas on the broker or in the cluster",
              ),
    asked=C("bigint", "Replicas that the change asks for; partitions or records if the limit counts those"),
    broker=C("int", "Node id of the broker that would exceed the limit; null if it is not a single broker",
             nullable=True),
    message=C("string", "Message of the refusal"),
    produces_failed=PRODUCES_FAILED,
    fetches_failed=FETCHES_FAILED,
    metadata_failed=METADATA_FAILED,
    captured_error_code=C("smallint", "Error code with which the cluster answered; null if the capture has no response",
                          nullable=True),
)  # fmt: skip

PARTITION_LIMIT_CURVE = table(
    "partition_limit_curve", "gold",
    "For every possible value of a limit (KIP-578, a proposal), the first change that it would have refused, for each "
    "limit by itself. For a run of a window, only the values that refuse nothing before the window.",
    ("run_id", "refused_by", "limit_from"), "run_id",
    run_id=RUN_ID,
    refused_by=LIMIT,
    limit_from=C("bigint", "Smallest value of the limit to which the row applies"),
    limit_to=C("bigint", "Largest value of the limit to which the row applies; null if there is no largest",
               nullable=True),
    request_time=C("timestamp", "When the first change that is refused was asked for; null if none is refused",
                   "UTC", nullable=True),
    connection_id=C("bigint", "Connection of the request with the first refused change; null if none is refused",
                    nullable=True),
    exchange_no=C("bigint", "Number of that request on its connection; null if none is refused", nullable=True),
    position=C("int", "Position of the first refused change in its request, from 0; null if none is refused",
               nullable=True),
    kind=C("string", "Kind of the first refused change; null if none is refused", nullable=True),
    topic=C("string", "Topic of the first refused change; null if none is refused", nullable=True, names="topic"),
    present=C("bigint", "Replicas that are there when the change is refused, with the limit at limit_from; for "
                        "max.partitions, with every limit of the row. Null if none is refused", nullable=True),
    asked=C("bigint", "Replicas that the first refused change asks for; null if none is refused", nullable=True),
)  # fmt: skip

PARTITIONS_PER_BROKER = table(
    "partitions_per_broker", "gold",
    "Replicas on each broker over time, at up to 100 times of a run. Replicas of internal topics are not counted, as "
    "in KIP-578 (a proposal).",
    ("run_id", "scenario", "broker", "at"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=C("int", "The broker's node id"),
    at=C("timestamp", "Time at which replicas are counted", "UTC"),
    partitions=C("bigint", "Replicas on the broker"),
    limit_value=C("bigint", "max.broker.partitions at that time; null if there is no limit", nullable=True),
    headroom=C("bigint", "Replicas that the limit still allows, below 0 if the broker has more than that; null if "
                         "there is no limit", nullable=True),
)  # fmt: skip

PARTITION_LIMIT_HEADROOM = table(
    "partition_limit_headroom", "gold",
    "How many replicas a limit (KIP-578, a proposal) still allows at the end of a run, and when growth as in the run "
    "reaches it.",
    ("run_id", "scenario", "refused_by", "broker"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    refused_by=LIMIT,
    broker=C("int", "Node id of the broker; null for the limit of the cluster", nullable=True),
    limit_value=C("bigint", "The limit in force at the end"),
    partitions=C("bigint", "Replicas at the end"),
    headroom=C("bigint", "Replicas that the limit still allows at the end, below 0 if there are more than that"),
    growth_per_day=C("double", "How many replicas per day the run adds without a limit"),
    breach_at=C("timestamp", "When that growth reaches the limit; null if it does not within 100 years",
                "UTC", nullable=True),
)  # fmt: skip

LIMIT_TABLES = (
    PARTITION_LIMITS, PARTITION_LIMIT_REFUSALS, PARTITION_LIMIT_CURVE, PARTITIONS_PER_BROKER, PARTITION_LIMIT_HEADROOM,
)  # fmt: skip
