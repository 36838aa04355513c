"""Which topic a name stands for, and since when: a topic that is deleted and created again has another id (KIP-516).

Versions of Metadata before 10 have no ids. What they show belongs to the id that other versions show, unless the topic
was deleted or created between the two. If no version shows ids, a name is one topic.
"""

from __future__ import annotations

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.columns.records import int_fields
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.partition_limits.history.topic_times import TopicTimes, times_done, times_of_auto_creation
from udfs.replay.partition_limits.state import AUTO_CREATE, CREATE, DELETE

TOPIC_ID = int_fields(
    "topic",
    "first_shown",  # us
    "has_id",  # 1: Metadata shows it; 0: only an old version, which has no ids
    "maker",  # the request that created it, NONE if no captured one did
    "since",  # when the name began to stand for it (us), ALWAYS if it existed before
)
"""A topic id that Metadata shows."""


def topic_ids_in_order(sightings: Records, requests: Records) -> tuple[Records, Ints]:
    """The ids in the order of topic and of when they were first shown, TOPIC_ID[ids]; and for each sighting the row of
    its id, int64[sightings].

    sightings: SIGHTING[sightings]. requests: TOPIC_REQUEST[requests].
    """
    key, group = np.unique(sightings["topic"] << 32 | sightings["topic_id"], return_inverse=True)
    ids = np.zeros(len(key), TOPIC_ID)
    ids["topic"], ids["has_id"], ids["first_shown"] = key >> 32, key & 0xFFFFFFFF != 0, NEVER
    np.minimum.at(ids["first_shown"], group, sightings["time"])
    group = owning_rows(ids, times_done(requests, CREATE, DELETE))[group]
    np.minimum.at(ids["first_shown"], group, sightings["time"])
    used = np.unique(group)
    order = used[np.lexsort((ids["first_shown"][used], ids["topic"][used]))]
    number = np.zeros(len(key), np.int64)
    number[order] = np.arange(len(order))
    return with_makers(ids[order], requests), number[group]


def owning_rows(ids: Records, breaks: TopicTimes) -> Ints:
    """For each row the row of the id that it belongs to: int64[ids].

    A row without an id belongs to the first row of the same topic that has one, if there was no deletion or creation
    between them; every other row belongs to itself. ids: TOPIC_ID[ids].
    """
    era = breaks.up_to(ids["topic"], ids["first_shown"] - 1)
    key = ids["topic"] * (len(breaks.row) + 1) + era
    with_id = np.flatnonzero(ids["has_id"])
    with_id = with_id[np.lexsort((ids["first_shown"][with_id], key[with_id]))]
    place = np.searchsorted(key[with_id], key)
    is_same = np.append(key[with_id], -1)[place] == key
    return np.where((ids["has_id"] == 0) & is_same, np.append(with_id, -1)[place], np.arange(len(ids)))


def with_makers(ids: Records, requests: Records) -> Records:
    """The ids with the request that created each: TOPIC_ID[ids]; `maker` and `since` are written in place.

    It is the last creation between the time when another id of the name was first shown and the time when this id was.
    If there is none, it is the first Metadata request between them, and after the last deletion, that would have
    created the topic. requests: TOPIC_REQUEST[requests].
    """
    topic, first = ids["topic"], ids["first_shown"]
    is_next = np.append(False, np.diff(topic) == 0)[: len(topic)]
    after = np.where(is_next, np.append(ALWAYS, first[:-1])[: len(topic)], ALWAYS)
    time = np.append(requests["time"], ALWAYS)
    created = times_done(requests, CREATE).last(topic, first - 1)
    deleted = times_done(requests, DELETE).last(topic, first - 1)
    free = np.maximum(after, np.where(deleted != NONE, time[deleted], ALWAYS))
    wished = times_of_auto_creation(requests).next(topic, free)
    by_metadata = np.where((wished != NONE) & (time[wished] < first), wished, NONE)
    maker = np.where((created != NONE) & (time[created] > after), created, by_metadata)
    ids["maker"] = maker
    ids["since"] = np.where(maker != NONE, time[maker], np.where(is_next, first, ALWAYS))
    return ids


def subjects_of(requests: Records, ids: Records) -> Ints:
    """The row of the id that each request creates or is about, NONE if that is not known: int64[requests].

    requests: TOPIC_REQUEST[requests]. ids: TOPIC_ID[ids].
    """
    topic, time = requests["topic"], requests["time"]
    begun = TopicTimes.of(ids["topic"], ids["since"], np.full(len(ids), True)).last(topic, time)
    since, breaks = np.append(ids["since"], ALWAYS)[begun], times_done(requests, CREATE, DELETE)
    is_unbroken = breaks.up_to(topic, time - 1) <= breaks.up_to(topic, since)
    creates = (requests["kind"] == CREATE) & (requests["is_done"] == 1)
    is_maker = np.append(ids["maker"], NONE)[begun] == np.arange(len(requests))
    return np.where(is_unbroken & (is_maker | ~creates), begun, NONE)


def have_no_id(requests: Records, ids: Records, which: Bools | bool = True) -> Bools:
    """Which requests are about a topic for which Metadata shows no id: bool[requests].

    A topic that was created after a deletion can then not be told from the one before. requests:
    TOPIC_REQUEST[requests]. ids: TOPIC_ID[ids]. which: bool[ids], those that count if they began before the request.
    """
    nameless = TopicTimes.of(ids["topic"], ids["since"], which & (ids["has_id"] == 0))
    return nameless.last(requests["topic"], requests["time"]) != NONE


def are_creations(requests: Records, ids: Records, subjects: Ints) -> Bools:
    """Which requests are Metadata requests that created their topic, or would have if it had not existed:
    bool[requests].

    requests: TOPIC_REQUEST[requests]. ids: TOPIC_ID[ids]. subjects: int64[requests], from `subjects_of`.
    """
    kind_of_maker = np.append(requests["kind"], NONE)[np.append(ids["maker"], NONE)]
    by_metadata = kind_of_maker == AUTO_CREATE
    is_such = by_metadata[subjects] | have_no_id(requests, ids, by_metadata[:-1])
    return (requests["kind"] == AUTO_CREATE) & is_such


def gone_before(requests: Records, ids: Records, topic: Ints, time: Ints) -> Bools:
    """Whether a topic that Metadata showed was deleted, without a captured request, before it was created again:
    bool[n].

    requests: TOPIC_REQUEST[requests]. ids: TOPIC_ID[ids]. topic, time: int64[n], what is created and when (us).
    """
    shown = TopicTimes.of(ids["topic"], ids["first_shown"], np.full(len(ids), True)).last(topic, time - 1)
    deleted = times_done(requests, DELETE).last(topic, time)
    deleted_at = np.where(deleted != NONE, np.append(requests["time"], ALWAYS)[deleted], ALWAYS)
    return (shown != NONE) & (deleted_at < np.append(ids["first_shown"], NEVER)[shown])
