"""Plots that compare: each has something to compare, or is left out and says why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from pyspark.sql import Row

from jobs.replays.batch_split.answers import lanes as split_lanes
from jobs.replays.fetch_max_bytes.answers import closed_lanes, open_lanes
from jobs.report_page.batch_split.refused_batches import sizes_by_codec
from jobs.report_page.batch_split.splits import estimate_curves, rates_by_size, splitting_producers, worst_estimates
from jobs.report_page.consumer_memory.memory_pool import PROPOSED, memory_curves, memory_over_time
from jobs.report_page.fetch_max_bytes.fetches import cut_by_lane, overrides_by_lane, shares_of_readers
from jobs.report_page.partition_limits import brokers_over_time, replicas_over_time
from jobs.report_page.question import Findings, Plot, Unplotted
from jobs.report_page.traffic import fetches_by_reader, produced_codecs
from schemas.tables.gold_limits import PARTITIONS_PER_BROKER
from schemas.tables.gold_memory import CONSUMER_MEMORY_TIMELINE
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_TIMELINE
from tests.unit.report.findings import AT, findings, row_of

LIMIT = "consumer.fetch.max.bytes="
POOL = "consumer.buffer.memory=16MiB"


def limits(*lanes: str) -> Findings:
    rows = [Row(reader="consumer", scenario=lane, cut=5, overrides=5) for lane in lanes]
    return findings({closed_lanes: rows, open_lanes: rows}, {"fetch_max_bytes": lanes})


def sizes(*lanes: str) -> Findings:
    rates, within = (0.2, 0.5, 0.1), {"split_rate_range": None}
    rows = [
        Row(**row_of(BATCH_SPLIT, scenario=lane, client_id="app", topic="orders", split_rate=rate).asDict(), **within)
        for lane, rate in zip(lanes, rates, strict=False)
    ]
    return findings({splitting_producers: rows, split_lanes: rows}, {"batch_split": lanes})


def spans(*batches: int) -> Findings:
    t = BATCH_SPLIT_TIMELINE
    rows = [row_of(t, first_batch=batch, client_id="app", topic="orders") for batch in batches]
    return findings({worst_estimates: rows}, {"batch_split": ("captured",)})


def held(lanes: tuple[str, ...], seconds: int) -> Findings:
    t = CONSUMER_MEMORY_TIMELINE
    rows = [
        row_of(t, scenario=lane, client_id="app", slot_start=AT + timedelta(seconds=at), used_bytes_max=9 + i)
        for i, lane in enumerate(lanes)
        for at in range(seconds)
    ]
    return findings({memory_over_time: rows}, {"consumer_memory": lanes})


def replicas(*seconds: int) -> Findings:
    p = PARTITIONS_PER_BROKER
    rows = [Row(**{p.broker: "1", p.at: AT + timedelta(seconds=at), p.partitions: 1}) for at in seconds]
    return findings({brokers_over_time: rows}, {"partition_limits": ("captured",)})


def fetching(*names: str) -> Findings:
    rows = [Row(reader=name, fetches=4, empty=1, bytes=90, sessions=1, oldest=12, cut=0) for name in names]
    return findings({fetches_by_reader: rows})


def codecs(uncompressed: int | None) -> Findings:
    return findings({produced_codecs: [Row(codec="none", bytes=90, uncompressed=uncompressed)]})


@pytest.mark.parametrize(
    ("plotted", "found", "why"),
    [
        (cut_by_lane, limits("captured"), "only the captured limits were replayed"),
        (overrides_by_lane, limits("captured"), "only the captured limits were replayed"),
        (rates_by_size, sizes("captured", "producer.batch.size=16KiB"), "fewer than two values of batch.size"),
        (estimate_curves, spans(0), "too few batches"),
        (memory_curves, held(("captured",), seconds=1), "at one moment only"),
        (replicas_over_time, replicas(0), "at once"),
        (shares_of_readers, fetching("follower"), "one kind of reader"),
        (sizes_by_codec, codecs(None), "one codec on the wire"),
    ],
)
def test_a_plot_with_nothing_to_compare_is_left_out(
    plotted: Callable[[Findings], Plot], found: Findings, why: str
) -> None:
    with pytest.raises(Unplotted, match=why):
        plotted(found)


@pytest.mark.parametrize(
    ("plotted", "found", "marks"),
    [
        (cut_by_lane, limits("captured", f"{LIMIT}1MiB"), 2),
        (overrides_by_lane, limits("captured", f"{LIMIT}1MiB"), 2),
        (rates_by_size, sizes("producer.batch.size=16KiB", "producer.batch.size=64KiB"), 2),
        (estimate_curves, spans(0, 9), 4),
        (memory_curves, held(("captured",), seconds=2), 2),
        (replicas_over_time, replicas(0, 4), 2),
        (shares_of_readers, fetching("consumer", "follower"), 6),
        (sizes_by_codec, codecs(180), 2),
    ],
)
def test_a_plot_with_two_things_to_compare_is_drawn(
    plotted: Callable[[Findings], Plot], found: Findings, marks: int
) -> None:
    assert len(plotted(found).rows) == marks


def test_a_batch_size_has_one_point_per_producer_whatever_else_a_lane_sets() -> None:
    small, large = "producer.batch.size=16KiB", "producer.batch.size=64KiB"
    plot = rates_by_size(sizes(small, f"{small},split.profile=kip", large))
    assert [(row["size"], row["rate"]) for row in plot.rows] == [(16 << 10, 0.5), (64 << 10, 0.1)]
    assert ", by batch.size, the highest over all other settings: the line" in plot.says


def test_only_lanes_with_a_pool_are_said_to_be_under_the_proposal() -> None:
    assert PROPOSED not in memory_curves(held(("captured", f"{LIMIT}1MiB"), seconds=2)).says
    assert PROPOSED in memory_curves(held(("captured", POOL), seconds=2)).says
