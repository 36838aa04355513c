"""A recommendation per setting, with its cost on the other side, as far as the lanes replayed support one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Row

from jobs.replays.batch_split.answers import is_safe, largest_safe
from jobs.replays.batch_split.answers import lanes as split_lanes
from jobs.replays.consumer_memory.answers import lanes as memory_lanes
from jobs.replays.partition_limits.answers import lanes as limit_lanes
from jobs.replays.partition_limits.answers import safe, safe_limits
from jobs.replays.session_cache.answers import are_possible, slots
from jobs.replays.session_cache.answers import lanes as session_lanes
from jobs.report_page.batch_split.splits import SAFE, batch_size, beside_size, unlike_captured
from jobs.report_page.consumer_memory.memory_pool import BOUNDED, unless_refused
from jobs.report_page.consumer_memory.needed_memory import but_for_larger
from jobs.report_page.fetch_max_bytes.fairness import STARVING, own_in_closed_loop
from jobs.report_page.lane_labels import Subject, can_be_set, own_lanes
from jobs.report_page.partition_limits import REFUSED_TEAMS
from jobs.report_page.question import Findings
from jobs.report_page.session_cache.sessions import ENOUGH, captured_refused_share
from jobs.scenarios.settings import settings
from jobs.terminal.screen import size
from jobs.terminal.wording import changed, counted, duration, lane_said, percent
from schemas.tables import algorithms
from schemas.tables.gold_memory import CONSUMER_MEMORY
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_SLOTS


@dataclass(frozen=True)
class Advice:
    """What the lanes replayed support for a setting.

    now: what the captured setting comes to. cost: what the advice costs on the other side.
    question: the one whose answer, trust and tables are behind it.
    """

    setting: str
    now: str
    advice: str
    cost: str
    question: int
    is_proposal: bool = False


def advice(found: Findings) -> list[Advice]:
    """The settings that this run says something about, in the order of the replays."""
    parts: dict[str, Callable[[Findings], Iterable[Advice]]] = {
        algorithms.FETCH_MAX_BYTES: fetch_limits,
        algorithms.CONSUMER_MEMORY: pools,
        algorithms.SESSION_CACHE: cache_slots,
        algorithms.BATCH_SPLIT: batches,
        algorithms.PARTITION_LIMITS: partition_limits,
    }
    return [told for name, part in parts.items() if name in found.lanes for told in part(found)]


def fetch_limits(found: Findings) -> Iterable[Advice]:
    """The lane in which the longest wait is shortest; of those the fastest, and beside it the one that holds least.

    Only of lanes in which nobody waits, or no more partitions and no backlog longer than with the captured limits.
    """
    rows = [row for row in own_in_closed_loop(found) if can_be_set(row)]
    if len(rows) < 2 or not rows[0]["held"] + rows[0]["waiting"]:
        return
    captured = rows[0]
    done = [row for row in rows if not row["never"] and is_no_worse(row, captured)] or [captured]
    least = min(row["longest"][0] for row in done)
    fair = [row for row in done if row["longest"][0] == least]
    fast = min(fair, key=lambda row: (row["took"] or 0.0, row["held"], settings_of(row), row["bound"]))
    small = min(fair, key=lambda row: (row["held"], row["cut"], settings_of(row), row["bound"]))
    waits = "nobody waits" if not fast["waiting"] else f"no wait is longer than {duration(least)}"
    told = f"Keep it: {waits}" if fast is captured else f"{said(fast)}: {waits}, the slowest backlog {took(fast)}"
    cost = f"a consumer holds up to {size(fast['held'])} of records, {size(fast['own_bound'])} at KIP-74's bound"
    cost += but_for_larger(fast["held"], fast["own_bound"])
    if fast["requests"] != captured["requests"]:
        cost += f"; {fast['requests']:,} fetches instead of {captured['requests']:,}"
    if small["held"] < fast["held"]:
        instead = f"{size(small['held'])} with {said(small)}, but the slowest backlog {took(small)}"
        cost += f"; as fair and smaller: {instead}, and {size(small['cut'])} of cut tails"
    yield Advice(
        ", ".join(changed(rows[1]["scenario"])),
        f"longest wait {duration(captured['longest'][0])}, the slowest backlog {took(captured)}, "
        f"{size(captured['held'])} held",
        told, cost, STARVING.number,
    )  # fmt: skip


def is_no_worse(row: Row, captured: Row) -> bool:
    """Whether a shorter longest wait is not bought with more partitions that wait, or a longer time for all."""
    is_as_fast = captured["never"] or (row["took"] or 0.0) <= (captured["took"] or 0.0)
    return not row["waiting"] or bool(row["waiting"] <= captured["waiting"] and is_as_fast)


def settings_of(row: Row) -> int:
    """How many settings a lane changes."""
    return len(changed(row["scenario"]))


def said(row: Row) -> str:
    """A lane by what it sets."""
    return lane_said(row["scenario"]).removeprefix("with ")


def took(row: Row) -> str:
    """How long the slowest backlog takes."""
    return "is not read to its end" if row["never"] else f"takes {duration(row['took'])}"


POOLS: Mapping[Subject, tuple[str, str, bool]] = {
    "consumers": ("consumers' buffer.memory (KIP-81)", "a consumer process", True),
    "brokers": ("queued.max.request.bytes", "a broker", False),
    "producers": ("producers' buffer.memory", "a producer process", False),
}
"""By side of the replay of memory: the setting, who holds the memory, and whether it is a proposal."""
STUCK: Mapping[Subject, tuple[str, str]] = {
    "consumers": ("connection gets stuck", "connections get stuck"),
    "brokers": ("request is larger than the pool", "requests are larger than the pool"),
    "producers": ("batch gets no memory", "batches get no memory"),
}
"""By side, what `stuck` counts, of one and of several."""
NO_HEADROOM = "; no headroom: what was not captured may need more"
LESS_IF_BUSY = {"producers": ", an overestimate if the producer is busy: with less memory its requests take less time"}
"""Why a wait is not as long as a side's replay has it."""

LARGEST_REQUEST = "broker.socket.request.max.bytes"


def pools(found: Findings) -> Iterable[Advice]:
    """The smallest pool in which nobody waits, of each side that the capture shows."""
    for side, (setting, holder, is_proposal) in POOLS.items():
        of_side = [row for row in found.by_lane(memory_lanes, algorithms.CONSUMER_MEMORY) if row["of"] == side]
        rows = own_lanes(found, of_side, side)
        if not rows or not rows[0]["most"]:
            continue
        captured = rows[0]
        told = smallest_pool(found, side, captured)
        cost = (
            f"{holder} holds up to {size(captured['most'])}, each {size(captured['p99'])} or less for 99 % of the time"
        )
        cost += NO_HEADROOM if told.startswith(size(captured["smallest"])) else ""
        cost += dearest(side, captured, rows[1:])
        yield Advice(
            setting, f"{size(captured['most'])} in use at most, {counted(captured['waits'], 'wait')}",
            told, cost, BOUNDED.number, is_proposal,
        )  # fmt: skip


def dearest(side: Subject, captured: Row, others: Sequence[Row]) -> str:
    """What the lane whose pool is worst does to its side: nothing goes on, or somebody waits; empty where neither."""
    stuck, slow = ([row for row in others if row[of] > captured[of]] for of in ("stuck", "waits"))
    if stuck:
        worst = max(stuck, key=lambda row: row["stuck"])
        return f"; {said_of(worst)} {counted(worst['stuck'], *STUCK[side])}"
    if slow:
        worst = max(slow, key=lambda row: row["longest"])
        return f"; {said_of(worst)} somebody waits up to {duration(worst['longest'])}{LESS_IF_BUSY.get(side, '')}"
    return ""


def smallest_pool(found: Findings, side: Subject, captured: Row) -> str:
    """The smallest pool in which nobody waits, and what keeps it from being set."""
    smallest = captured["smallest"]
    if side == "producers" and not captured["waits"] + captured["stuck"]:
        return f"Keep it: nobody waits; {size(smallest)} would do"
    told = f"{size(smallest)}: the smallest in which nobody waits as captured"
    if side == "consumers":
        return f"{told}{unless_refused(found)}"
    least = int(found.captured.get(LARGEST_REQUEST, settings()[LARGEST_REQUEST].default_value) or 0)
    if side == "brokers" and smallest < least:
        return f"{size(least)}, the least that Kafka accepts (socket.request.max.bytes): {size(smallest)} would do"
    return told


def said_of(row: Row) -> str:
    """A lane of the replay of memory."""
    return lane_said(row[CONSUMER_MEMORY.scenario])


def cache_slots(found: Findings) -> Iterable[Advice]:
    """The number of slots that harms nobody, against the partitions that a broker then keeps."""
    c, s, rows, needs = (
        SESSION_CACHE,
        SESSION_SLOTS,
        found.by_lane(session_lanes, algorithms.SESSION_CACHE),
        found.of(slots),
    )
    if not rows or not needs:
        return
    # Of the captured number of shards; others are nobody's to set.
    captured, need = rows[0], next((row for row in needs if row[s.slots] is not None), needs[0])
    zero, taken = need[s.zero_harm_slots], need[s.slots]
    most = max(rows, key=lambda row: row["live"])
    # What the capture contradicts was not in force.
    keep = taken is not None and taken >= zero and are_possible(need)
    is_given = captured[c.captured_refused] <= captured[c.refused]
    evicted_too = f"{captured[c.evicted]:,} evicted" if is_given else "which the replay does not reproduce"
    kept = f"Keep {taken:,}: " + ("it is just enough" if taken == zero else f"{zero:,} would do") if keep else ""
    yield Advice(
        "max.incremental.fetch.session.cache.slots",
        f"{percent(captured_refused_share(captured))} refused, {evicted_too}",
        kept if keep else f"{zero:,}: from there on, nobody is refused or evicted",
        f"a broker keeps up to {counted(most['live'], 'session')} with {counted(most['cached'], 'partition')} in all "
        f"(with the captured settings {captured['live']:,} with {captured['cached']:,})", ENOUGH.number,
    )  # fmt: skip


def batches(found: Findings) -> Iterable[Advice]:
    """The largest batch.size with few splits, against how full its batches are; none where the replay of the captured
    settings lacks the refused batches.
    """
    rows = [row for row in found.by_lane(split_lanes, algorithms.BATCH_SPLIT) if can_be_set(row)]
    largest = max(largest_safe(rows).values(), default=0)
    if not rows or not largest or unlike_captured(found):
        return
    captured = rows[0]
    best = next(row for row in rows if batch_size(row) == largest and is_safe(row))
    yield Advice(
        "batch.size", f"{percent(captured['rate'])} of the worst producer's batches are split",
        f"{largest:,}{beside_size(best)}: the largest replayed that splits few, {percent(best['rate'])}",
        f"{best['batches']:,} batches instead of {captured['batches']:,}, filled to {percent(best['fill'])}; "
        f"{sent_instead(best, captured)}", SAFE.number,
    )  # fmt: skip


def sent_instead(best: Row, captured: Row) -> str:
    """What is sent in all, beside what is with the captured settings."""
    sent, before = size(best["sent"]), size(captured["sent"])
    return f"{sent} sent, as with the captured settings" if sent == before else f"{sent} sent instead of {before}"


def partition_limits(found: Findings) -> Iterable[Advice]:
    """The smallest limits that refuse nothing of what was captured."""
    limits: Sequence[Row] = found.of(safe)
    if not limits or not found.of(limit_lanes):
        return
    yield Advice(
        "max.broker.partitions, max.partitions (KIP-578)", "no release has such a limit",
        f"{safe_limits(limits)}: the smallest that refuse nothing captured",
        "no headroom: whatever is created later is refused; add the growth that you plan for",
        REFUSED_TEAMS.number, True,
    )  # fmt: skip
