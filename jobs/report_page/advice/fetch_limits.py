"""Advice on the fetch limits of consumers (KIP-74), for each client: docs/advice.md has the rules in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.find.scopes import Scope
from jobs.replays.algorithm import OwnRows
from jobs.replays.fetch_max_bytes.ranges import fetch_ranges
from jobs.replays.ranged import (
    LEAST_MS,
    NO_DIFFERENCE,
    UNREAD,
    Ranged,
    are_apart,
    is_surely_larger,
    range_column,
    time_with_range,
    with_range,
)
from jobs.report_page.advice.client_rows import rows_by_client, rows_of_first_clients, with_fidelity
from jobs.report_page.advice.floors import IN_CLOSED_LOOP
from jobs.report_page.advice.in_force import confidence_of_client, value_in_force
from jobs.report_page.advice.recommendation import Effect, InForce, Recommendation
from jobs.report_page.lane_labels import can_be_set, settings_of_consumers
from jobs.report_page.question import Findings
from jobs.scenarios.settings import setting_of
from jobs.terminal.lane_rows import SCENARIO, in_lane_order
from jobs.terminal.wording import duration, quantity, short_size
from jobs.units import none_if_infinite
from schemas.tables import algorithms
from schemas.tables.gold import FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY
from schemas.tables.silver import FETCH_PARTITIONS
from schemas.tables.values import CAPTURED, CHANGE, CONSUMER, KEEP, OF_CLIENT
from udfs.replay.fetch_max_bytes.quotas import CONSUMER_QUOTA, PRODUCER_QUOTA
from udfs.replay.fetch_max_bytes.rows import CLOSED_LOOP

MOST_FETCHES = 2.0
"""A lane is not advised if it has more than this many times as many fetches as the captured lane."""
MOST_VALUES = 5
"""The most values of one limit that are shown for a client whose requests have several."""
NOT_SHORTER = "No replayed value shortens waits or catch-up at every pace that was drawn, and makes neither longer."
SHOWN = {
    "consumer.fetch.max.bytes": FETCH_PARTITIONS.max_bytes,
    "consumer.max.partition.fetch.bytes": FETCH_PARTITIONS.partition_max_bytes,
    "consumer.fetch.min.bytes": FETCH_PARTITIONS.min_bytes,
    "consumer.fetch.max.wait.ms": FETCH_PARTITIONS.max_wait_ms,
}
"""The column of fetch requests that shows a setting's value, by setting."""
WAIT, TOOK = str(FETCH_FAIRNESS.longest_wait_ms), str(FETCH_CONSUMERS.catch_up_ms)
HELD = str(FETCH_MEMORY.bytes_max)


def consumer_lanes(own_rows: OwnRows) -> DataFrame:
    """A row for each client.id of consumers and each lane of the closed loop, with the limits in the client's requests.

    Only for the clients that wait longest in the captured lane.
    """
    c, f, m = FETCH_CONSUMERS, FETCH_FAIRNESS, FETCH_MEMORY
    keys = [str(c.client_id), str(c.scenario)]
    closed, of_consumers = F.col(c.mode) == CLOSED_LOOP, F.col(c.reader) == CONSUMER
    fetched = own_rows(c).where(closed & of_consumers).groupBy(*keys).agg(
        F.sum(c.requests).alias(c.requests), F.sum(c.cut_tail_bytes).alias(c.cut_tail_bytes),
        F.max(c.catch_up_ms).alias(TOOK), F.max(F.col(c.catch_up_ms).isNull()).alias("never"),
        F.max(c.memory_bound_bytes).alias("bound"),
    )  # fmt: skip
    waited = own_rows(f).where(closed & of_consumers).groupBy(*keys).agg(
        F.max(f.longest_wait_ms).alias(WAIT), F.count_if(F.col(f.empty_though_available) > 0).alias("waiting")
    )  # fmt: skip
    held = own_rows(m).where(of_consumers).groupBy(*keys).agg(F.max(m.bytes_max).alias(HELD))
    rows = fetched.join(waited, keys).join(held, keys).join(fetch_ranges(own_rows, *keys), keys, "left")
    first = rows_of_first_clients(rows, F.desc(WAIT), F.desc(TOOK))
    limits = F.broadcast(requested_limits(own_rows))
    asked = first.join(limits, str(c.client_id), "left")
    return with_fidelity(asked, own_rows, algorithms.FETCH_MAX_BYTES, CONSUMER, rests_on=IN_CLOSED_LOOP)


def requested_limits(own_rows: OwnRows) -> DataFrame:
    """A row for each client.id of consumers: the first values of each limit in its requests, ascending."""
    p = FETCH_PARTITIONS
    values = [F.slice(F.array_sort(F.collect_set(column)), 1, MOST_VALUES).alias(column) for column in SHOWN.values()]
    limits = own_rows(p).where(F.col(p.reader) == CONSUMER).select(p.client_id, *SHOWN.values()).distinct()
    return limits.groupBy(p.client_id).agg(*values)


def advise_fetch_limits(findings: Findings) -> Iterable[Recommendation]:
    """A recommendation for each client and setting to change; if no lane is better, to keep the client's limits."""
    rows = in_lane_order(findings.of(consumer_lanes), findings.lanes.get(algorithms.FETCH_MAX_BYTES, ()))
    for client, lanes in rows_by_client(rows).items():
        captured, *others = [row for row in lanes if can_be_set(row) and not has_quota_in_name(row[SCENARIO])]
        if others and captured[HELD] + captured["waiting"]:
            yield from fetch_limit_advice(findings, Scope(OF_CLIENT, client), captured, others)


def has_quota_in_name(lane: str) -> bool:
    """Whether a lane sets a quota of consumers or of producers."""
    return any(quota in lane for quota in (CONSUMER_QUOTA, PRODUCER_QUOTA))


def fetch_limit_advice(
    findings: Findings, scope: Scope, captured: Row, others: Sequence[Row]
) -> Iterable[Recommendation]:
    """The advice for one client."""
    changes_by_lane = {row[SCENARIO]: changes_for_client(findings, captured, row) for row in others}
    best = best_lane([row for row in others if changes_by_lane[row[SCENARIO]]], captured, changes_by_lane)
    if best is None:
        yield from keep_limits_advice(findings, scope, captured, changes_by_lane)
        return
    for key, value in changes_by_lane[best[SCENARIO]].items():
        yield Recommendation(
            algorithm=algorithms.FETCH_MAX_BYTES,
            scope=scope,
            setting=key,
            verdict=CHANGE,
            now=limit_in_force(findings, captured, key),
            recommended=value,
            sure=confidence_of_client(captured),
            reason=change_reason(captured, best),
            gain=shorter_times(captured, best),
            cost=memory_and_catch_up(captured, best),
        )


def keep_limits_advice(
    findings: Findings, scope: Scope, captured: Row, changes_by_lane: dict[str, dict[str, str]]
) -> Iterable[Recommendation]:
    """The advice for a client to keep the value of each setting that lanes vary.

    changes_by_lane: the settings that a lane changes for this client with their values, by lane.
    """
    for key in dict.fromkeys(key for changed in changes_by_lane.values() for key in changed):
        now = limit_in_force(findings, captured, key)
        yield Recommendation(
            algorithm=algorithms.FETCH_MAX_BYTES,
            scope=scope,
            setting=key,
            verdict=KEEP,
            now=now,
            recommended=now.value,
            sure=confidence_of_client(captured),
            reason=NOT_SHORTER,
        )


def limit_in_force(findings: Findings, captured: Row, key: str) -> InForce:
    """The value in force: that in the client's requests, else the stated one, else Kafka's default."""
    values = captured[SHOWN[key]] if key in SHOWN else None
    return InForce(", ".join(map(str, values)), CAPTURED) if values else value_in_force(findings, key)


def changes_for_client(findings: Findings, captured: Row, lane: Row) -> dict[str, str]:
    """The settings that a lane changes for this client, with the lane's values."""
    stated = settings_of_consumers(lane[SCENARIO])
    values = {key: str(setting_of(key).parse(text)) for key, text in stated.items()}
    return {key: value for key, value in values.items() if value != limit_in_force(findings, captured, key).value}


def best_lane(lanes: Sequence[Row], captured: Row, changes_by_lane: dict[str, dict[str, str]]) -> Row | None:
    """The lane to advise, None if no lane is better. These steps choose it among the better ones:

    1. the lanes in which nobody waits at any pace; if there are none, all;
    2. of these, the lanes with the shortest wait, and all whose wait is not clearly longer;
    3. of these, the lanes with the shortest catch-up, and all whose catch-up is not clearly longer;
    4. of these, the one that changes the fewest settings, then the one with the lowest bound of memory.

    changes_by_lane: as in `keep_limits_advice`.
    """
    better = [lane for lane in lanes if is_lane_better(lane, captured)]
    better = [lane for lane in better if not lane_time(lane, WAIT).high] or better
    for metric in (WAIT, TOOK):
        shortest = min(better, key=lambda lane: lane_time(lane, metric).value, default=None)
        better = [lane for lane in better if shortest and not is_clearly_longer(metric, lane, shortest)]
    return min(better, key=lambda lane: (len(changes_by_lane[lane[SCENARIO]]), lane["bound"], lane[HELD]), default=None)


def is_lane_better(lane: Row, captured: Row) -> bool:
    """Whether a lane's waits or its catch-up are shorter at any pace, and nothing in the lane is worse."""
    if lane["never"] > captured["never"] or lane[FETCH_CONSUMERS.requests] > MOST_FETCHES * captured["requests"]:
        return False
    is_worse = lane["waiting"] > captured["waiting"] or any(
        is_clearly_longer(metric, lane, captured) for metric in (WAIT, TOOK)
    )
    return not is_worse and any(is_clearly_longer(metric, captured, lane) for metric in (WAIT, TOOK))


def is_clearly_longer(metric: str, lane: Row, other: Row) -> bool:
    """Whether a time of a lane is longer than that of another lane at any pace, and by enough to matter."""
    first, second = lane_time(lane, metric), lane_time(other, metric)
    return is_surely_larger(first, second) and first.value - second.value > LEAST_MS


def lane_time(lane: Row, metric: str) -> Ranged:
    """A time of a lane in ms, with its range at other paces."""
    return UNREAD if metric == TOOK and lane["never"] else with_range(lane[metric], lane[range_column(metric)])


def shorter_times(captured: Row, best: Row) -> Effect:
    """What gets shorter: waits, and the time in which a backlog is read."""
    catch_up = f"catch-up {catch_up_text(captured)} -> {catch_up_text(best)}"
    if not is_clearly_longer(WAIT, captured, best):
        return effect_on_time(catch_up, TOOK, captured, best)
    who = f"{quantity(captured['waiting'], 'partition')} wait{'s' * (captured['waiting'] == 1)} up to"
    waits = f"{who} {time_text(captured, WAIT)} -> {remaining_waits_text(best)}"
    both = f"{waits}; {catch_up}" if is_clearly_longer(TOOK, captured, best) else waits
    return effect_on_time(both, WAIT, captured, best)


def effect_on_time(metric_name: str, metric: str, captured: Row, best: Row) -> Effect:
    """The effect on a time, in ms. A time of a backlog that is not read to its end is None."""
    before, after = ([none_if_infinite(ms) for ms in lane_time(row, metric)] for row in (captured, best))
    return Effect(metric_name, metric, before[0], after[0], (before[1], before[2]), (after[1], after[2]))


def time_text(lane: Row, metric: str) -> str:
    """A time of a lane with its range."""
    return time_with_range(lane[metric], lane[range_column(metric)])


def remaining_waits_text(best: Row) -> str:
    """Who still waits."""
    if best["waiting"]:
        return f"{best['waiting']:,} up to {time_text(best, WAIT)}"
    most = lane_time(best, WAIT).high
    return f"none, at another pace up to {duration(most)}" if most else "none"


def catch_up_text(row: Row) -> str:
    """How long the slowest backlog takes."""
    return "not read to its end" if row["never"] else time_text(row, TOOK)


def memory_and_catch_up(captured: Row, best: Row) -> Effect:
    """What is held in memory; and how the catch-up changes if that is not the gain."""
    before, after = captured[HELD], best[HELD]
    text = f"memory {short_size(before)} -> {short_size(after)}" if before != after else "memory as before"
    text += "" if is_clearly_longer(TOOK, captured, best) else f"; catch-up {catch_up_change_text(captured, best)}"
    more = best[FETCH_CONSUMERS.cut_tail_bytes] - captured[FETCH_CONSUMERS.cut_tail_bytes]
    text += f"; {short_size(more)} more fetched twice" if more > 0 else ""
    return Effect(text, HELD, before, after)


def catch_up_change_text(captured: Row, best: Row) -> str:
    """How the catch-up changes if it is not the gain."""
    if catch_up_text(captured) == catch_up_text(best):
        return f"{catch_up_text(best)}, unchanged"
    alike = "" if are_apart(lane_time(captured, TOOK), lane_time(best, TOOK)) else f", {NO_DIFFERENCE}"
    return f"{catch_up_text(captured)} -> {catch_up_text(best)}{alike}"


def change_reason(captured: Row, best: Row) -> str:
    """Why the lane is better, as a sentence."""
    if shorter_times(captured, best).metric == TOOK:
        return "The limits, and not the consumer, make the catch-up long."
    return "The limits, and not the data, make partitions wait."
