"""How many fetch-session slots are needed with other traffic: lanes with `traffic.`."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Row

from jobs.replays.session_cache.answers import grown_lanes, slot_needs
from jobs.report_page.fetch_max_bytes.growth import with_low_fidelity
from jobs.report_page.question import Findings
from jobs.terminal.lane_rows import settings_in_name
from jobs.terminal.wording import changes_phrase
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_SLOTS
from udfs.replay.session_cache.settings import SLOTS
from udfs.replay.shared.lanes import TRAFFIC, TRAFFIC_CONSUMERS, TRAFFIC_SPEED

SUPPOSED = {
    TRAFFIC_CONSUMERS: "each captured consumer's partitions are dealt among that many, each with a session of its own",
    TRAFFIC_SPEED: "clients come and go that much faster",
}
"""What a lane with each setting supposes."""


def slots_by_traffic(findings: Findings) -> list[tuple[str, str]]:
    """(lane, text) for each kind of other traffic: the slots with which a broker harms nobody who still fetches, now
    and then. A lane's own number of slots does not matter for that. Lanes that change anything else are left out.
    """
    s, now = SESSION_SLOTS, max((row[SESSION_SLOTS.enough_slots] for row in findings.of(slot_needs)), default=0)
    needed = dict[str, int]()
    for changed, row in grown_alone(findings):
        traffic = ",".join(f"{key}={value}" for key, value in changed.items() if key in TRAFFIC)
        needed[changes_phrase(traffic)] = row[s.enough_slots]
    return [(traffic, f"fetch-session slots that are enough {now:,} -> {slots:,}") for traffic, slots in needed.items()]


def grown_alone(findings: Findings) -> list[tuple[Mapping[str, str], Row]]:
    """(the settings, the row) of each lane that changes nothing but the traffic and the number of slots."""
    rows = findings.by_lane(grown_lanes, algorithms.SESSION_CACHE)
    changed = [(settings_in_name(row[SESSION_SLOTS.scenario]), row) for row in rows]
    return [(settings, row) for settings, row in changed if settings.keys() <= {*TRAFFIC, SLOTS}]


def slots_sureness(findings: Findings) -> str:
    """How sure the lines of `slots_by_traffic` are."""
    varied = {key for changed, _ in grown_alone(findings) for key in changed}
    supposed = " and ".join(text for key, text in SUPPOSED.items() if key in varied)
    return with_low_fidelity(findings, [f"an extrapolation: {supposed}"], algorithms.SESSION_CACHE)
