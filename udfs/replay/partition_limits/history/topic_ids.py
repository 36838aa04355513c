"""Which topic a name stands for, and since when: one that is deleted and made again has another id (KIP-516).

Versions of Metadata before 10 tell no id. What they show is of the id that others show, unless the topic was deleted or
made between both; where nobody tells ids, a name is one topic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.tables.steps import TOPIC_EVENTS
from udfs.columns.arrays import Bools, Ints
from udfs.columns.arrow_columns import compute as pc
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.replay.partition_limits.events import Shown, numbers, shown_in, topic_numbers
from udfs.replay.partition_limits.history.topic_times import NONE, TopicTimes
from udfs.replay.partition_limits.told_changes import Told
from udfs.replay.partition_limits.topics import AUTO, CREATE, DELETE


class TopicIds(NamedTuple):
    """Ids that Metadata shows, in the order of topic and `first`: int64[ids].

    maker: the change that made it, NONE where no captured one did. begin: since when the name stands for it, ALWAYS for
    what was there before. is_told: Metadata tells the id itself.
    """

    topic: Ints
    first: Ints
    is_told: Bools
    maker: Ints
    begin: Ints

    def about(self, told: Told) -> Ints:
        """By change the id that it makes or is about, NONE where that is not known."""
        begun = TopicTimes.of(self.topic, self.begin, np.full(len(self.topic), True))
        found = begun.last(told.topic, told.time)
        begin = np.append(self.begin, ALWAYS)[found]
        breaks = told.times(CREATE, DELETE)
        unbroken = breaks.up_to(told.topic, told.time - 1) <= breaks.up_to(told.topic, begin)
        makes = (told.kind == CREATE) & told.done
        is_maker = np.append(self.maker, NONE)[found] == np.arange(len(makes))
        return np.where(unbroken & (is_maker | ~makes), found, NONE)

    def makes_itself(self, told: Told) -> Bools:
        """By change whether a Metadata request made its topic, or would have, had it not been there: bool[changes]."""
        about = self.about(told)
        kind_of_maker = np.append(told.kind, NONE)[np.append(self.maker, NONE)]
        by_itself = kind_of_maker == AUTO
        return (told.kind == AUTO) & (by_itself[about] | self.has_no_id(told, by_itself[:-1]))

    def has_no_id(self, told: Told, which: Bools | bool = True) -> Bools:
        """By change whether its topic is one of `which`, begun before, whose id nobody tells: what was made after a
        deletion is then not told from what was there before.
        """
        nameless = TopicTimes.of(self.topic, self.begin, which & ~self.is_told)
        return nameless.last(told.topic, told.time) != NONE

    def gone_before(self, told: Told, topic: Ints, time: Ints) -> Bools:
        """Whether a topic that Metadata showed was deleted before it was made at this time, beside what is captured."""
        shown = TopicTimes.of(self.topic, self.first, np.full(len(self.topic), True)).last(topic, time - 1)
        deleted = told.times(DELETE).last(topic, time)
        at = np.where(deleted != NONE, np.append(told.time, ALWAYS)[deleted], ALWAYS)
        return (shown != NONE) & (at < np.append(self.first, NEVER)[shown])


def topic_ids(sightings: pa.Table, names: pa.Array[Any], told: Told, nodes: Ints) -> tuple[TopicIds, Shown]:
    """The ids that sightings tell, and the partitions of each."""
    t = TOPIC_EVENTS
    topic, time = topic_numbers(sightings[t.topic], names), numbers(sightings[t.time], NEVER)
    texts = sightings[t.topic_id]
    code = numbers(pc.index_in(texts, value_set=pc.unique(texts.drop_null())), -1)
    key, group = np.unique(topic << 32 | (code + 1), return_inverse=True)
    first = np.full(len(key), NEVER)
    np.minimum.at(first, group, time)
    is_told, of = key & 0xFFFFFFFF != 0, key >> 32
    group = with_nameless(of, first, is_told, told.times(CREATE, DELETE))[group]
    np.minimum.at(first, group, time)
    used = np.unique(group)
    order = used[np.lexsort((first[used], of[used]))]
    place = np.zeros(len(key), np.int64)
    place[order] = np.arange(len(order))
    shown = shown_in(sightings, place[group], nodes)
    return with_makers(of[order], first[order], is_told[order], told), shown


def with_nameless(topic: Ints, first: Ints, is_told: Bools, breaks: TopicTimes) -> Ints:
    """By group of sightings the group it belongs to: of one without an id the first that has one, was shown with no
    deletion or creation between, and is of the same topic; else itself.
    """
    era = breaks.up_to(topic, first - 1)
    key = topic * (len(breaks.row) + 1) + era
    told = np.flatnonzero(is_told)
    told = told[np.lexsort((first[told], key[told]))]
    place = np.searchsorted(key[told], key)
    same = np.append(key[told], -1)[place] == key
    own = np.arange(len(topic))
    return np.where(~is_told & same, np.append(told, -1)[place], own)


def with_makers(topic: Ints, first: Ints, is_told: Bools, told: Told) -> TopicIds:
    """What made each id: the last creation before it was shown, and after another id of the name was; else, after the
    last deletion there, the first Metadata request that would have the topic made.
    """
    is_next = np.append(False, np.diff(topic) == 0)[: len(topic)]
    after = np.where(is_next, np.append(ALWAYS, first[:-1])[: len(topic)], ALWAYS)
    time = np.append(told.time, ALWAYS)
    created = told.times(CREATE).last(topic, first - 1)
    deleted = told.times(DELETE).last(topic, first - 1)
    wished = told.wishes().next(topic, np.maximum(after, np.where(deleted != NONE, time[deleted], ALWAYS)))
    by_itself = np.where((wished != NONE) & (time[wished] < first), wished, NONE)
    maker = np.where((created != NONE) & (time[created] > after), created, by_itself)
    begin = np.where(maker != NONE, time[maker], np.where(is_next, first, ALWAYS))
    return TopicIds(topic, first, is_told, maker, begin)
