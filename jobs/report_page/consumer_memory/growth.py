"""How much memory consumers need if more is produced, or if there are more of them: lanes with `traffic.`."""

from __future__ import annotations

from jobs.report_page.consumer_memory.needed_memory import consumer_rows, pool_bytes
from jobs.report_page.fetch_max_bytes.growth import EXTRAPOLATED, with_low_fidelity
from jobs.report_page.lane_labels import own_lanes
from jobs.report_page.question import Findings
from jobs.terminal.lane_rows import has_other_traffic
from jobs.terminal.screen import size_text
from jobs.terminal.wording import changes_phrase, duration, quantity
from schemas.tables import algorithms


def memory_by_traffic(findings: Findings) -> list[tuple[str, str]]:
    """(lane, text) for each lane with other traffic: the most that a consumer holds; in lanes with a pool of memory,
    how long responses wait for it. Lanes that differ only in settings of others share a text.
    """
    rows = [row for row in consumer_rows(findings) if has_other_traffic(row["scenario"])]
    texts = list[tuple[str, str]]()
    for row in own_lanes(findings, rows, "consumers"):
        if row["stuck"]:
            text = quantity(row["stuck"], "connection gets stuck", "connections get stuck")
        elif row["waits"]:
            text = f"{quantity(row['waits'], 'response waits', 'responses wait')} up to {duration(row['longest'])}"
        elif pool_bytes(row["scenario"]) is not None:
            text = "nothing waits for memory"
        else:
            text = f"a consumer holds up to {size_text(row['most_in_loop'])} of responses"
        without = f"; {row['left_out']:,} responses not replayed" if row["left_out"] else ""
        texts.append((changes_phrase(row["scenario"]), f"{text}{without}"))
    return texts


def memory_sureness(findings: Findings) -> str:
    """How sure the lines of `memory_by_traffic` are."""
    return with_low_fidelity(findings, [EXTRAPOLATED], algorithms.CONSUMER_MEMORY)
