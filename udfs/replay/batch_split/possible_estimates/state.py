"""What is judged together: the batches of one topic and codec, and the closes and splits that move their estimate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records, Singles, read_only
from udfs.columns.records import int_fields
from udfs.columns.sentinels import NONE
from udfs.replay.batch_split.estimate import INITIAL_RATIO
from udfs.replay.batch_split.settings import KIP_TEXT
from udfs.replay.shared.lanes import CAPTURED

NO_ESTIMATE, LOST = -1.0, -2.0
"""Estimates that are not known: NO_ESTIMATE if the producer began before the capture, LOST if too many are possible."""
MOST_ESTIMATES = 1024
"""How many estimates are followed side by side."""
MOST_STEPS = 1 << 18
"""For how many steps to them there is memory."""

NOT_CUT, WAITED, EARLY, LINGERED = range(4)
"""Whether a batch may have been sent before a record came that it had no room for. WAITED: only if that record had to
wait before it was appended. EARLY: in any case. LINGERED: it may have been, and had reason to be, as it had lingered.
"""

CREATED = int_fields(
    "time",  # us, cut to a ms: when its first record was sent, which may have had to wait
    "until",  # us: when it had been created at the latest: the ms of the record that was sent next had ended
    "place",  # of its first record, among all records in the order of appending
    "later",  # the place of the first record of a later ms
    "first",  # its records are [first, end)
    "end",
    "next_content",  # bytes of the next record, which may have ended it
    "next_timestamp",
    "other_content",  # bytes of a record that went to another partition, but may have tried this one; or NONE
    "other_timestamp",
    "cut",  # NOT_CUT, WAITED, EARLY or LINGERED
    "before",  # the batch before it in its partition, or NONE
    "close_before",  # the close of that batch, or NONE
)
"""A batch when it was created, and what may have ended it. In the order of creation."""

CLOSE = np.dtype(
    [
        ("latest", np.int64),  # us: when the request was sent
        ("earliest", np.int64),  # us: the earliest time
        ("none_before", np.int64),  # the least `earliest` of this close and all after it
        ("after", np.int64),  # the place of the batch's last record, or NONE
        ("splits", np.int64),  # how many splits come before it at least; if it is of a part, its own split is the last
        ("ratio", np.float32),
    ],
    align=True,
)
"""A batch being closed, whether it is sent first or again. In the order of the requests."""

SPLIT = np.dtype(
    [
        ("earliest", np.int64),  # us: when the response came
        ("latest", np.int64),  # us: when the request of the first part was sent
        ("after", np.int64),  # the last close of a batch that left the partition's queue before the parts came, or NONE
        ("ratio", np.float32),
    ],
    align=True,
)
"""A refused batch being split. In the order of the responses."""

ESTIMATE = np.dtype(
    [
        ("ahead", np.int64),  # the closes from `base` on that it has followed, a bit each
        ("base", np.int32),  # it has followed all closes before this one
        ("splits", np.int32),  # how many splits it has followed
        ("step", np.int32),  # the last step to it, or NONE
        ("waits", np.int32),  # how many steps to it cannot have been in the ms of the batch that was created next
        ("estimate", np.float32),
    ],
    align=True,
)
"""An estimate that is possible, with the closes and splits that it has followed."""

STEP = int_fields("event", "batch", "before")
"""A step on the way to an estimate: a close, or a split, which are numbered behind all closes; the batch that was
created next; and the step before, or NONE."""

PLACED = int_fields("batch", "rank")
"""For a close or split, the batch that was created next, and its rank among all of them; NONE where nothing tells."""

JUDGED_BATCH = int_fields(
    "batch",  # the one that is judged
    "until",  # us: only closes and splits that can have happened by then can have moved its estimate
    "place",  # of a record: only closes of batches whose last record stands before it can have moved the estimate
    "estimates",  # how many are possible; one more than MOST_ESTIMATES: too many
    "agreeing",  # how many of these agree with the batch
    "steps",  # how many are kept
    "settled",  # steps that are not kept any more
)


class Memory(NamedTuple):
    """Working memory. possible: ESTIMATE[MOST_ESTIMATES + 1], the estimates that are possible. agreeing: ESTIMATE,
    those of them that agree with the batch that is judged. steps: STEP[MOST_STEPS]. progress: JUDGED_BATCH[1].
    """

    possible: Records
    agreeing: Records
    steps: Records
    progress: Records


class EstimateGroup(NamedTuple):
    """What a producer sent to one topic with one codec.

    is_of: bool[sendings], which sendings are of this group. batches: CREATED[n]. closes: CLOSE[n]. splits: SPLIT[n].
    closed, refused: the sendings of these closes and splits. initial: the estimate before the first close, else
    NO_ESTIMATE.
    """

    topic: int
    codec: int
    is_of: Bools
    batches: Records
    closes: Records
    splits: Records
    closed: Ints
    refused: Ints
    initial: float


class GroupSim(NamedTuple):
    """The batches of a group, and the estimates that are possible when each of them is created.

    If `in_order` is set, one order of closes and splits is sought that gives all batches. Batches of the same ms are
    then taken in the order of their records.
    """

    batches: Records  # CREATED[n]
    closes: Records  # CLOSE[n]
    splits: Records  # SPLIT[n]
    records: Records  # RECORD[records]
    settings: Records  # SPLIT_SETTINGS[1], the captured ones
    codec: int
    in_order: bool
    bounds: Singles  # float32[2], of every estimate
    memory: Memory
    # The results.
    verdicts: Ints  # int64[batches]
    order: Records  # PLACED[closes and splits]
    was_full: Bools  # bool[batches]: false where each agreeing estimate leaves room for the next record


def new_memory() -> Memory:
    """Working memory for one group after the other."""
    possible, agreeing = (np.zeros(MOST_ESTIMATES + 1, ESTIMATE) for _ in range(2))
    return Memory(possible, agreeing, np.zeros(MOST_STEPS, STEP), np.zeros(1, JUDGED_BATCH))


def new_sim(group: EstimateGroup, records: Records, settings: Records, memory: Memory, *, in_order: bool) -> GroupSim:
    """A group's batches, before the first of them is created. records: RECORD[records]. settings:
    SPLIT_SETTINGS[lanes].
    """
    memory.progress[0] = 0
    memory.possible[0] = (0, 0, 0, NONE, 0, group.initial)
    return GroupSim(
        batches=read_only(group.batches),
        closes=read_only(group.closes),
        splits=read_only(group.splits),
        records=read_only(records),
        settings=read_only(settings[CAPTURED : CAPTURED + 1]),
        codec=group.codec,
        in_order=in_order,
        bounds=read_only(estimate_bounds(group, settings[CAPTURED])),
        memory=memory,
        verdicts=np.zeros(len(group.batches), np.int64),
        order=np.full(len(group.closes) + len(group.splits), NONE, PLACED),
        was_full=np.ones(len(group.batches), np.bool_),
    )


def estimate_bounds(group: EstimateGroup, settings: np.void) -> Singles:
    """The least and the greatest estimate in any order of closes and splits; LOST where the first one is not known."""
    if group.initial < 0:
        return np.full(2, LOST, np.float32)
    ratios = np.concatenate([np.full(1, group.initial, np.float32), group.closes["ratio"]])
    least, greatest = ratios.min() - settings["improving_step"], ratios.max() + settings["deteriorate_step"]
    initial = np.float32(INITIAL_RATIO)
    raised = initial if settings["profile"] == KIP_TEXT else np.maximum(group.splits["ratio"], initial)
    if len(group.splits):
        greatest = max(greatest, np.max(raised))
    return np.array([max(least, np.float32(0)), greatest], np.float32)
