"""Fetch sessions (KIP-227): questions 9, 10 and 14."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jobs.replays.algorithm import OwnRows
from jobs.replays.session_cache.answers import (
    are_slots_possible,
    captured_slots_text,
    grown_lanes,
    grown_table,
    lanes,
    lanes_table,
    slot_needs,
)
from jobs.replays.session_cache.share_answers import share_lanes, share_lanes_table, share_needs
from jobs.report_page.question import Axis, Findings, Plot, Question, Unanswered, rows_to_plot
from jobs.report_page.row_caps import first_lanes_note, first_rows_of_each, left_out_note
from jobs.report_page.share_groups import share_client_notes, share_clients, share_sessions_text
from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.terminal.screen import Grid, grid_lines
from jobs.terminal.wording import capitalized, client_name, lane_heading, lane_label, lane_phrase, percent, quantity
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS

MOST_BROKERS, MOST_PAIRS, MOST_CLIENTS, MOST_LANES = 20, 50, 12, 24
DECISIONS = ("session_grants", "session_errors", "session_partitions")
NO_FETCH = "The capture shows no fetch: capture packets of a broker that consumers or followers read from."


def evictions_by_pair(own_rows: OwnRows) -> DataFrame:
    """(scenario, evictor, victim, evictions), over all brokers; the most frequent pair of each lane comes first."""
    e = SESSION_EVICTIONS
    sums = own_rows(e).groupBy(e.scenario, e.evictor, e.victim).agg(F.sum(e.evictions).alias(e.evictions))
    return first_rows_of_each(sums, str(e.scenario), MOST_PAIRS, F.desc(e.evictions), e.evictor, e.victim)


def shards_in_captured_lane(own_rows: OwnRows) -> DataFrame:
    """(broker, shard, most, per shard) of the captured lane, with how much the broker refused and evicted over all
    shards, and how much of it while another shard had a free slot.
    """
    c, s = SESSION_CACHE, SESSION_SLOTS
    is_captured = F.col(c.scenario) == CAPTURED_LANE
    room = own_rows(s).where(is_captured).select(s.broker, F.floor(F.col(s.slots) / F.col(s.shards)).alias("each"))
    buckets = own_rows(c).where(is_captured).join(F.broadcast(room), str(c.broker))
    counts = (c.refused, c.refused_despite_room, c.evicted, c.evicted_despite_room)
    spread = buckets.select(c.broker, "each", *counts, F.posexplode(c.shard_sessions).alias("shard", "sessions"))
    sums = [F.sum(count).alias(count) for count in counts]
    of_shards = spread.groupBy(c.broker, "shard", "each").agg(F.max("sessions").alias("most"), *sums)
    return of_shards.orderBy(F.length(c.broker), c.broker, "shard")


def full_share(row: Row) -> float:
    """The share of full fetches among all fetches of a lane."""
    c = SESSION_CACHE
    return float(row[c.full_fetches] / row[c.fetches]) if row[c.fetches] else 0.0


def refused_share(row: Row) -> float:
    """The share of fetches without a session among the full fetches that wanted one, in a lane."""
    c = SESSION_CACHE
    wanted = row[c.refused] + row[c.created]
    return float(row[c.refused] / wanted) if wanted else 0.0


def captured_refused_share(row: Row) -> float:
    """The share of fetches without a session among the full fetches that wanted one, in the capture itself. It may
    differ from the replay's.
    """
    c = SESSION_CACHE
    wanted = row[c.captured_refused] + row[c.captured_created]
    return float(row[c.captured_refused] / wanted) if wanted else 0.0


def enough_slots_answer(findings: Findings) -> str:
    """Question 9: the number of slots from which nobody is refused or evicted, and what happens with fewer."""
    c, s, rows = SESSION_CACHE, SESSION_SLOTS, findings.by_lane(lanes, algorithms.SESSION_CACHE)
    needs = findings.of(slot_needs)
    if not rows or not needs:
        raise Unanswered(NO_FETCH)
    enough_of = " or ".join(
        f"{row[s.zero_harm_slots]:,} slots ({'one cache' if row[s.shards] == 1 else quantity(row[s.shards], 'shard')})"
        for row in needs
    )
    captured = rows[0]
    worst = max(rows, key=refused_share)
    sentence = (
        f"From {enough_of} per broker on, nobody in the capture is refused or evicted. As captured, "
        f"{percent(captured_refused_share(captured))} of the full fetches that want a session are refused"
    )
    if captured[c.captured_refused] != captured[c.refused]:
        sentence += f" ({percent(refused_share(captured))} in the replay of the captured settings)"
    sentence += f". In the replay {quantity(captured[c.evicted], 'session is', 'sessions are')} evicted"
    if worst[c.scenario] != CAPTURED_LANE and refused_share(worst) != refused_share(captured):
        sentence += (
            f". {percent(refused_share(worst))} are refused and {quantity(worst[c.evicted], 'session')} evicted "
        )
        sentence += lane_phrase(worst[c.scenario])
    return f"{sentence}.{slots_doubt_text(needs)}{share_sessions_text(findings)}"


def slots_doubt_text(needs: list[Row]) -> str:
    """Says that the capture contradicts the number of slots taken as in force; empty if it does not."""
    taken = (row for row in needs if row[SESSION_SLOTS.slots] is not None)
    return next((f" {captured_slots_text(row)}" for row in taken if not are_slots_possible(row)), "")


def slots_bars(findings: Findings) -> Plot:
    """Full and refused shares by lane."""
    c = SESSION_CACHE
    in_order = findings.by_lane(lanes, algorithms.SESSION_CACHE)
    rows = [
        {"lane": lane_label(row[c.scenario]), "share": share, "of": of}
        for row in in_order[:MOST_LANES]
        for of, share in (("full, of all", full_share(row)), ("refused, of full ones", refused_share(row)))
    ]  # fmt: skip
    return Plot(
        f"Full fetches and refusals by slots per broker{first_lanes_note(MOST_LANES, len(in_order))}",
        "grouped", rows_to_plot(rows, "no lane has a full fetch", "share"),
        Axis("share", "share", "percent"), Axis("lane", lane_heading(findings.lanes[algorithms.SESSION_CACHE]), "name"),
        Axis("of", "fetches", "name"),
    )  # fmt: skip


def slots_grid(findings: Findings) -> Grid:
    """The lanes of the replay. The notes have lanes with other traffic, and share sessions, if there are any."""
    names = findings.lanes[algorithms.SESSION_CACHE]
    table = lanes_table(findings.of(lanes), findings.of(slot_needs), names)
    if grown := findings.of(grown_lanes):
        table = replace(table, notes=[*table.notes, *grid_lines(grown_table(grown, names))])
    rows = findings.of(share_lanes)
    if not rows:
        return table
    of_shares = grid_lines(share_lanes_table(rows, findings.of(share_needs), names))
    return replace(table, notes=[*table.notes, *of_shares, *share_client_notes(findings.of(share_clients))])


def evicting_lane(findings: Findings) -> str:
    """The captured lane if it has evictions, otherwise the lane with most of them; empty if no lane has any."""
    c = SESSION_CACHE
    rows = [row for row in findings.by_lane(lanes, algorithms.SESSION_CACHE) if row[c.evicted]]
    if not rows:
        return ""
    is_captured = rows[0][c.scenario] == CAPTURED_LANE
    return str((rows[0] if is_captured else max(rows, key=lambda row: row[c.evicted]))[c.scenario])


def evictions_in_lane(findings: Findings) -> list[Row]:
    """The rows of `evictions_by_pair` for the lane that `evicting_lane` returns."""
    lane = evicting_lane(findings)
    return [row for row in findings.of(evictions_by_pair) if row[SESSION_EVICTIONS.scenario] == lane]


def evictions_answer(findings: Findings) -> str:
    """Question 10: who evicts whom most."""
    e, rows = SESSION_EVICTIONS, evictions_in_lane(findings)
    if not findings.of(lanes):
        raise Unanswered(NO_FETCH)
    if not rows:
        return (
            f"Nobody evicts anybody in any replayed lane with the captured traffic{captured_refusals_text(findings)}."
        )
    lane = evicting_lane(findings)
    c = SESSION_CACHE
    everyone = next(row[c.evicted] for row in findings.of(lanes) if row[c.scenario] == lane)
    first = rows[0]
    itself = "another of its own sessions" if first[e.victim] == first[e.evictor] else client_name(first[e.victim])
    alike = sum(row[e.evictions] == first[e.evictions] for row in rows)
    often = f"Most often {client_name(first[e.evictor])} evicts {itself} ({first[e.evictions]:,}"
    often += f", as often as {quantity(alike - 1, 'other pair')})" if alike > 1 else ")"
    return f"{capitalized(lane_phrase(lane))}, {quantity(everyone, 'session is', 'sessions are')} evicted. {often}."


def evictions_matrix(findings: Findings) -> Plot:
    """Evictor by victim."""
    e = SESSION_EVICTIONS
    rows: list[dict[str, object]] = [
        {"evictor": client_name(row[e.evictor]), "victim": client_name(row[e.victim]), "evictions": row[e.evictions]}
        for row in evictions_in_lane(findings)
    ]
    names_by_side = {
        side: list(dict.fromkeys(row[side] for row in rows))[:MOST_CLIENTS] for side in ("evictor", "victim")
    }
    rows = [row for row in rows if all(row[side] in names for side, names in names_by_side.items())]
    return Plot(
        f"Who evicts whose fetch session, {lane_phrase(evicting_lane(findings))}",
        "heat", rows_to_plot(rows, "nobody is evicted in any lane"),
        Axis("victim", "loses a session", "name"), Axis("evictor", "takes it", "name"),
        Axis("evictions", "evictions", "count"),
    )  # fmt: skip


def evictions_table(findings: Findings) -> Grid:
    """A row for each pair."""
    e = SESSION_EVICTIONS
    rows, head = evictions_in_lane(findings), ("takes the slot", "loses its session", "evictions")
    cells = [[client_name(row[e.evictor]), client_name(row[e.victim]), f"{row[e.evictions]:,}"] for row in rows]
    return Grid(head, cells, head[:2], left_out_note(rows, e))


def while_room_answer(findings: Findings) -> str:
    """Question 14: evictions and refusals in one shard while another shard had room."""
    c, rows = SESSION_CACHE, findings.of(shards_in_captured_lane)
    if not rows:
        raise Unanswered(NO_FETCH)
    by_broker = {row[SESSION_SLOTS.broker]: row for row in rows}
    number = len({row["shard"] for row in rows})
    if number == 1:
        return "Not because of shards: this version of Kafka has one cache, and evicts only when it is full."
    refused, roomy, evicted, evicted_roomy = (
        sum(row[name] for row in by_broker.values())
        for name in (c.refused, c.refused_despite_room, c.evicted, c.evicted_despite_room)
    )
    each = ", ".join(sorted({f"{row['each']:,}" for row in by_broker.values()}))
    sentence = (
        f"A broker's slots are spread over {number} shards of {each} each, and a session stays in the shard whose turn "
        "it was"
    )
    if not refused + evicted:
        return f"{sentence}. With the captured settings nobody is refused or evicted{captured_refusals_text(findings)}."
    return (
        f"{sentence}. With the captured settings, {roomy:,} of {quantity(refused, 'refusal')} and {evicted_roomy:,} of "
        f"{quantity(evicted, 'eviction')} happen while another of the broker's shards has a free slot."
    )


def captured_refusals_text(findings: Findings) -> str:
    """Says that the capture has more refusals than the captured lane; empty if it does not."""
    c = SESSION_CACHE
    lane = next((row for row in findings.of(lanes) if row[c.scenario] == CAPTURED_LANE), None)
    if lane is None or lane[c.captured_refused] <= lane[c.refused]:
        return ""
    return f", though the capture has {quantity(lane[c.captured_refused], 'refusal')}"


def shards_by_broker(findings: Findings) -> Plot:
    """The most sessions in each shard of the brokers that refused or evicted most often."""
    c = SESSION_CACHE
    harmed = {row[c.broker]: row[c.refused] + row[c.evicted] for row in findings.of(shards_in_captured_lane)}
    brokers = sorted(harmed, key=lambda broker: -harmed[broker])[:MOST_BROKERS]
    rows = [
        {"shard": f"{row['shard']}", "broker": f"broker {row[c.broker]}", "most": row["most"]}
        for row in findings.of(shards_in_captured_lane)
        if row[c.broker] in brokers
    ]
    some = f", of {len(brokers)} of {len(harmed):,} brokers" if len(brokers) < len(harmed) else ""
    return Plot(
        f"Most fetch sessions in a shard at a time, with the captured settings{some}",
        "heat", rows_to_plot(rows, "no broker has sessions"),
        Axis("shard", "shard", "name"), Axis("broker", "", "name"), Axis("most", "sessions", "count"),
    )  # fmt: skip


def shards_table(findings: Findings) -> Grid:
    """A row for each shard."""
    cells = [
        [row[SESSION_SLOTS.broker], f"{row['shard']}", f"{row['most']:,}", f"{row['each']:,}"]
        for row in findings.of(shards_in_captured_lane)
    ]
    return Grid(("broker", "shard", "most sessions", "slots"), cells, ("broker",))


ENOUGH = Question(
    number=9,
    text="How many fetch-session slots do I need?",
    about="KIP-227",
    algorithms=(algorithms.SESSION_CACHE,),
    queries=(lanes, slot_needs, grown_lanes, share_lanes, share_needs, share_clients),
    sentence=enough_slots_answer,
    plots=(slots_bars,),
    table=slots_grid,
    trust=DECISIONS,
)
WHO = Question(
    number=10,
    text="Who evicts whom?",
    about="KIP-227",
    algorithms=(algorithms.SESSION_CACHE,),
    queries=(lanes, evictions_by_pair),
    sentence=evictions_answer,
    plots=(evictions_matrix,),
    table=evictions_table,
    trust=DECISIONS,
)
WHILE_ROOM = Question(
    number=14,
    text="Why are sessions evicted while NumIncrementalFetchSessions is below the limit?",
    about="KIP-227",
    algorithms=(algorithms.SESSION_CACHE,),
    queries=(shards_in_captured_lane,),
    sentence=while_room_answer,
    plots=(shards_by_broker,),
    table=shards_table,
    trust=("session_shards",),
)
