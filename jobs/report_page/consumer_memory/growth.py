"""How much memory consumers need if more is produced, or if there are more of them: lanes with `traffic.`."""

from __future__ import annotations

from jobs.replays.consumer_memory.answers import lanes
from jobs.report_page.consumer_memory.needed_memory import CONSUMERS, pool_bytes
from jobs.report_page.lane_labels import has_other_traffic
from jobs.report_page.question import Findings
from jobs.terminal.screen import size_text
from jobs.terminal.wording import changes_phrase, duration, quantity
from schemas.tables import algorithms


def memory_by_traffic(findings: Findings) -> list[tuple[str, str]]:
    """(lane, text) for each lane with other traffic: the most that a consumer holds; in lanes with a pool of memory,
    how long responses wait for it.
    """
    rows = [row for row in findings.by_lane(lanes, algorithms.CONSUMER_MEMORY) if row["of"] == CONSUMERS]
    texts = list[tuple[str, str]]()
    for row in filter(lambda row: has_other_traffic(row["scenario"]), rows):
        if row["stuck"]:
            text = quantity(row["stuck"], "connection gets stuck", "connections get stuck")
        elif row["waits"]:
            text = f"{quantity(row['waits'], 'response waits', 'responses wait')} up to {duration(row['longest'])}"
        elif pool_bytes(row["scenario"]) is not None:
            text = "nothing waits for memory"
        else:
            text = f"a consumer holds up to {size_text(row['most_in_loop'])} of responses"
        texts.append((changes_phrase(row["scenario"]), text))
    return texts
