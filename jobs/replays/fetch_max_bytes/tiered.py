"""Topics with tiered storage (KIP-405): created with it, refused to a follower because of it, or stated."""

from __future__ import annotations

from pyspark.sql import functions as F

from jobs.replays.algorithm import Source
from jobs.replays.silver import read_small_table
from jobs.scenarios.scenario import Scenario
from schemas.tables.silver import FETCH_PARTITIONS
from schemas.tables.silver_topics import TOPIC_CHANGES
from schemas.tables.values import CREATE_TOPIC
from schemas.wire.errors import OFFSET_MOVED_TO_TIERED_STORAGE
from udfs.replay.fetch_max_bytes.silver_events import TieredTopics

OF_TOPICS, REMOTE_STORAGE = "topic.", "remote.storage.enable"


def tiered_topics(source: Source) -> TieredTopics:
    """The topics with tiered storage, looked up once for all replays: as stated, otherwise as the capture shows."""
    if source.lookups.tiered is None:
        shown = created_tiered(source) | refused_topics(source)
        source.lookups.tiered = known_topics(shown, source.run.scenario)
    return source.lookups.tiered


def known_topics(shown: set[str], scenario: Scenario) -> TieredTopics:
    """The topics with tiered storage. What is stated for one topic overrides what is stated for all, and that overrides
    what the capture shows.

    shown: the topics that have it according to the capture.
    """
    stated = {key: value == "true" for key, value in scenario.captured.items() if key.endswith(REMOTE_STORAGE)}
    of_all = stated.pop(f"{OF_TOPICS}{REMOTE_STORAGE}", None)
    of_one = {key.removeprefix(OF_TOPICS).removesuffix(f".{REMOTE_STORAGE}"): value for key, value in stated.items()}
    known = {**(dict.fromkeys(shown, True) if of_all is None else {}), **of_one}
    others = bool(of_all)
    return TieredTopics(others, frozenset(name for name, is_tiered in known.items() if is_tiered != others))


def created_tiered(source: Source) -> set[str]:
    """The topics that were created with tiered storage."""
    t = TOPIC_CHANGES
    columns = (t.kind, t.topic, t.error_code, t.validate_only, t.remote_storage_enable)
    return {
        row[t.topic]
        for row in read_small_table(source, t, columns).to_pylist()
        if row[t.kind] == CREATE_TOPIC and row[t.error_code] == 0 and row[t.validate_only] is False
        if row[t.remote_storage_enable]
    }


def refused_topics(source: Source) -> set[str]:
    """The topics from which a follower was refused records that only remote storage has."""
    f = FETCH_PARTITIONS
    refused = source.rows(f).where(F.col(f.error_code) == OFFSET_MOVED_TO_TIERED_STORAGE)
    return {row[0] for row in refused.where(F.col(f.topic).isNotNull()).select(f.topic).distinct().collect()}
