"""How many fetch-session slots are needed with other traffic: lanes with `traffic.`."""

from __future__ import annotations

from jobs.replays.session_cache.answers import grown_lanes, slot_needs
from jobs.report_page.question import Findings
from jobs.terminal.lane_rows import settings_in_name
from jobs.terminal.wording import changes_phrase
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_SLOTS
from udfs.replay.session_cache.settings import SLOTS
from udfs.replay.shared.lanes import TRAFFIC

EXTRAPOLATED = (
    "an extrapolation: each captured consumer's partitions are dealt among that many, each with a session of its own, "
    "and clients come and go that much faster"
)


def slots_by_traffic(findings: Findings) -> list[tuple[str, str]]:
    """(lane, text) for each kind of other traffic: the slots with which a broker harms nobody who still fetches, now
    and then. A lane's own number of slots does not matter for that. Lanes that change anything else are left out.
    """
    s, now = SESSION_SLOTS, max((row[SESSION_SLOTS.enough_slots] for row in findings.of(slot_needs)), default=0)
    needed = dict[str, int]()
    for row in findings.by_lane(grown_lanes, algorithms.SESSION_CACHE):
        changed = settings_in_name(row[s.scenario])
        if changed.keys() <= {*TRAFFIC, SLOTS}:
            traffic = ",".join(f"{key}={value}" for key, value in changed.items() if key in TRAFFIC)
            needed[changes_phrase(traffic)] = row[s.enough_slots]
    return [(traffic, f"fetch-session slots that are enough {now:,} -> {slots:,}") for traffic, slots in needed.items()]
