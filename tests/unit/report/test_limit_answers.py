"""The answers on how many partitions a cluster may have, and whose changes a limit refuses."""

from __future__ import annotations

import pytest
from pyspark.sql import Row

from jobs.replays.partition_limits.answers import HEAD, SPAN_FOR_A_DATE_MS, answer_row, smallest_safe_limits
from jobs.replays.partition_limits.answers import lanes as limit_lanes
from jobs.report_page.advice.recommendations import make_recommendations
from jobs.report_page.partition_limits import brokers_over_time, captured_cluster, nearest_limit_text, refused_changes
from jobs.report_page.partition_limits import nearest_headroom as limit_headroom
from jobs.report_page.question import Findings, Query
from jobs.report_page.questions import answer_question
from jobs.report_page.trust import fidelity_by_reason
from schemas.tables.gold_limits import (
    PARTITION_LIMIT_CURVE,
    PARTITION_LIMIT_HEADROOM,
    PARTITION_LIMIT_REFUSALS,
    PARTITION_LIMITS,
    PARTITIONS_PER_BROKER,
)
from tests.unit.report.findings import AT, BY_NUMBER, agreement, findings, row_of, sentence


def near_limit(growth: float, headroom: int = 94) -> Findings:
    h = PARTITION_LIMIT_HEADROOM
    nearest = Row(headroom=headroom, limit_value=100, partitions=6, growth_per_day=growth, breach_at=AT, broker=3)
    row = Row(**{h.scenario: "max.broker.partitions=100", h.refused_by: "max.broker.partitions", "nearest": nearest})
    return findings({limit_headroom: [row]})


def test_a_lane_says_what_became_of_every_change() -> None:
    t, h = PARTITION_LIMITS, PARTITION_LIMIT_HEADROOM
    became = (t.done, t.refused_by_broker_limit, t.refused_by_kafka, t.refused_before, t.otherwise_failed)
    counts = {str(name): 1 for name in became} | {str(t.tried): len(became), str(t.refused_by_cluster_limit): 0}
    lane = Row(**counts, **{t.scenario: "captured", h.headroom: None, h.breach_at: None})
    cells = dict(zip(HEAD, answer_row(lane), strict=True))
    assert (cells["changes"], cells["failed otherwise"]) == ("5", "1")


def test_growth_over_seconds_gives_no_date() -> None:
    told = nearest_limit_text(near_limit(1e9), span=2000.0)
    assert ". Under the proposal's max.broker.partitions=100 there would be room for 94 more. Topics changed" in told
    assert "too short for a date" in told
    assert "2026" not in told


def test_the_room_that_a_limit_leaves_is_shown_with_the_changes_that_it_has_refused() -> None:
    found, t = near_limit(0.0), PARTITION_LIMITS
    lane = row_of(t, scenario="max.broker.partitions=100", refused_by_broker_limit=3)
    found = findings({**found.rows, limit_lanes: [lane]})
    assert (
        "max.broker.partitions=100, with 3 changes refused by then, there would be room for 94"
        in nearest_limit_text(found, span=2000.0)
    )
    above = near_limit(0.0, headroom=-5)
    assert nearest_limit_text(above, span=2000.0).startswith(
        ". They would be 5 above the proposal's max.broker.partitions=100"
    )


def test_growth_over_days_gives_a_date() -> None:
    told = nearest_limit_text(near_limit(12.0), span=3.0 * SPAN_FOR_A_DATE_MS)
    assert told.endswith("reached on 2026-01-31 at 12 replicas a day")


@pytest.mark.parametrize(("reason", "is_said"), [("not_in_metadata", True), ("impossible_draw", False), (None, False)])
def test_if_replicas_were_drawn_the_answer_on_the_fullest_broker_says_so(reason: str | None, is_said: bool) -> None:
    on_brokers = [Row(**row_of(PARTITIONS_PER_BROKER, broker=n).asDict(), last=last) for n, last in ((1, 4), (2, 3))]
    rows: dict[Query, list[Row]] = {
        brokers_over_time: on_brokers,
        captured_cluster: [Row(brokers=2, replicas=7, alike=1, **{"from": AT, "to": AT})],
        fidelity_by_reason: [agreement("partition_limits", "", "placements", 9, 9, 1, reason)],
    }  # fmt: skip
    found = findings(rows, {"partition_limits": ["captured"]})
    told = sentence(found, 3)
    assert "broker 1 has most replicas, 4 of 7 on 2 brokers" in told
    assert ("Where 1 change puts its replicas is drawn" in told) is is_said


def test_what_a_limit_per_broker_refuses_is_called_unknown_if_no_broker_is_known() -> None:
    t, c = PARTITION_LIMITS, PARTITION_LIMIT_CURVE
    lanes, names = [row_of(t, scenario="captured", tried=3)], {"partition_limits": ("captured",)}
    limits = [Row(**{c.refused_by: f"max.{of}partitions", c.limit_from: 26}) for of in ("broker.", "")]
    told, unknown = (
        sentence(findings({limit_lanes: lanes, smallest_safe_limits: of}, names), 15) for of in (limits, limits[1:])
    )
    assert "From max.broker.partitions=26 or max.partitions=26 on, nothing is refused" in told
    assert "From max.partitions=26 on, nothing is refused" in unknown
    assert ["What max.broker.partitions refuses is not known" in text for text in (told, unknown)] == [False, True]
    named = {brokers_over_time: [Row(broker=1, at=AT, partitions=1, last=1)], smallest_safe_limits: limits[1:]}
    assert not answer_question(findings({limit_lanes: lanes, **named}, names), BY_NUMBER[3]).is_answered


def test_a_limit_that_no_captured_change_can_exceed_is_neither_advised_nor_called_enough() -> None:
    """Reassignments to as many replicas as before add none, so max.partitions refuses none, however low it is."""
    t, c = PARTITION_LIMITS, PARTITION_LIMIT_CURVE
    lanes, names = [row_of(t, scenario="captured", tried=400)], {"partition_limits": ("captured",)}
    limits = [Row(**{c.refused_by: f"max.{of}partitions", c.limit_from: at}) for of, at in (("broker.", 278), ("", 1))]
    found = findings({limit_lanes: lanes, smallest_safe_limits: limits}, names)
    assert [(one.setting, one.enough) for one in make_recommendations(found)] == [("max.broker.partitions", "278")]
    assert "From max.broker.partitions=278 on, nothing is refused" in sentence(found, 15)


def refusal(lane: str, client: str, by: str, count: int) -> Row:
    """A row of the query `refused_changes`."""
    r = PARTITION_LIMIT_REFUSALS
    return Row(**{r.scenario: lane, r.client_id: client, r.refused_by: by, "refused": count, "topic": "t"})


def test_of_lanes_that_refuse_as_much_the_first_is_shown_with_what_both_limits_refuse_of_a_client() -> None:
    t, names = PARTITION_LIMITS, ("captured", "max.partitions=9", "max.partitions=12")
    counts = {t.refused_by_broker_limit: 2, t.refused_by_cluster_limit: 4}
    lanes = [row_of(t, scenario=name, tried=9, **({} if name == "captured" else counts)) for name in names]
    by_client = (("ops", "max.partitions", 3), ("team", "max.broker.partitions", 2), ("team", "max.partitions", 2))
    rows = [refusal(lane, *client) for lane in names[1:] for client in by_client]
    told = sentence(findings({limit_lanes: lanes, refused_changes: rows}, {"partition_limits": names}), 15)
    assert told == (
        "With max.partitions=9, 6 of 9 captured requests to change topics are refused, most of them from team (4)."
    )


def test_changes_that_kafka_itself_refuses_do_not_count_as_refused_by_a_limit() -> None:
    t, names = PARTITION_LIMITS, ("captured", "max.partitions=9", "kafka=kip,max.partitions=9")

    def told(refused: int) -> str:
        lanes = [row_of(t, scenario=name, tried=3) for name in names]
        lanes[1] = row_of(t, scenario=names[1], tried=3, refused_by_cluster_limit=refused)
        of_limit = [refusal(names[1], "team", "max.partitions", refused)] if refused else []
        rows = [refusal(names[1], "ops", "partitions per request", 2), *of_limit]
        return sentence(findings({limit_lanes: lanes, refused_changes: rows}, {"partition_limits": names}), 15)

    assert told(0) == "Nobody's, of 3 captured requests to change topics in the replayed lanes."
    assert told(1).endswith("1 of 3 captured requests to change topics is refused, from team.")


def test_brokers_that_have_as_many_replicas_as_the_fullest_are_counted() -> None:
    on_brokers = [Row(**row_of(PARTITIONS_PER_BROKER, broker=n).asDict(), last=4) for n in (1, 2, 3)]
    whole = Row(brokers=3, replicas=12, alike=3, **{"from": AT, "to": AT})
    found = findings({brokers_over_time: on_brokers, captured_cluster: [whole]}, {"partition_limits": ["captured"]})
    assert "broker 1 has most replicas, 4 of 12 on 3 brokers; 2 others have as many" in sentence(found, 3)


def test_requests_that_only_a_refusal_causes_are_counted_apart_from_captured_changes() -> None:
    """A client asks by Metadata, again and again, for a topic that is not there."""
    t, names = PARTITION_LIMITS, ("captured", "max.partitions=9,controller_mutation_rate=none")
    lanes = [
        row_of(t, scenario=names[0], tried=39),
        row_of(t, scenario=names[1], tried=52, refused_by_cluster_limit=44),
    ]
    rows: dict[Query, list[Row]] = {
        limit_lanes: lanes,
        refused_changes: [refusal(names[1], "ops", "max.partitions", 44)],
    }
    told = sentence(findings(rows, {"partition_limits": names}), 15)
    assert told == (
        "With max.partitions=9, 44 of 52 captured requests to change topics are refused, all from ops. "
        "13 of the 52 ask again for a topic that was refused."
    )


def test_a_limit_is_named_with_other_settings_of_its_lane_unless_they_change_nothing() -> None:
    h = PARTITION_LIMIT_HEADROOM
    rate = "controller_mutation_rate=0.5"
    nearest = Row(headroom=0, limit_value=9, partitions=9, growth_per_day=0.0, breach_at=None, broker=None)
    first, second = (
        Row(**{h.scenario: f"max.partitions=9,{more}", h.refused_by: "max.partitions", "nearest": nearest})
        for more in (rate, "controller_mutation_rate=none")
    )
    assert nearest_limit_text(findings({limit_headroom: [first]}), 9.0).startswith(
        f". Under the proposal's max.partitions=9 and {rate} "
    )
    assert nearest_limit_text(findings({limit_headroom: [first, second]}), 9.0).startswith(
        ". Under the proposal's max.partitions=9 there"
    )
