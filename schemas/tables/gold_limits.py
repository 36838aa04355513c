"""The gold tables of KIP-578: limits on partitions. It is a proposal; no release of Kafka has it."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

KIND = C("string", "create_topic, auto_create, create_partitions, reassign_partition or delete_topic")
LIMIT = C("string", "max.broker.partitions or max.partitions (both of the proposal)")
CLIENT_ID = C("string", "client.id of who asked; empty for none")
PRINCIPAL = C("string", "Who asked, according to a request log; empty for none", names="principal")
PRODUCES_FAILED = C(
    "bigint",
    "Produce requests with batches for a topic that does not exist because it was refused, until the next change to "
    "the topic. When they would be retried is not followed",
)
FETCHES_FAILED = C("bigint", "Likewise Fetch requests of consumers")
METADATA_FAILED = C(
    "bigint",
    "Likewise Metadata requests that name the topic; whether a broker with auto.create.topics.enable would create it "
    "for a request that allows that is not followed",
)
CONNECTION_ID = C("bigint", "The request's connection")
EXCHANGE_NO = C("bigint", "The request's number on its connection")
POSITION = C("int", "Place in the request among its topics")

PARTITION_LIMITS = table(
    "partition_limits", "gold",
    "What limits on partitions would have let through (KIP-578, a proposal), by kind, topic prefix, client and "
    "principal.",
    ("run_id", "scenario", "kind", "topic_prefix", "client_id", "principal"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    kind=KIND,
    topic_prefix=C("string", "The topic's name up to the first of . - _"),
    client_id=CLIENT_ID,
    principal=PRINCIPAL,
    tried=C("bigint", "Changes to topics that were asked for"),
    done=C("bigint", "... and done"),
    refused_by_broker_limit=C("bigint", "... refused by max.broker.partitions"),
    refused_by_cluster_limit=C("bigint", "... refused by max.partitions"),
    refused_by_kafka=C("bigint", "... refused by what limits partitions in Kafka today: 10,000 partitions or records a "
                                 "request, the controller mutation quota"),
    refused_before=C("bigint", "... failed because the topic was refused before"),
    otherwise_failed=C("bigint", "... failed for another reason, such as a topic that exists already"),
    replicas_asked=C("bigint", "Replicas asked for"),
    replicas_refused=C("bigint", "... by changes that were refused by a limit"),
    produces_failed=PRODUCES_FAILED,
    fetches_failed=FETCHES_FAILED,
    metadata_failed=METADATA_FAILED,
)  # fmt: skip

PARTITION_LIMIT_REFUSALS = table(
    "partition_limit_refusals", "gold",
    "One row per change to topics that a limit would have refused, and per change that fails because its topic was "
    "refused. KIP-578 is a proposal.",
    ("run_id", "scenario", "connection_id", "exchange_no", "position"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    request_time=C("timestamp", "When it was asked for", "UTC"),
    connection_id=CONNECTION_ID,
    exchange_no=EXCHANGE_NO,
    position=POSITION,
    kind=KIND,
    topic=C("string", "The topic", names="topic"),
    client_id=CLIENT_ID,
    principal=PRINCIPAL,
    error_code=C("smallint", "44 POLICY_VIOLATION by a limit; 89 by a quota, -1 by too many records, 3 for a topic "
                             "that was refused before"),
    refused_by=C("string", "What refused it: a limit's name; refused_before if the topic itself was refused"),
    limit_value=C("bigint", "The limit; 0 for refused_before"),
    present=C("bigint", "The current number of what it limits: replicas of the broker, or of the cluster"),
    asked=C("bigint", "Replicas asked for; partitions or records if those are limited"),
    broker=C("int", "The broker that would exceed the limit; null if it is no single one", nullable=True),
    message=C("string", "The message of the refusal"),
    produces_failed=PRODUCES_FAILED,
    fetches_failed=FETCHES_FAILED,
    metadata_failed=METADATA_FAILED,
    captured_error_code=C("smallint", "What the cluster answered; null if the capture has no response", nullable=True),
)  # fmt: skip

PARTITION_LIMIT_CURVE = table(
    "partition_limit_curve", "gold",
    "For every value of a KIP-578 limit (a proposal), the first change that would have been refused, each limit by "
    "itself. For a window only those that refuse nothing before it.",
    ("run_id", "refused_by", "limit_from"), "run_id",
    run_id=RUN_ID,
    refused_by=LIMIT,
    limit_from=C("bigint", "The row holds from this limit on"),
    limit_to=C("bigint", "... up to this one; null without end", nullable=True),
    request_time=C("timestamp", "When the first change that fails was asked for; null if none fails", "UTC",
                   nullable=True),
    connection_id=C("bigint", "Its connection", nullable=True),
    exchange_no=C("bigint", "Its request", nullable=True),
    position=C("int", "Its place in the request", nullable=True),
    kind=C("string", "Its kind", nullable=True),
    topic=C("string", "Its topic", nullable=True, names="topic"),
    present=C("bigint", "Replicas there at limit_from; of max.partitions at every limit of the row", nullable=True),
    asked=C("bigint", "Replicas it asks for", nullable=True),
)  # fmt: skip

PARTITIONS_PER_BROKER = table(
    "partitions_per_broker", "gold",
    "Replicas on each broker over time, at up to 100 points of a run; without those of internal topics, as KIP-578 (a "
    "proposal) counts.",
    ("run_id", "scenario", "broker", "at"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    broker=C("int", "The broker's node id"),
    at=C("timestamp", "When", "UTC"),
    partitions=C("bigint", "Replicas on the broker"),
    limit_value=C("bigint", "max.broker.partitions in force; null for none", nullable=True),
    headroom=C("bigint", "Replicas that it may still get, below 0 if it has more; null without a limit",
               nullable=True),
)  # fmt: skip

PARTITION_LIMIT_HEADROOM = table(
    "partition_limit_headroom", "gold",
    "How far a KIP-578 limit (a proposal) is at the end of a run, and when it is reached at the run's growth.",
    ("run_id", "scenario", "refused_by", "broker"), "run_id",
    run_id=RUN_ID,
    scenario=SCENARIO,
    refused_by=LIMIT,
    broker=C("int", "The broker; null for the cluster", nullable=True),
    limit_value=C("bigint", "The limit in force at the end"),
    partitions=C("bigint", "Replicas at the end"),
    headroom=C("bigint", "Replicas that still fit, below 0 if there are more"),
    growth_per_day=C("double", "Replicas a day, over the run, as they came without a limit"),
    breach_at=C("timestamp", "When the limit is reached at that growth; null if it is not, within 100 years", "UTC",
                nullable=True),
)  # fmt: skip

LIMIT_TABLES = (
    PARTITION_LIMITS, PARTITION_LIMIT_REFUSALS, PARTITION_LIMIT_CURVE, PARTITIONS_PER_BROKER, PARTITION_LIMIT_HEADROOM,
)  # fmt: skip
