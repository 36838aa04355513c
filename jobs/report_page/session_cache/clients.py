"""Clients and the fetches that they send (KIP-227): questions 8 and 18."""

from __future__ import annotations

from pyspark.sql import Row

from jobs.replays.session_cache.answers import lanes
from jobs.report_page.question import Axis, Findings, Plot, Question, Unanswered, rows_to_plot
from jobs.report_page.row_caps import left_out_note
from jobs.report_page.session_cache.sessions import DECISIONS, MOST_CLIENTS, NO_FETCH, full_share
from jobs.report_page.traffic import fetching_clients, fetching_software
from jobs.terminal.screen import Grid, size_text
from jobs.terminal.wording import LEAST_CASES, client_name, lane_phrase, owner_phrase, percent, quantity
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.silver import EXCHANGES


def not_found_answer(findings: Findings) -> str:
    """Question 8: how many sessions were not found, whose they were, and what full fetches cost compared with enough
    slots.
    """
    rows = findings.of(fetching_clients)
    if not rows:
        raise Unanswered(NO_FETCH)
    fetches, lost, full = (
        sum(row[name] for row in findings.of(fetching_software)) for name in ("fetches", "not_found", "full")
    )
    sentence = f"{lost:,} of {quantity(fetches, 'captured fetch', 'captured fetches')} got FETCH_SESSION_ID_NOT_FOUND"
    if lost:
        sentence += f", {owner_phrase(rows[0][EXCHANGES.client_id], rows[0]['not_found'], lost)}"
    cost = full_fetches_cost_text(findings, full / fetches)
    return f"{sentence}. {percent(full / fetches)} of all fetches were full ones{cost}."


def full_fetches_cost_text(findings: Findings, as_captured: float) -> str:
    """What full fetches of the captured lane cost compared with the lane that has fewest. as_captured: the share of
    full fetches in the capture.
    """
    c, rows = SESSION_CACHE, findings.by_lane(lanes, algorithms.SESSION_CACHE)
    if not rows:
        return ""
    captured, best = rows[0], min(rows, key=full_share)
    spared = captured[c.request_bytes] - best[c.request_bytes]
    if not captured[c.captured_refused] + captured[c.refused] + captured[c.evicted]:
        return ", none of them for lack of slots"
    if captured[c.captured_refused] > captured[c.refused] and full_share(captured) < as_captured:
        return (
            f", {percent(full_share(captured))} in the replay of the captured settings, which does not reproduce the "
            "captured refusals"
        )
    if full_share(best) == full_share(captured):
        return ", which no replayed number of slots reduces"
    return (
        f". It is {percent(full_share(best))} {lane_phrase(best[c.scenario])}, which saves {size_text(spared)} of "
        f"requests and re-reading {captured['reread'] - best['reread']:,} partitions"
    )


def full_by_client(findings: Findings) -> Plot:
    """Full and other fetches by client."""
    rows = [
        {"client": client_name(row[EXCHANGES.client_id]), "fetches": count, "kind": kind}
        for row in findings.of(fetching_clients)[:MOST_CLIENTS]
        for kind, count in (("full", row["full"]), ("incremental", row["fetches"] - row["full"]))
    ]
    return Plot(
        "Captured fetches that name every partition, and those that name what changed, by client",
        "bar", rows_to_plot(rows, "nobody fetched"), Axis("fetches", "fetches", "count"),
        Axis("client", "client", "name"),
        Axis("kind", "fetch", "name"),
    )  # fmt: skip


def clients_table(findings: Findings) -> Grid:
    """A row for each client."""
    cells = [
        [
            client_name(row[EXCHANGES.client_id]), f"{row['fetches']:,}", f"{row['full']:,}",
            percent(row["full"] / row["fetches"]), full_fetches_a_minute(row), f"{row['not_found']:,}",
            size_text(row["request_bytes"]),
            size_text(row["response_bytes"]),
        ]
        for row in findings.of(fetching_clients)
    ]  # fmt: skip
    head = ("client", "fetches", "full", "full share", "full a minute", "not found", "requests", "responses")
    notes = (
        "These are captured fetches. Clients that lost most sessions come first, then those with most full fetches.",
    )
    return Grid(head, cells, ("client",), (*notes, *left_out_note(findings.of(fetching_clients), EXCHANGES)))


def full_fetches_a_minute(row: Row) -> str:
    """Full fetches per minute, from the client's first fetch to its last."""
    minutes = (row["last"] - row["first"]).total_seconds() / 60
    return f"{row['full'] / minutes:,.1f}" if minutes else "-"


def software_text(row: Row) -> str:
    """A client's software and version."""
    x = EXCHANGES
    name = f"{row[x.client_software_name] or ''} {row[x.client_software_version] or ''}".strip()
    return name or "unknown (followers, old clients)"


def client_versions_answer(findings: Findings) -> str:
    """Question 18: whether versions of one client differ in the capture. Different clients are not compared."""
    rows = findings.of(fetching_software)
    if not rows:
        raise Unanswered(NO_FETCH)
    of_name: dict[str, list[Row]] = {}
    for row in rows:
        of_name.setdefault(row[EXCHANGES.client_software_name] or "", []).append(row)
    unnamed = of_name.pop("", [])
    name, of_most = max(of_name.items(), key=lambda item: len(item[1]), default=("", unnamed))
    if len(of_most) < 2 or not name:
        are = ", ".join(software_text(row) for same in of_name.values() for row in same) or "none names its software"
        raise Unanswered(
            f"No client fetches with two versions here ({are}): capture before and after the upgrade, and `compare` "
            "says what changed."
        )
    enough = [row for row in of_most if row["fetches"] >= LEAST_CASES]
    sentence = f"Fetches of {name} come from {len(of_most)} versions"
    if len(enough) < len(of_most):
        sentence += f", {len(of_most) - len(enough)} of them with fewer than {LEAST_CASES}"
    if len(enough) < 2:
        raise Unanswered(f"{sentence}: too few to compare. Let the capture run longer.")
    low, high = (pick(enough, key=lambda row: row["full"] / row["fetches"]) for pick in (min, max))
    both = ". ".join(f"Of {software_text(row)} {session_use_text(row)}" for row in (low, high))
    return f"{sentence}. {both}."


def session_use_text(row: Row) -> str:
    """How a version of a client fetches, in words."""
    full, sessions = percent(row["full"] / row["fetches"]), quantity(row["sessions"], "session")
    return f"(Fetch {request_versions_text(row)}) {full} are full, in {sessions} with {row['not_found']:,} not found"


def request_versions_text(row: Row) -> str:
    """Versions of the Fetch request."""
    return f"{row['oldest']}" if row["oldest"] == row["newest"] else f"{row['oldest']} to {row['newest']}"


def full_by_version(findings: Findings) -> Plot:
    """The share of full fetches by software."""
    rows = [
        {"software": software_text(row), "share": row["full"] / row["fetches"]}
        for row in findings.of(fetching_software)[:MOST_CLIENTS]
    ]
    return Plot(
        "Full fetches, of all captured fetches of a client version",
        "bar", rows_to_plot(rows, "nobody fetched"),
        Axis("share", "full fetches", "percent"), Axis("software", "client", "name"),
    )  # fmt: skip


def versions_table(findings: Findings) -> Grid:
    """A row for each version of a client."""
    cells = [
        [
            software_text(row), request_versions_text(row), f"{row['fetches']:,}",
            percent(row["full"] / row["fetches"]),
            f"{row['sessionless']:,}", f"{row['sessions']:,}", f"{row['not_found']:,}",
            size_text(row["request_bytes"] // row["fetches"]), size_text(row["response_bytes"] // row["fetches"]),
        ]
        for row in findings.of(fetching_software)
    ]  # fmt: skip
    head = (
        "client", "Fetch versions", "fetches", "full", "want no session", "sessions", "not found", "bytes a request",
        "bytes a response",
    )  # fmt: skip
    return Grid(head, cells, ("client",), left_out_note(findings.of(fetching_software), EXCHANGES))


NOT_FOUND = Question(
    number=8,
    text="Why FETCH_SESSION_ID_NOT_FOUND, and is it harmful?",
    about="KIP-227",
    algorithms=(algorithms.SESSION_CACHE,),
    queries=(fetching_clients, fetching_software, lanes),
    sentence=not_found_answer,
    plots=(full_by_client,),
    table=clients_table,
    trust=DECISIONS,
)


BY_VERSION = Question(
    number=18,
    text="What changed after the client upgrade?",
    about="KIP-227, KIP-74",
    algorithms=(),
    queries=(fetching_software,),
    sentence=client_versions_answer,
    plots=(full_by_version,),
    table=versions_table,
)
