"""What screen and page say about share groups."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Row

from jobs.replays.session_cache.answers import answer_lines
from jobs.replays.session_cache.share_answers import share_lanes, share_needs
from jobs.report_page.advice.recommendation import Recommendation
from jobs.report_page.advice.recommendations import make_recommendations
from jobs.report_page.capture_contents import read_lines, requests_by_api
from jobs.report_page.row_caps import IN_ALL
from jobs.report_page.share_groups import share_client_notes, share_groups_text, share_sessions_text
from jobs.report_page.trust import fidelity_by_reason
from jobs.report_page.verdict import trust_reasons
from schemas.tables.gold_shares import SHARE_LIMITS
from tests.unit.report.findings import agreement, findings, row_of
from udfs.replay.session_cache.settings import SHARE_LIMIT

SHARED = [Row(api_name="FETCH", count=7, answered=7), Row(api_name="SHARE_FETCH", count=9, answered=9),
          Row(api_name="SHARE_ACKNOWLEDGE", count=1, answered=1)]  # fmt: skip
LANES = ("captured", "broker.max.incremental.fetch.session.cache.slots=8", "broker.group.share.max.share.sessions=4")
OF_LANES = [
    Row(
        scenario=lane,
        created=3,
        refused=refused,
        not_found=0,
        dropped=1,
        live=3,
        harmed=2,
        members=5,
        longest=4000,
        captured_created=4,
        captured_refused=6,
    )
    for lane, refused in zip(LANES, (1, 1, 0), strict=True)
]
CLIENT = Row(
    group_id="orders", client_id="app", fetches=40, served=30, records=900, again=12, bytes=90_000, median_records=25,
    median_bytes=2048, full=20, max_records=50, batch_size=50, max_bytes=52_428_800, **{IN_ALL: 1},
)  # fmt: skip


def needs(taken: int) -> list[Row]:
    of = {"needed_sessions": 7, "sessions_at_least": 3, "sessions_at_most": 3, "max_share_sessions": taken}
    return [row_of(SHARE_LIMITS, **of)]


def test_the_replays_that_leave_share_groups_out_are_named() -> None:
    shared = findings({requests_by_api: SHARED})
    text = "10 requests of share groups (KIP-932) are in no lane of fetch_max_bytes and consumer_memory"
    assert [text in line for line in read_lines(shared)].count(True) == 1
    assert [text in line for line in trust_reasons(shared)].count(True) == 1
    assert not any("share groups" in line for line in [*read_lines(findings()), *trust_reasons(findings())])
    assert share_groups_text(SHARED[1:2]).startswith("9 requests of share groups (KIP-932) are in no lane")
    assert len(share_groups_text(SHARED).split()) <= 25


def test_a_client_of_a_share_group_is_shown_with_what_it_asks_for_and_gets() -> None:
    [line] = share_client_notes([CLIENT])
    assert line == (
        "  share group orders, app: 40 fetches, 30 with records; in the middle 25 records and 2.0 KiB (max_records 50, "
        "batch_size 50, max_bytes 50.0 MiB); 12 of 900 records again"
    )
    [of_log] = share_client_notes([Row(**{**CLIENT.asDict(), "median_bytes": None, "again": 0, "max_records": None})])
    assert (
        of_log
        == "  share group orders, app: 40 fetches, 30 with records; in the middle 25 records (max_bytes 50.0 MiB)"
    )


def test_the_answer_says_how_many_share_sessions_are_enough() -> None:
    found = findings({share_lanes: OF_LANES, share_needs: needs(3)}, {"session_cache": LANES})
    assert share_sessions_text(found) == (
        " Share groups need 7 share sessions per broker; as captured, 25.00 % of the ShareFetches that "
        "want one are refused."
    )
    wrong = findings({share_lanes: OF_LANES, share_needs: needs(2000)}, {"session_cache": LANES})
    assert share_sessions_text(wrong).endswith(
        "The capture does not allow 2,000: state group.share.max.share.sessions."
    )
    assert not share_sessions_text(findings())


def test_the_summary_has_a_table_of_share_sessions_with_the_lanes_that_change_them() -> None:
    answers = {"lanes": [], "slots": [], "grown": [], "share_lanes": OF_LANES, "share_needs": needs(3)}
    lines = list(answer_lines(answers, LANES))
    assert lines[0] == "  no fetch was captured"
    assert any("group.share.max.share.sessions=4" in line and "0.00 %" in line for line in lines)
    assert not any("slots=8" in line for line in lines)
    assert any("3 to 3 share sessions per broker. The replay took 3, which fits." in line for line in lines)
    assert list(answer_lines({**answers, "share_lanes": []}, LANES)) == lines[:1]


def advised(taken: int, at_most: int | None, is_stated: bool = True) -> Recommendation:
    """The advice where 7 share sessions are needed, and the capture allows 3 or more."""
    of = {"needed_sessions": 7, "sessions_at_least": 3, "sessions_at_most": at_most, "max_share_sessions": taken}
    agreed = [
        agreement("session_cache", "consumer", "share_grants", 5, 5),
        agreement("session_cache", "consumer", "session_grants", 90, 9),
    ]
    found = findings(
        {share_lanes: OF_LANES, share_needs: [row_of(SHARE_LIMITS, **of)], fidelity_by_reason: agreed},
        {"session_cache": LANES},
    )
    in_force = {SHARE_LIMIT: taken}
    (one,) = make_recommendations(replace(found, captured=in_force, assumed=() if is_stated else tuple(in_force)))
    assert (one.sure.checked, one.sure.agreed) == (5, 5), "fetch sessions do not count"
    return one


def test_enough_share_sessions_are_kept() -> None:
    one = advised(2000, None, is_stated=False)
    assert (one.verdict, one.now.value, one.now.source, one.recommended) == ("keep", "2000", "default", "2000")
    assert one.enough == "7"


def test_too_few_share_sessions_are_raised_until_nobody_is_refused_one() -> None:
    one = advised(3, 3)
    assert (one.verdict, one.now.value, one.recommended) == ("change", "3", "7")
    assert one.gain.text == "60.0 % of ShareFetches that want a session refused -> none"
    assert one.cost.text == "a broker keeps 7 share sessions instead of 3"


def test_share_sessions_that_the_capture_contradicts_are_to_be_stated() -> None:
    one = advised(2000, 9)
    assert (one.verdict, one.now.value) == ("withheld", None)
    assert one.reason == "The capture shows 3 to 9 share sessions, and not 2,000: state the limit."


def test_share_sessions_that_are_certainly_too_few_are_raised_though_their_number_is_not_known() -> None:
    one = advised(2000, 5)
    assert (one.verdict, one.now.value, one.recommended) == ("change", None, "7")


def test_the_only_limit_that_the_capture_allows_is_the_one_in_force() -> None:
    one = advised(2000, 3)
    assert (one.verdict, one.now.value, one.now.source, one.recommended) == ("change", "3", "captured", "7")
