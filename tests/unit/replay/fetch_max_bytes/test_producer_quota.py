"""`producer_byte_rate` makes a producer wait once it has sent a broker more than its quota (KIP-13, KIP-219)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.packed import unpack
from tests.unit.replay.fetch_max_bytes.sent_requests import (
    BEGIN,
    EVERYBODY,
    MS,
    PLENTY,
    SECOND,
    Sent,
    lanes_of,
    rows_of,
)
from udfs.columns.records import new_records
from udfs.replay.fetch_max_bytes.producer_quota.replay import replay_producers
from udfs.replay.fetch_max_bytes.producer_quota.settings import (
    ProducerLanes,
    concerns_producers_alone,
    lanes_of_fetches,
    producer_lanes,
)
from udfs.replay.fetch_max_bytes.producer_quota.state import METER_RULES
from udfs.replay.fetch_max_bytes.quota_meter import new_meters, produce_throttle_ms
from udfs.replay.fetch_max_bytes.quotas import EACH, QuotaOf
from udfs.replay.shared.lanes import LaneSettings, Value
from udfs.replay.shared.window import Window

Rows = dict[str, list[dict[str, Any]]]


def replayed(sent: Sequence[Sent], lanes: ProducerLanes, most: int = 10_000) -> Rows:
    """The gold rows. most: rows of a batch."""
    batch = rows_of(sent)
    rows: Rows = defaultdict(list)
    parts = [batch.slice(first, most) for first in range(0, batch.num_rows, most)]
    for packed in replay_producers(parts, lanes, "run"):
        for part in unpack([packed]):
            rows[packed["table"][0].as_py()] += part.to_pylist()
    return rows


def by_lane(rows: Rows) -> Mapping[str, dict[str, Any]]:
    """The row of `producer_throttles` in each lane, where there is one producer at one broker."""
    return {row["scenario"]: row for row in rows["producer_throttles"]}


def waits_of(rate: int, sizes: Sequence[int], every_ms: int) -> list[int]:
    """throttle_time_ms of requests that are answered at a steady pace."""
    rules = new_records(METER_RULES, 1, byte_rate=rate, quota_windows=11, quota_window_ms=1000)[0]
    meters = new_meters(1, 11)
    return [int(produce_throttle_ms(meters, 0, rules, size, i * every_ms)) for i, size in enumerate(sizes)]


def test_a_request_counts_whether_its_producer_waits_or_not() -> None:
    assert waits_of(100, [900, 400, 100], 0) == [0, 3000, 4000]


def test_requests_from_before_all_windows_do_not_count() -> None:
    assert waits_of(100, [1000, 1], 11_000) == [0, 0]


STEADY = [Sent(at * 100, 100_000) for at in range(200)]
"""1 MB/s for 20 s, without a quota."""
AT_THE_QUOTA = 35_000, None, 5_000
"""How long they take at 500 kB/s: 40 s, less at most 10 s, because 10 s of the quota can be used at once."""


@pytest.mark.parametrize("most", [1, 7, 10_000])
def test_a_producer_above_its_quota_sends_for_as_long_as_the_quota_says(most: int) -> None:
    lanes = by_lane(replayed(STEADY, lanes_of(None, 2_000_000, 500_000), most))
    assert lanes["captured"]["sending_ms"] == lanes["captured"]["captured_sending_ms"] == 19_902
    assert lanes["captured"]["throttled_requests"] == lanes["producer_byte_rate=2000000"]["throttled_requests"] == 0
    slow = lanes["producer_byte_rate=500000"]
    assert slow["bytes"] == 20_000_000
    assert slow["sending_ms"] == pytest.approx(*AT_THE_QUOTA)
    assert slow["throttle_time_ms"] > 15_000
    assert slow["behind_ms_max"] == pytest.approx(slow["sending_ms"] - 19_902)


def test_two_connections_of_a_client_share_a_meter_at_one_broker_and_have_two_at_two_brokers() -> None:
    one, two = ([replace(sent, connection=1 + i % 2, broker=str(1 + i % 2 * apart)) for i, sent in enumerate(STEADY)]
                for apart in (0, 1))  # fmt: skip
    (together,) = [row for row in replayed(one, lanes_of(None, 700_000))["producer_throttles"] if row["byte_rate"]]
    apart = [row for row in replayed(two, lanes_of(None, 700_000))["producer_throttles"] if row["byte_rate"]]
    assert together["throttled_requests"] > 0
    assert [row["throttled_requests"] for row in apart] == [0, 0]


def test_a_client_waits_for_what_others_send_under_the_same_quota() -> None:
    sent = [replace(one, client=f"app-{i % 2}", connection=i % 2) for i, one in enumerate(STEADY)]
    lanes = lanes_of(None, 700_000)
    users = {(f"app-{i}", "here"): "ann" for i in range(2)}
    shared = replace(lanes, quotas=({}, {QuotaOf(EACH, None): 700_000}), users=users)
    own, both = (replayed(sent, of)["producer_throttles"] for of in (lanes, shared))
    assert [row["throttled_requests"] for row in own] == [0, 0, 0, 0]
    assert sum(row["throttle_time_ms"] for row in both) > 5_000
    assert {row["user"] for row in both} == {"ann"}


def under_quota(rate: int, wanted: int = 60) -> list[Sent]:
    """Requests of 100 kB, made every 50 ms and sent when the broker takes them, with Kafka's throttle times."""
    rules = new_records(METER_RULES, 1, byte_rate=rate, quota_windows=11, quota_window_ms=1000)[0]
    meters, free, sent = new_meters(1, 11), 0, list[Sent]()
    for made in range(0, wanted * 50, 50):
        at = max(made, free)
        throttle = int(produce_throttle_ms(meters, 0, rules, 100_000, (BEGIN // MS) + at + 2))
        sent.append(Sent(at, 100_000, throttle=throttle, made=made))
        free = at + 2 + throttle
    return sent


def test_the_captured_quota_gives_the_captured_throttle_times_which_show_it() -> None:
    rows = replayed(under_quota(200_000), lanes_of(200_000))
    (row,), (fidelity,) = rows["producer_throttles"], rows["fidelity"]
    assert row["captured_throttled_requests"] == row["throttled_requests"] > 10
    assert row["captured_throttle_time_ms"] == row["throttle_time_ms"] == row["replayed_throttle_time_ms"]
    assert row["sending_ms"] == row["captured_sending_ms"]
    assert row["shown_byte_rate"] is None or row["shown_byte_rate"] == pytest.approx(200_000, rel=0.01)
    assert (fidelity["metric"], fidelity["checked"], fidelity["agreed"]) == ("produce_throttles", 60, 60)


def test_a_quota_that_nobody_stated_is_shown_by_long_throttle_times() -> None:
    rows = replayed(under_quota(50_000), lanes_of(None, 100_000))
    assert {row["shown_byte_rate"] for row in rows["producer_throttles"]} == {50_000}
    (fidelity,) = rows["fidelity"]
    assert dict(fidelity["reasons"]) == {"quota_not_stated": fidelity["unknown"]}


def test_without_the_captured_quota_records_are_sent_when_they_were_made() -> None:
    lanes = by_lane(replayed(under_quota(50_000), lanes_of(50_000, None)))
    assert lanes["captured"]["sending_ms"] > 60_000
    assert lanes["producer_byte_rate=None"]["sending_ms"] == 59 * 50 + 2


def test_throttle_times_show_that_a_stated_quota_is_wrong() -> None:
    for stated, reason in ((100_000, "throttled_longer"), (25_000, "throttled_less")):
        (fidelity,) = replayed(under_quota(50_000), lanes_of(stated))["fidelity"]
        assert set(dict(fidelity["reasons"])) == {reason}
        assert fidelity["agreed"] < fidelity["checked"]


def test_requests_from_before_the_capture_make_the_first_windows_unknown() -> None:
    whole = under_quota(50_000)
    late = [replace(one, began_before=True) for one in whole[10:]]
    (fidelity,) = replayed(late, lanes_of(50_000))["fidelity"]
    assert set(dict(fidelity["reasons"])) == {"sent_before"}
    assert fidelity["agreed"] == fidelity["checked"] > 0


def test_a_response_that_another_quota_throttles_is_unknown() -> None:
    (fidelity,) = replayed([Sent(0, 100, throttle=300)], lanes_of(50_000))["fidelity"]
    assert dict(fidelity["reasons"]) == {"another_quota": 1}


def test_an_application_waits_when_buffer_memory_is_full() -> None:
    free, full = (
        by_lane(replayed(STEADY, lanes_of(None, 500_000, buffer_bytes=size)))["producer_byte_rate=500000"]
        for size in (PLENTY, 500_000)
    )
    assert free["blocked_ms"] == 0
    assert full["blocked_ms"] > 5_000
    assert full["sending_ms"] == pytest.approx(free["sending_ms"], abs=1_500)


def test_requests_that_wait_longer_than_delivery_timeout_ms_are_counted() -> None:
    lanes = by_lane(replayed(STEADY, lanes_of(None, 100_000)))
    assert lanes["producer_byte_rate=100000"]["expired_requests"] > 0
    assert lanes["captured"]["expired_requests"] == 0


def test_a_broker_before_2_0_counts_a_request_before_it_holds_the_response_back() -> None:
    new = under_quota(50_000, 20)
    old = [replace(one, version=5, took=one.took + (one.throttle or 0)) for one in new]
    (fidelity,) = replayed(old, lanes_of(50_000))["fidelity"]
    assert (fidelity["checked"], fidelity["agreed"]) == (20, 20)


def test_requests_without_a_response_count_when_they_come() -> None:
    sent = [replace(one, is_answered=False) for one in STEADY]
    rows = replayed(sent, lanes_of(None, 500_000))
    assert by_lane(rows)["producer_byte_rate=500000"]["sending_ms"] == pytest.approx(*AT_THE_QUOTA)
    assert dict(rows["fidelity"][0]["reasons"]) == {"no_response": 200}


def test_only_requests_in_the_window_count() -> None:
    window = Window(BEGIN + 10 * SECOND, BEGIN + 12 * SECOND)
    lanes = by_lane(replayed(STEADY, lanes_of(None, 500_000, window=window)))
    slow = lanes["producer_byte_rate=500000"]
    assert slow["requests"] == 20
    assert slow["throttled_requests"] > 0  # because of requests before the window
    assert slow["behind_ms_max"] > 4_000


def settings_of(*changed: Mapping[str, Value], **in_force: Value) -> LaneSettings:
    defaults: dict[str, Value] = {"broker.quota.window.num": 11, "broker.quota.window.size.seconds": 1}
    lanes = ({}, *changed)
    return LaneSettings(tuple(map(str, range(len(lanes)))), lanes, defaults | in_force)


def test_lanes_that_change_only_producers_are_not_replayed_for_consumers() -> None:
    of_producers = {"user.producer_byte_rate": 5, "broker.quota.window.num": 3}
    both = {"producer_byte_rate": 5, "consumer.fetch.max.bytes": 9}
    of_consumers = {"consumer_byte_rate": 5, "broker.quota.window.num": 3}
    lanes = settings_of(of_producers, both, of_consumers)
    assert [concerns_producers_alone(lane) for lane in lanes.changed] == [False, True, False, False]
    assert lanes_of_fetches(lanes).names == ("0", "2", "3")
    own = producer_lanes(lanes)
    assert own is not None
    assert own.names == ("0", "1", "2")
    assert own.quotas == ({}, {QuotaOf(EACH, None): 5}, {EVERYBODY: 5})
    assert own.windows.tolist() == [11, 3, 11]


def test_without_a_quota_of_producers_nothing_is_replayed() -> None:
    assert producer_lanes(settings_of({"consumer_byte_rate": 5})) is None
    assert producer_lanes(settings_of({"consumer_byte_rate": 5}, producer_byte_rate="none")) is None
    stated = producer_lanes(settings_of(producer_byte_rate=7))
    assert stated is not None
    assert stated.names == ("0",)
