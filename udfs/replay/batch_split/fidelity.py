"""How well what a producer sent agrees with KIP-126 at the captured settings: verdicts, counted by metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from schemas.tables.split_reasons import SPLITS
from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Floats, Ints, Records
from udfs.columns.sentinels import NONE
from udfs.replay.batch_split.events import Sent
from udfs.replay.batch_split.lanes import Measure
from udfs.replay.batch_split.possible_estimates.events import groups_of_sendings
from udfs.replay.batch_split.possible_estimates.fidelity import judge_group, judge_group_in_order
from udfs.replay.batch_split.possible_estimates.order import no_order, write_order
from udfs.replay.batch_split.possible_estimates.state import EstimateGroup, Memory
from udfs.replay.batch_split.recompression import BY_PARTS, FITTED
from udfs.replay.batch_split.stored_size import checked_sizes
from udfs.replay.shared.fidelity_rows import AGREED
from udfs.replay.shared.lanes import CAPTURED
from udfs.replay.shared.window import WHOLE, Window
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD


class Metric(StrEnum):
    """What is compared: schemas.tables.metrics."""

    BATCHES = "batches"
    IN_ONE_ORDER = "batches_in_one_order"
    SPLITS = "splits"
    SPLITS_REPLAYED = "splits_replayed"
    RECUT_BY_PARTS = "recut_bytes_recompressed"
    RECUT_FITTED = "recut_bytes_fitted"
    RECUT_EXACT = "recut_bytes_exact"
    FIRST_EXACT = "first_bytes_exact"


STATED_ERRORS = {
    Metric.RECUT_BY_PARTS: 0.05, Metric.RECUT_FITTED: 0.05, Metric.RECUT_EXACT: 0.005, Metric.FIRST_EXACT: 0.005,
}  # fmt: skip
"""A size agrees if it differs by at most this share of the captured size."""

CODES = SPLITS.codes
Verdicts = Counter[tuple[Metric, int]]
"""How often each verdict was given: AGREED or the code of a reason."""


class Sizes(NamedTuple):
    """Captured batches of one kind. topic: int64[n], the topics' numbers. replayed: float64[n], the bytes that the
    replay gives them. captured: int64[n], bytes.
    """

    topic: Ints
    replayed: Floats
    captured: Ints

    @property
    def error(self) -> Floats:
        """How much each size differs, as a share of the captured size: float64[n]."""
        return np.abs(self.replayed - self.captured) / np.maximum(self.captured, 1)


class NearLimit(NamedTuple):
    """How many captured batches are near max.message.bytes when first sent: one record more or less would have changed
    the broker's answer. Counted are those that the broker took, and those that it refused.
    """

    taken: int = 0
    refused: int = 0


@dataclass
class ProducerFidelity:
    """The verdicts on what a producer sent in the window, gathered stretch by stretch.

    estimates: the estimate after the last judged stretch, by topic and codec. unsized: how many answered batches the
    brokers stored in an unknown size. sizes: captured batches with the sizes that the replay gives them.
    """

    memory: Memory
    window: Window = WHOLE
    verdicts: Verdicts = field(default_factory=Verdicts)
    estimates: dict[tuple[int, int], float] = field(default_factory=dict)
    near_limit: NearLimit = field(default_factory=NearLimit)
    unsized: int = 0
    sizes: dict[Metric, list[Sizes]] = field(default_factory=dict)

    def count_unread(self, sent: Sent) -> None:
        """Count the batches that could not be read."""
        unread = int(((sent.sendings["records"] == 0) & self.window.has(sent.sendings["request_time"])).sum())
        self.verdicts[Metric.BATCHES, CODES[SPLITS.records_unknown]] += unread

    def count_unchecked(self, sent: Sent, reason: str) -> None:
        """Count the batches of a client that cannot be replayed for a reason."""
        counted = int(self.window.has(sent.first_sendings["request_time"]).sum())
        self.verdicts[Metric.BATCHES, CODES[reason]] += counted

    def judge(self, sent: Sent, settings: Records, limits: Ints, stored: Ints) -> Records:
        """Count the verdicts on batches and refusals. Returns the order of closes and splits that the batches show.

        settings: SPLIT_SETTINGS[lanes]. limits: int64[topics], max.message.bytes. stored: as in `checked_sizes`.
        """
        self.count_refusals(sent, limits, stored)
        self.count_near_limit(sent, limits, stored)
        order, records = no_order(len(sent.sendings)), sent.capture.records
        groups = groups_of_sendings(sent, int(settings["linger_us"][CAPTURED]), self.estimates)
        for number, group in enumerate(groups):
            in_order, placed = judge_group_in_order(group, records, settings, self.memory)
            write_order(order, group, number, placed)
            verdicts, estimate = judge_group(group, records, settings, self.memory)
            self.estimates[group.topic, group.codec] = estimate
            counts = self.window.has(group.batches["time"])
            self.count(Metric.BATCHES, known_until(sent, group, verdicts)[counts])
            self.count(Metric.IN_ONE_ORDER, known_until(sent, group, in_order)[counts])
        return order

    def count(self, metric: Metric, verdicts: Ints) -> None:
        """Count the verdicts on a metric. verdicts: int64[n], AGREED or the codes of reasons."""
        for code, count in zip(*np.unique(verdicts, return_counts=True), strict=True):
            self.verdicts[metric, int(code)] += int(count)

    def count_refusals(self, sent: Sent, limits: Ints, stored: Ints) -> None:
        """Compare the batches that were refused as too large with those that are larger than max.message.bytes.

        limits: int64[topics], bytes. stored: int64[topics], as in `checked_sizes`.
        """
        sendings, checked = sent.sendings, checked_sizes(sent.sendings, stored)
        is_answered = (sendings["error"] != NONE) & (sendings["records"] > 1)
        is_answered &= self.window.has(sendings["request_time"])
        refused = is_answered & (sendings["error"] == MESSAGE_TOO_LARGE)
        larger = is_answered & (checked.size > limits[sendings["topic"]])
        self.unsized += int((is_answered & ~checked.is_known).sum())
        for verdict, cases in (
            (AGREED, refused & larger),
            (CODES[SPLITS.split_not_captured], larger & ~refused),
            (CODES[SPLITS.recompressed], refused & ~larger & ~checked.is_known),
            (CODES[SPLITS.split_not_replayed], refused & ~larger & checked.is_known),
        ):
            self.verdicts[Metric.SPLITS, verdict] += int(cases.sum())

    def count_near_limit(self, sent: Sent, limits: Ints, stored: Ints) -> None:
        """Count the batches whose distance from the limit is at most the size of their mean record.

        limits: int64[topics], bytes. stored: int64[topics], as in `checked_sizes`.
        """
        sendings = sent.first_sendings
        sendings = sendings[self.window.has(sendings["request_time"])]
        distance = np.abs(checked_sizes(sendings, stored).size - limits[sendings["topic"]])
        near = sendings["error"][distance * sendings["records"] <= sendings["size"]]
        refused = int((near == MESSAGE_TOO_LARGE).sum())
        taken = int((near != NONE).sum()) - refused
        self.near_limit = NearLimit(self.near_limit.taken + taken, self.near_limit.refused + refused)

    def compare_sizes(self, sent: Sent, measure: Measure | None) -> None:
        """Note the sizes that captured batches have in the replay. measure: compresses their records, if held."""
        for metric, sizes in compared_sizes(sent, measure, self.window):
            self.sizes.setdefault(metric, []).append(sizes)

    def count_replayed(self, replayed: int, at_once: int) -> None:
        """Count, at the end, the verdicts on sizes and on the splits of the captured lane.

        replayed: how often the captured lane splits. at_once: how often it splits if every batch is closed at the
        earliest possible time.
        """
        refused = (AGREED, CODES[SPLITS.split_not_replayed], CODES[SPLITS.recompressed])
        captured = sum(self.verdicts[Metric.SPLITS, code] for code in refused)
        for code, count in split_verdicts(captured, replayed, at_once, self.near_limit, self.unsized).items():
            self.verdicts[Metric.SPLITS_REPLAYED, code] += count
        for metric, sizes in self.sizes.items():
            error = np.concatenate([part.error for part in sizes])
            within = int((error <= STATED_ERRORS[metric]).sum())
            self.verdicts[metric, AGREED] += within
            self.verdicts[metric, CODES[SPLITS.bytes_beyond_error]] += len(error) - within


def known_until(sent: Sent, group: EstimateGroup, verdicts: Ints) -> Ints:
    """The verdicts on the batches of a group, with `records_unknown` from the first sending on that cannot be read.

    verdicts: int64[batches], as is the result.
    """
    unread = sent.sendings["request_time"][(sent.sendings["records"] == 0) & group.is_of]
    if len(unread) == 0:
        return verdicts
    return np.where(group.batches["time"] >= unread.min(), CODES[SPLITS.records_unknown], verdicts)


def split_verdicts(captured: int, replayed: int, at_once: int, near: NearLimit, unsized: int = 0) -> Counter[int]:
    """The verdicts on how often the captured lane splits, counted by code.

    captured, replayed: how many splits the capture shows, and how many the lane makes. at_once: how many the lane makes
    if every batch is closed at the earliest possible time. near, unsized: as in ProducerFidelity.

    The lane goes on from its own batches. If one close is a little earlier or later, batches end at other records, all
    later batches have other records, and other batches near the limit are refused. So some of the differing splits
    count as unknown: first, as many as closing at the earliest time brings the lane nearer to the capture; then, as
    many as there were batches near the limit; then, as many as there were batches stored in an unknown size.
    """
    agreed, off = min(captured, replayed), abs(captured - replayed)
    nearer = at_once - replayed if captured > replayed else replayed - at_once
    by_order = min(max(nearer, 0), off)
    by_limit = min(near.refused if captured > replayed else near.taken, off - by_order)
    by_size = min(unsized, off - by_order - by_limit)
    disagreement = SPLITS.split_not_replayed if replayed < captured else SPLITS.split_not_captured
    counts = {
        SPLITS.close_append_order: by_order, SPLITS.near_limit: by_limit, SPLITS.recompressed: by_size,
        disagreement: off - by_order - by_limit - by_size,
    }  # fmt: skip
    return Counter({AGREED: agreed, **{CODES[word]: count for word, count in counts.items()}})


class Cuts(NamedTuple):
    """Captured batches: their sendings, and the records [first, end) that they hold; int64[n] each."""

    sending: Ints
    first: Ints
    end: Ints


def compared_sizes(sent: Sent, measure: Measure | None, window: Window = WHOLE) -> Iterator[tuple[Metric, Sizes]]:
    """The sizes that each metric compares, for batches that were sent in the window.

    The models are compared on batches that splits made: they hold other records than the batches before, like those
    that the replay has to size. The models are not compared on batches as first sent, because they contain the captured
    sizes of these. For those batches, only the size to which their records are compressed anew is compared.
    """
    recut, batches = cuts_in(recut_batches(sent), sent, window), sent.capture.batches
    for metric, model in ((Metric.RECUT_BY_PARTS, BY_PARTS), (Metric.RECUT_FITTED, FITTED)):
        yield metric, modelled_sizes(sent, recut, model)
    if measure is not None:
        yield Metric.RECUT_EXACT, measured_sizes(sent, recut, measure)
        first = cuts_in(Cuts(batches["sending"], batches["first"], batches["end"]), sent, window)
        yield Metric.FIRST_EXACT, measured_sizes(sent, first, measure)


def cuts_in(cuts: Cuts, sent: Sent, window: Window) -> Cuts:
    """The batches that were sent in the window."""
    is_in_window = window.has(sent.sendings["request_time"][cuts.sending])
    return Cuts(*(column[is_in_window] for column in cuts))


def recut_batches(sent: Sent) -> Cuts:
    """The batches that splits made in the capture, if the capture shows which records they have."""
    sendings = sent.sendings
    # Without a sequence number it is not known where in its batch a part begins.
    is_known = (sendings["batch"] != NONE) & (sendings["sequence"] >= 0)
    parts = np.flatnonzero((sendings["is_whole"] == 0) & is_known & (sendings["uncompressed"] > 0))
    batches = sent.capture.batches[sendings["batch"][parts]]
    first = batches["first"] + sendings["offset"][parts]
    end = first + sendings["records"][parts]
    fits = end <= batches["end"]
    return Cuts(parts[fits], first[fits], end[fits])


def modelled_sizes(sent: Sent, cuts: Cuts, model: int) -> Sizes:
    """The sizes that a model gives to batches: BY_PARTS or FITTED."""
    (sending, first, end), (fixed, cost), sendings = cuts, sent.capture.sizes, sent.sendings
    codec = sendings["codec"][sending]
    inside = fixed[codec, first] + cost[model, codec, end] - cost[model, codec, first]
    return Sizes(sendings["topic"][sending], RECORD_BATCH_OVERHEAD + inside, sendings["size"][sending])


def measured_sizes(sent: Sent, cuts: Cuts, measure: Measure) -> Sizes:
    """The sizes to which the records of batches are compressed anew, for batches whose records are held."""
    sendings = sent.sendings[cuts.sending]
    batches = zip(cuts.first.tolist(), cuts.end.tolist(), sendings["codec"].tolist(), strict=True)
    size = np.array([measure(*batch) for batch in batches], np.float64)
    held = size > 0
    return Sizes(sendings["topic"][held], size[held], sendings["size"][held])
