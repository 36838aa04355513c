"""A topic that is deleted and created again has a new id. What Metadata shows of it belongs to one of the ids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.gold import FIDELITY
from schemas.tables.gold_limits import PARTITION_LIMITS
from tests.unit.replay.partition_limits.clusters import (
    CLUSTER_LIMIT,
    Row,
    Rows,
    created,
    grown,
    on_brokers,
    replay,
    requested,
    shown,
)
from udfs.columns.records import new_records
from udfs.replay.partition_limits.events import TOPIC_REQUEST
from udfs.replay.partition_limits.history.topic_ids import TOPIC_ID, gone_before
from udfs.replay.partition_limits.state import DELETE

FIRST, AGAIN = [[2], [3], [1], [1]], [[3], [1]]


def shown_by_id(topic_id: str | None, time: int, replicas: list[list[int]]) -> Rows:
    """The topic `a` as Metadata shows it, with an id."""
    return [row | {"topic_id": topic_id} for row in shown("a", replicas, time)]


def by_auto(time: int) -> Row:
    return requested(time, "auto_create", "a", error=3)


def judged(rows: Rows) -> dict[str, tuple[int, int, dict[str, int]]]:
    """(changes checked, how many agree, the reasons), by metric."""
    f = FIDELITY
    return {row[f.metric]: (row[f.checked], row[f.agreed], dict(row[f.reasons])) for row in replay(rows)[f]}


DELETED = requested(5, "delete_topic", "a")
MADE_AGAIN = [*shown_by_id("id-1", 3, FIRST), DELETED, *shown_by_id("id-2", 9, AGAIN)]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([created(1, "a", 4), *MADE_AGAIN, created(7, "a", 2)], id="requested both times"),
        pytest.param([created(1, "a", 4), *MADE_AGAIN, by_auto(7)], id="by a Metadata request the second time"),
        pytest.param([by_auto(1), *MADE_AGAIN, by_auto(7)], id="by Metadata requests both times"),
        pytest.param([by_auto(1), *MADE_AGAIN, created(7, "a", 2)], id="by a Metadata request the first time"),
        pytest.param([*MADE_AGAIN, by_auto(7)], id="there before, then by a Metadata request"),
        pytest.param([*MADE_AGAIN, created(7, "a", 2)], id="there before, then requested"),
        pytest.param(MADE_AGAIN, id="there before, then created outside the capture"),
        pytest.param([row for row in MADE_AGAIN if row is not DELETED], id="deleted and created outside the capture"),
    ],
)
def test_a_topic_that_is_created_again_is_where_metadata_shows_its_new_id(rows: Rows) -> None:
    """The capture ends with a change to another topic, because replicas are counted at the times of changes."""
    rows = [*rows, created(30, "b", 1), *shown("b", [[3]], 40)]
    assert on_brokers(rows) == [1, 0, 2]
    verdicts = judged(rows)
    assert {metric: checked - agreed for metric, (checked, agreed, _) in verdicts.items()} == dict.fromkeys(verdicts, 0)
    assert not any("allowed_but_refused" in reasons for _, _, reasons in verdicts.values())


def test_changes_of_a_topic_that_a_metadata_request_creates_again_agree() -> None:
    rows = [created(1, "a", 4), *MADE_AGAIN, by_auto(7), created(11, "a", 1, error=36), grown(12, "a", 4),
            requested(13, "delete_topic", "a")]  # fmt: skip
    verdicts = judged(rows)
    assert verdicts["create_topic"] == (2, 2, {})
    assert verdicts["auto_create"] == (1, 1, {})
    assert verdicts["create_partitions"] == (1, 1, {})
    assert verdicts["delete_topic"] == (2, 2, {})


def test_a_limit_also_refuses_a_topic_that_is_created_again() -> None:
    rows = [created(1, "a", 4), *MADE_AGAIN, by_auto(7), by_auto(8)]
    t = PARTITION_LIMITS
    tried = {row[t.kind]: (row[t.tried], row[t.refused_by_cluster_limit])
             for row in replay(rows, {"one": {CLUSTER_LIMIT: 1}})[t] if row[t.scenario] == "one"}  # fmt: skip
    assert tried["auto_create"] == (2, 2)


def test_partitions_that_old_versions_show_without_an_id_are_of_the_topic_of_that_time() -> None:
    first = [*shown_by_id(None, 2, FIRST), *shown_by_id("id-1", 4, FIRST), grown(3, "a", 5), DELETED]
    rows = [*first, created(7, "a", 2), *shown_by_id(None, 8, AGAIN), *shown_by_id("id-2", 9, AGAIN)]
    verdicts = judged(rows)
    assert verdicts["create_partitions"][:2] == verdicts["delete_topic"][:2] == (1, 1)


def test_the_partitions_of_a_topic_that_was_created_again_unseen_are_not_known() -> None:
    first = [created(1, "a", 4), *shown_by_id("id-1", 3, FIRST), DELETED]
    rows = [*first, grown(8, "a", 9), *shown_by_id("id-2", 9, AGAIN)]
    assert judged(rows)["create_partitions"] == (0, 0, {"topic_not_seen": 1})


EVENTS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), max_size=4)


@given(EVENTS, st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6), st.booleans()), max_size=4), EVENTS)
def test_a_topic_is_gone_before_a_creation_if_it_was_shown_and_not_deleted_since(
    shown_at: list[tuple[int, int]], deleted: list[tuple[int, int, bool]], creations: list[tuple[int, int]]
) -> None:
    """Each event has a topic and a time. A deletion at the time of the first sighting may have come after it."""
    ids = new_records(TOPIC_ID, len(shown_at), topic=[of for of, _ in shown_at], first_shown=[at for _, at in shown_at])
    columns = {"topic": [of for of, *_ in deleted], "time": [at for _, at, _ in deleted]}
    requests = new_records(TOPIC_REQUEST, len(deleted), kind=DELETE, is_done=[of[2] for of in deleted], **columns)
    expected = []
    for topic, time in creations:
        shown = max((at for of, at in shown_at if of == topic and at < time), default=None)
        gone = max((at for of, at, is_done in deleted if of == topic and at <= time and is_done), default=-1)
        expected.append(shown is not None and gone < shown)
    of_topic, at_time = (np.array([event[which] for event in creations], np.int64) for which in (0, 1))
    assert gone_before(requests, ids, of_topic, at_time).tolist() == expected
