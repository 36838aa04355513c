"""The metadata log of a KRaft cluster (KIP-595), which brokers and controllers fetch from the active controller.

KafkaRaftClient answers these fetches by rules of its own: there is no fetch session and no limit of a partition, and a
fetch waits for records even if its `min_bytes` is 0. So they are in no replay, though a follower's node id is in them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from schemas.wire.fetch_sessions import FINAL_EPOCH, FIRST_WITH_SESSIONS, NO_SESSION
from udfs.columns.arrow_columns import compute

METADATA_LOG = ("__cluster_metadata", "AAAAAAAAAAAAAAAAAAAAAQ")
"""The name and the id of its topic."""


def is_of_metadata_log(topic: Any) -> Any:
    """Whether each of these topics, each a name or an id, is the metadata log: bool[rows], False if it is not known."""
    return compute.is_in(topic, value_set=pa.array(METADATA_LOG))


def without_metadata_log(rows: pa.RecordBatch, topic: str) -> pa.RecordBatch:
    """The rows of other topics than the metadata log. topic: the column with the topic's name or id."""
    of_log = is_of_metadata_log(rows[topic])
    return rows.filter(compute.invert(of_log)) if compute.any(of_log).as_py() else rows


def fetches_metadata_log(replica_id: Any, session_id: Any, session_epoch: Any, api_version: Any) -> Any:
    """Whether each Fetch request reads the metadata log, by its header alone: bool[rows]. Followers of other topics
    have a session in every version with sessions (FetchSessionHandler); KafkaRaftClient never has one.

    replica_id, session_id, session_epoch, api_version: int[rows], null where not known.
    """
    wants_none = compute.and_(compute.equal(session_id, NO_SESSION), compute.equal(session_epoch, FINAL_EPOCH))
    is_replica = compute.and_(
        compute.greater_equal(replica_id, 0), compute.greater_equal(api_version, FIRST_WITH_SESSIONS)
    )
    return compute.fill_null(compute.and_(wants_none, is_replica), False)
