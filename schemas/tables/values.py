"""Values of text columns that have one of a few: what is written and what is looked for."""

from __future__ import annotations

CONSUMER, FOLLOWER, PRODUCER = "consumer", "follower", "producer"
"""Of `reader`: who fetches; in `fidelity` also who produces."""
FULL, INCREMENTAL, SESSIONLESS = "full", "incremental", "sessionless"
"""Of FETCH_PARTITIONS.kind (KIP-227)."""
FROM_PRODUCE, FROM_FETCH = "produce", "fetch"
"""Of RECORD_BATCHES.source: the message that a batch was in."""
ANSWERED, NO_RESPONSE, UNANSWERED, ORPHAN_RESPONSE = "answered", "no_response", "unanswered", "orphan_response"
"""Of EXCHANGES.status: NO_RESPONSE where none was asked for (acks=0)."""
BROKER, PARTITION, TOPIC, RELEASE = "broker", "partition", "topic", "release"
"""Of CLUSTER_METADATA.entry: what the row is about; TOPIC for one without partitions. BROKER is, beside CONSUMER and
PRODUCER, also of MEMORY_EVENTS.side: whose memory it is."""
KRAFT, ZOOKEEPER = "kraft", "zookeeper"
"""Of CLUSTER_METADATA.controller, and of the setting `controller`."""
CREATE_TOPIC, AUTO_CREATE, CREATE_PARTITIONS = "create_topic", "auto_create", "create_partitions"
REASSIGN_PARTITION, DELETE_TOPIC = "reassign_partition", "delete_topic"
"""Of TOPIC_CHANGES.kind; AUTO_CREATE: by a Metadata request. They are metrics of `fidelity` as well."""
BY_CAPTURE, BY_CLOSED_LOOP = "capture", "closed_loop"
"""Of CONSUMER_MEMORY.responses_of and PRODUCER_MEMORY.times_of: what tells when memory is held. BY_CAPTURE and STATED
are also of LIBRDKAFKA_QUEUE.pace_of.
"""
NEVER_FULL, SIZES_NOT_MEASURED = "never_full", "sizes_not_measured"
OTHER_FETCH_LIMITS, CAPTURE_TOO_SHORT = "other_fetch_limits", "capture_too_short"
"""Of LIBRDKAFKA_QUEUE.unknown_for."""
CHANGE, KEEP, WITHHELD = "change", "keep", "withheld"
"""Of RECOMMENDATIONS.verdict."""
CAPTURED, INFERRED, STATED, DEFAULT = "captured", "inferred", "stated", "default"
"""Of RECOMMENDATIONS.source: packets have the value, it follows from them, somebody stated it, or nobody did."""
OF_CLIENT, OF_TOPIC, OF_CLUSTER = "client", "topic", "cluster"
"""Of RECOMMENDATIONS.scope_kind."""
