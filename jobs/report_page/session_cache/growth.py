"""How many fetch-session slots are needed if groups have more members: lanes with `traffic.consumers`."""

from __future__ import annotations

from jobs.replays.session_cache.answers import grown_lanes, slot_needs
from jobs.report_page.question import Findings
from jobs.terminal.lane_rows import settings_in_name
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_SLOTS
from udfs.replay.session_cache.settings import SLOTS
from udfs.replay.shared.lanes import TRAFFIC_CONSUMERS

DEALT = "an extrapolation: each captured consumer's partitions are dealt among as many, each with a session of its own"


def slots_by_consumers(findings: Findings) -> list[tuple[str, str]]:
    """(setting, text) for each number of consumers: the number of slots with which a broker harms nobody, now and then.
    A lane's own number of slots does not matter for that. Lanes that change anything else are left out.
    """
    s, now = SESSION_SLOTS, max((row[SESSION_SLOTS.zero_harm_slots] for row in findings.of(slot_needs)), default=0)
    needed = dict[str, int]()
    for row in findings.by_lane(grown_lanes, algorithms.SESSION_CACHE):
        changed = settings_in_name(row[s.scenario])
        if changed.keys() <= {TRAFFIC_CONSUMERS, SLOTS}:
            needed[changed[TRAFFIC_CONSUMERS]] = row[s.zero_harm_slots]
    return [
        (f"{TRAFFIC_CONSUMERS}={consumers}", f"fetch-session slots that harm nobody {now:,} -> {slots:,}")
        for consumers, slots in needed.items()
    ]
