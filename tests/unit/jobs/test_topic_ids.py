"""From when to when a name stands for a topic id, as Metadata, creations and deletions show it."""

from __future__ import annotations

import pytest

from jobs.captures.topic_ids import ids_in_force
from schemas.tables.values import CREATE_TOPIC, DELETE_TOPIC
from udfs.columns.time_units import ALWAYS, NEVER

FIRST, SECOND = ("id-1", 10, 20), ("id-2", 50, 60)


@pytest.mark.parametrize(
    ("shown", "changes", "in_force"),
    [
        pytest.param([FIRST], [], [(ALWAYS, NEVER)], id="one id"),
        pytest.param([FIRST], [(CREATE_TOPIC, 5)], [(ALWAYS, NEVER)], id="one that was made"),
        pytest.param([FIRST], [(DELETE_TOPIC, 30)], [(ALWAYS, 30)], id="one that was deleted"),
        pytest.param([("id-1", 30, 30)], [(DELETE_TOPIC, 30)], [(ALWAYS, 30)], id="one that its deletion tells"),
        pytest.param([FIRST], [(DELETE_TOPIC, 5)], [(10, NEVER)], id="one behind another that was deleted"),
        pytest.param([FIRST], [(DELETE_TOPIC, 5), (CREATE_TOPIC, 7)], [(7, NEVER)], id="... and made again"),
        pytest.param([FIRST, SECOND], [], [(ALWAYS, 20), (50, NEVER)], id="two ids, as far as they were shown"),
        pytest.param([FIRST, SECOND], [(DELETE_TOPIC, 30)], [(ALWAYS, 30), (50, NEVER)], id="made again by itself"),
        pytest.param([FIRST, SECOND], [(DELETE_TOPIC, 15), (CREATE_TOPIC, 40)], [(ALWAYS, 15), (40, NEVER)],
                     id="a broker shows the first after its deletion"),
        pytest.param([FIRST, SECOND], [(CREATE_TOPIC, 5), (DELETE_TOPIC, 30), (CREATE_TOPIC, 35), (DELETE_TOPIC, 40)],
                     [(ALWAYS, 30), (50, NEVER)], id="one between both that nothing shows"),
        pytest.param([("id-1", 10, 55), SECOND], [], [(ALWAYS, 50), (50, NEVER)], id="a broker that is behind"),
    ],
)  # fmt: skip
def test_a_name_stands_for_an_id(
    shown: list[tuple[str, int, int]], changes: list[tuple[str, int]], in_force: list[tuple[int, int]]
) -> None:
    found = ids_in_force([("t", *one) for one in shown], [("t", *change) for change in changes])
    assert [(id_.since, id_.until) for id_ in found["t"]] == in_force
    assert [id_.topic_id for id_ in found["t"]] == [topic_id for topic_id, _, _ in shown]
