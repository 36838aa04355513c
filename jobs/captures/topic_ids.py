"""When a topic's name stands for which topic id: a topic that is deleted and made again gets another id (KIP-516)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter

from schemas.tables.values import CREATE_TOPIC, DELETE_TOPIC
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.facts.cluster_names import IdInForce


def ids_in_force(
    spans: Iterable[tuple[str, str, int, int]], changes: Iterable[tuple[str, str, int]]
) -> dict[str, list[IdInForce]]:
    """The ids of each name in time order, by name.

    Between two ids there is a time in which no id is known to be in force. It begins with the deletion of the first
    topic or, if that is not captured, with the last request for the first id. It ends with the creation of the second
    topic or, if that is not captured, with the first response that has the second id.

    spans: (name, id, when a response first had the id, when a request last asked for it). changes: (name, CREATE_TOPIC
    or DELETE_TOPIC, time of the request), of requests that succeeded. All times are us since 1970.
    """
    by_name: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for name, topic_id, first, last in spans:
        by_name[name].append((first, last, topic_id))
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    for name, kind, time in sorted(changes, key=itemgetter(2)):
        times[name, kind].append(time)
    return {
        name: ids_of_one_name(sorted(ids), times[name, CREATE_TOPIC], times[name, DELETE_TOPIC])
        for name, ids in sorted(by_name.items())
    }


def ids_of_one_name(
    ids: Sequence[tuple[int, int, str]], created: Sequence[int], deleted: Sequence[int]
) -> list[IdInForce]:
    """The ids of one name, each with the times when it came into force and when its force ended, us since 1970.

    ids: (first, last, id) in ascending order. created, deleted: the times of creations and deletions, ascending.
    """
    spans_of_ids = []
    for number, (first, last, topic_id) in enumerate(ids):
        earlier = ids[number - 1][0] if number else ALWAYS
        following = ids[number + 1][0] if number + 1 < len(ids) else NEVER
        before = max(earlier, newest_until(deleted, first - 1))
        made = newest_until(created, first)
        since = ALWAYS if before == ALWAYS else made if made > before else first
        place = bisect_left(deleted, first)
        end = deleted[place] if place < len(deleted) else NEVER
        until = min(last, following) if following < NEVER else NEVER
        spans_of_ids.append(IdInForce(topic_id, since, end if end < following else until))
    return spans_of_ids


def newest_until(times: Sequence[int], until: int) -> int:
    """The last time that is not after `until`; ALWAYS if there is none. times: in ascending order."""
    place = bisect_right(times, until)
    return times[place - 1] if place else ALWAYS
