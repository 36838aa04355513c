"""Compiles every kernel of this replay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.event_kinds import TopicEvent
from schemas.tables.steps import TOPIC_EVENTS
from schemas.tables.values import CREATE_TOPIC
from udfs.kernels.blank_rows import blank_rows
from udfs.replay.partition_limits.described_cluster import DescribedCluster, SizedTopics, described_events
from udfs.replay.partition_limits.replay import replay_topics
from udfs.replay.partition_limits.settings import unlimited_lane


def warm_up() -> None:
    """Create a topic in one lane and for the curves, and describe a cluster with one topic."""
    created = blank_rows(
        TOPIC_EVENTS, 2, entry=np.array([TopicEvent.BROKER, TopicEvent.CHANGE]), kind=pa.array([None, CREATE_TOPIC])
    )
    for _ in replay_topics([created], unlimited_lane(), "", 0):
        pass
    described_events(DescribedCluster([(0, None)], [SizedTopics("t", 1, 1, how_many=1)], [], 0, 1.0), seed=0)
