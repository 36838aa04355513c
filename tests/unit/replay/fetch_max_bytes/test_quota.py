"""`consumer_byte_rate` makes a consumer wait once a broker has sent it more than its quota (KIP-13, KIP-219)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.replay.fetch_max_bytes.closed_units import (
    MS,
    PACE,
    Client,
    Part,
    replayed,
    responses_of,
    rules_of,
    unit_of,
)
from udfs.columns.records import new_records
from udfs.columns.time_units import NEVER
from udfs.replay.fetch_max_bytes import quota_meter as quota
from udfs.replay.fetch_max_bytes.closed_loop.outcomes import new_outcome
from udfs.replay.fetch_max_bytes.closed_loop.replay import replay_by_clients_clock
from udfs.replay.fetch_max_bytes.closed_loop.settings import RULES
from udfs.replay.fetch_max_bytes.closed_loop.state import READING_CHANGE, THROTTLED, ReaderLanes
from udfs.replay.fetch_max_bytes.closed_loop.together import ReaderInLanes
from udfs.replay.fetch_max_bytes.settings import Reader, fetch_lanes
from udfs.replay.shared.lanes import LaneSettings, Value

KB, SECOND = 1000, 1000 * MS
RATE = 100 * KB
BACKLOG = Part([10 * KB] * 300)
"""3 MB, in batches of which a fetch brings one."""
ONE_BATCH = Client(max_bytes=10 * KB)


def waits_of(rate: int, sizes: list[int], every_ms: int) -> list[int]:
    """throttle_time_ms of responses that come at a steady pace."""
    rules = new_records(RULES, 1, byte_rate=rate, quota_windows=11, quota_window_ms=1000)[0]
    meters = quota.new_meters(1, 11)
    return [int(quota.throttle_ms(meters, 0, rules, size, i * every_ms)) for i, size in enumerate(sizes)]


def test_ten_seconds_of_a_quota_come_at_once_and_further_bytes_wait() -> None:
    """10 windows of 1 s count as past. 1,001 bytes at 100 bytes/s need 10 ms more than these."""
    assert waits_of(100, [1000, 1], 0) == [0, 10]
    assert waits_of(100, [1001], 0) == [10]


def test_a_response_that_is_held_back_does_not_count() -> None:
    assert waits_of(100, [900, 400, 100, 400], 0) == [0, 3000, 0, 4000]


def test_bytes_from_before_all_windows_do_not_count() -> None:
    assert waits_of(100, [1000, 1000], 10_999) == [0, pytest.approx(9000, abs=2000)]
    assert waits_of(100, [1000, 1000], 11_000) == [0, 0]


def test_a_backlog_comes_in_bursts_of_ten_seconds_of_the_quota() -> None:
    """The bytes of a second count for as long as all windows last, so about 1 MB comes every 11 s."""
    free, limited = replayed([BACKLOG], [ONE_BATCH, replace(ONE_BATCH, byte_rate=RATE)]).catch_up_us[0].tolist()
    assert free < SECOND
    assert 22 * SECOND < limited < 25 * SECOND


def test_throttled_time_is_summed_up_and_is_what_the_reader_waits() -> None:
    out = replayed([BACKLOG], [ONE_BATCH, replace(ONE_BATCH, byte_rate=RATE)])
    free, limited = out.lanes["throttle_ms"].tolist()
    assert free == 0
    assert 0.9 < limited * MS / out.catch_up_us[0, 1] <= 1.0
    assert out.sums.partitions["returned"][0].tolist() == [3000 * KB] * 2
    assert out.sums.partitions["longest_us"][0, 1] > out.sums.partitions["longest_us"][0, 0]


def test_a_response_that_is_held_back_comes_empty_and_the_next_is_asked_for_after_the_wait() -> None:
    out = replayed([Part([1000 * KB, 10 * KB])], [Client(max_bytes=10 * KB, byte_rate=RATE)])
    sizes = responses_of(out)["size"].tolist()
    assert sizes == [0, 1000 * KB, 0, 10 * KB]
    waited = (responses_of(out)["requested_at"][1:] - responses_of(out)["arrived_at"][:-1]).tolist()
    # Ten seconds of the quota are 1 MB, which the response exceeds by its own bytes.
    over = quota.RESPONSE_BYTES + quota.TOPIC_BYTES + quota.PARTITION_BYTES
    assert waited[0] == round(over / RATE * 1000) * MS
    assert sum(waited[::2]) == out.lanes["throttle_ms"][0] * MS


def test_each_broker_has_a_quota_of_its_own() -> None:
    half = [replace(BACKLOG, sizes=[10 * KB] * 150, node=node) for node in (0, 1)]
    out = replayed(half, [replace(ONE_BATCH, byte_rate=RATE)])
    assert 11 * SECOND < out.catch_up_us.max() < 13 * SECOND


def test_connections_to_one_broker_share_its_quota() -> None:
    half = [replace(BACKLOG, sizes=[10 * KB] * 150, node=node) for node in (0, 1)]
    unit = unit_of(half, [1], 1, PACE)
    rules = rules_of([replace(ONE_BATCH, byte_rate=RATE)], 2, shares=True)
    rules["meter"] = 0
    out = new_outcome(unit, 2, 1)
    replay_by_clients_clock([ReaderInLanes(unit, rules, out)])
    assert 22 * SECOND < out.catch_up_us.max() < 25 * SECOND


@given(times=st.lists(st.integers(0, 400), min_size=1, max_size=12).map(sorted), rate=st.integers(20, 2000))
def test_a_quota_goes_by_the_clients_clock_at_another_traffic_speed(times: list[int], rate: int) -> None:
    client = Client(max_bytes=300, byte_rate=rate, quota_windows=3, quota_window_ms=20)

    def of(scale: int, speed: float) -> list[list[int]]:
        part = Part([100] * len(times), visible=[1 + scale * ms * MS for ms in times])
        out = replayed([part], [replace(client, speed=speed)], 1 + scale * 450 * MS)
        return [out.lanes[name].tolist() for name in ("requests", "throttle_ms", "end_lag")]

    assert of(2, 2.0) == of(1, 1.0)


def test_a_quota_that_no_batch_fits_into_ends_the_replay_unfinished() -> None:
    out = replayed([Part([1000 * KB] * 3)], [Client(max_bytes=10, byte_rate=1)])
    assert out.lanes["is_finished"].tolist() == [0]


def test_waits_for_a_captured_quota_stay_only_in_lanes_without_a_known_quota() -> None:
    unit = unit_of([Part([100] * 3)], [1], 1, PACE)
    stop = new_records(READING_CHANGE, 1, time=1, partition=THROTTLED, to=5 * SECOND, until=1, since=NEVER)
    changes = np.concatenate([unit.changes, stop])
    nodes = unit.nodes.copy()
    nodes["end_change"] = len(changes)
    unit = unit._replace(changes=changes.view(READING_CHANGE), nodes=nodes)
    out = new_outcome(unit, 1, 2, response_room=10)
    rules = rules_of([Client(), Client(byte_rate=RATE)], 1, shares=True)
    replay_by_clients_clock([ReaderInLanes(unit, rules, out)])
    assert out.responses["requested_at"][:, 0].tolist() == [5 * SECOND, 1]


def test_requests_that_a_quota_left_empty_are_not_compared_with_captured_ones() -> None:
    client = replace(ONE_BATCH, byte_rate=RATE)
    part = replace(BACKLOG, sizes=[10 * KB] * 110)
    out = replayed([part], [client], 60 * SECOND)
    throttled = int((responses_of(out)["size"] == 0).sum())
    assert throttled >= 2
    assert out.captured.nodes["requests"][0] <= out.lanes["requests"][0] - 2


APP, FETCHER = Reader("app", "10.0.0.1", "consumer"), Reader("broker-1-fetcher-0", "10.0.0.2", "follower")


def of_lanes(*settings: Mapping[str, Value]) -> LaneSettings:
    defaults = {"broker.fetch.max.bytes": 50_000, "broker.quota.window.num": 11, "broker.quota.window.size.seconds": 1}
    others = {"consumer.max.poll.records": 500}
    return LaneSettings(tuple(map(str, settings)), settings, {"consumer_byte_rate": "none", **defaults, **others})


def test_a_quota_caps_responses_of_consumers_at_all_its_windows_but_one() -> None:
    other: dict[str, Value] = {"broker.quota.window.num": 4, "broker.quota.window.size.seconds": 2}
    quotas = fetch_lanes(of_lanes({}, {"consumer_byte_rate": 100}, {"consumer_byte_rate": 100, **other}, other))
    assert quotas.limits(APP)["broker_max_bytes"].tolist() == [50_000, 1000, 600, 50_000]
    assert quotas.limits(APP)["quota_window_ms"].tolist() == [0, 1000, 2000, 0]
    assert quotas.limits(FETCHER)["broker_max_bytes"].tolist() == [50_000] * 4
    assert not quotas.limits(FETCHER)["byte_rate"].any()


@pytest.mark.parametrize(("stated", "known"), [("none", [0, 0, 1, 1, 1]), (1000, [1, 1, 1, 1, 1])])
def test_a_lanes_quota_is_known_if_one_was_in_force_or_the_lane_sets_one_or_none(
    stated: Value, known: list[int]
) -> None:
    quotas = ({"consumer_byte_rate": 100}, {"consumer_byte_rate": "none"}, {"user.ann.consumer_byte_rate": 100})
    lanes = of_lanes({}, {"broker.fetch.max.bytes": 1024}, *quotas)
    of = fetch_lanes(replace(lanes, in_force=dict(lanes.in_force) | {"consumer_byte_rate": stated}))
    assert of.limits(APP)["quota_is_known"].tolist() == known
    assert of.limits(FETCHER)["quota_is_known"].tolist() == [0] * 5


def test_the_largest_quota_caps_nothing() -> None:
    most = fetch_lanes(of_lanes({"consumer_byte_rate": 2**31 - 1, "broker.quota.window.num": 3600}))
    assert most.limits(APP)["broker_max_bytes"].tolist() == [50_000]


def test_a_lane_with_a_quota_of_users_limits_each_reader_by_its_own() -> None:
    users = {("app", "10.0.0.1"): "ann", ("app", "10.0.0.2"): "bob"}
    lanes = fetch_lanes(of_lanes({}, {"consumer_byte_rate": 100, "user.ann.consumer_byte_rate": 700}))
    lanes = replace(lanes, users=users)
    rates = [lanes.limits(Reader(*key, "consumer"))["byte_rate"].tolist() for key in (*users, ("app", "10.0.0.3"))]
    assert rates == [[0, 700], [0, 100], [0, 100]]


def shared(readers: int, meters: list[int], rate: int = RATE) -> list[ReaderLanes]:
    """Readers of 1.5 MB each, replayed together without a quota and with one. meters: the meter of each reader."""
    unit = unit_of([replace(BACKLOG, sizes=[10 * KB] * 150)], [1], 1, PACE)
    in_lanes = list[ReaderInLanes]()
    for meter in meters:
        rules = rules_of([ONE_BATCH, replace(ONE_BATCH, byte_rate=rate)], 1, shares=True)
        rules["meter"] = meter
        in_lanes.append(ReaderInLanes(unit, rules, new_outcome(unit, 1, 2, response_room=400)))
    assert len(in_lanes) == readers
    replay_by_clients_clock(in_lanes)
    return [of.outcome for of in in_lanes]


def test_readers_that_share_a_quota_take_as_long_as_one_that_reads_all_of_it() -> None:
    """Two readers of 1.5 MB at 100 kB/s: about 1 MB comes every 11 s, for whichever asks first."""
    (alone,), together = shared(1, [0]), shared(2, [0, 0])
    own = alone.catch_up_us[0, 1]
    slowest = max(of.catch_up_us[0, 1] for of in together)
    assert 11 * SECOND < own < 13 * SECOND
    assert 22 * SECOND < slowest < 25 * SECOND
    assert [of.sums.partitions["returned"][0].tolist() for of in together] == [[1500 * KB] * 2] * 2
    assert all(of.lanes["throttle_ms"][1] > alone.lanes["throttle_ms"][1] for of in together)


def test_readers_with_quotas_of_their_own_and_lanes_without_one_are_as_if_replayed_alone() -> None:
    (alone,), apart, together = shared(1, [0]), shared(2, [0, 1]), shared(2, [0, 0])
    for of in apart:
        for name in ("lanes", "catch_up_us", "responses"):
            assert np.array_equal(getattr(of, name), getattr(alone, name))
        assert np.array_equal(of.timeline.buckets, alone.timeline.buckets)
        assert np.array_equal(of.timeline.held, alone.timeline.held)
    for of in together:
        assert of.lanes[0] == alone.lanes[0]
        assert np.array_equal(of.responses[0], alone.responses[0])
        assert np.array_equal(of.sums.partitions[:, 0], alone.sums.partitions[:, 0])


def test_readers_that_share_a_quota_get_no_more_in_its_windows_than_it_allows() -> None:
    """In any 10 s, both together are sent no more than the quota of 11 s."""
    rows = np.concatenate([of.responses[1][: of.lanes["responses"][1]] for of in shared(2, [0, 0])])
    came = rows[np.argsort(rows["arrived_at"], kind="stable")]
    for time in came["arrived_at"].tolist():
        within = (came["arrived_at"] > time - 10 * SECOND) & (came["arrived_at"] <= time)
        assert came["size"][within].sum() <= 11 * RATE
