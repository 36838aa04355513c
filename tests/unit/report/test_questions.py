"""The questions: all are there, each with an answer or with a reason and what to do."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Row

from jobs.replays.batch_split.answers import HEAD, answer_row, safe_lines
from jobs.replays.batch_split.answers import lanes as split_lanes
from jobs.replays.fetch_max_bytes.answers import closed_lanes
from jobs.replays.session_cache.answers import lanes as session_lanes
from jobs.replays.session_cache.answers import slot_needs
from jobs.report_page.batch_split.splits import splitting_producers, worst_estimates
from jobs.report_page.fetch_max_bytes.catch_up import NO_LAG
from jobs.report_page.fetch_max_bytes.fairness import NO_OTHER_LIMITS, waiting_partitions
from jobs.report_page.fetch_max_bytes.throttles import throttled_clients
from jobs.report_page.page import question_part
from jobs.report_page.question import Findings, Query
from jobs.report_page.questions import QUESTIONS, answer_question, answer_questions, queries_of
from jobs.report_page.session_cache.sessions import evictions_by_pair
from jobs.report_page.summary import reply_lines
from jobs.report_page.traffic import fetching_clients, fetching_software, produced_codecs
from jobs.report_page.trust import trust_line
from jobs.scenarios.settings import ON_REQUEST, TRIES
from schemas.tables.gold import FETCH_FAIRNESS
from schemas.tables.gold_sessions import SESSION_CACHE, SESSION_EVICTIONS, SESSION_SLOTS
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_TIMELINE
from schemas.tables.silver import EXCHANGES
from tests.unit.report.findings import BY_NUMBER, findings, one_of_one, row_of, sentence

SMALL = "consumer.fetch.max.bytes=1MiB"
LARGE = "consumer.fetch.max.bytes=50MiB"


def lane(name: str, wait: float, took: float, held: int, cut: int = 0) -> Row:
    """A row of the query `closed_lanes`."""
    return Row(
        reader="consumer", scenario=name,
        longest=Row(
            longest_wait_ms=wait, partition="orders-7", share_of_available=0.4, share_of_bytes=0.1, client_id="billing"
        ),
        waiting=int(wait > 0), took=took, never=False, given_up=0, requests=9, cut=cut, held=held, bound=9 << 20,
        own_bound=8 << 20, catch_up_ms_range=None, longest_wait_ms_range=None, held_bytes_range=None,
    )  # fmt: skip


def fetch_limits(*rows: Row) -> Findings:
    f = FETCH_FAIRNESS
    # The row of the partition that waits longest in another lane comes first.
    worst = Row(
        **row_of(f, scenario="captured", longest_wait_ms=1.0, share_of_available=0.9, share_of_bytes=0.9).asDict(),
        worst=0.0, had=0,
    )  # fmt: skip
    names = [row.scenario for row in rows]
    return findings({closed_lanes: [*rows], waiting_partitions: [worst]}, {"fetch_max_bytes": names})


def test_questions_are_numbered_without_a_gap_and_those_on_proposals_say_so() -> None:
    assert [question.number for question in QUESTIONS] == list(range(1, len(QUESTIONS) + 1))
    proposals = {question.number for question in QUESTIONS if question.is_proposal}
    about = {question.number for question in QUESTIONS if question.about in ("KIP-81", "KIP-578")}
    assert proposals == about == {3, 12, 15}


def test_a_question_without_its_replay_says_how_to_ask_for_it() -> None:
    told = [told for told in answer_questions(findings()) if told.question.algorithms]
    assert {told.is_answered for told in told} == {False}
    for one in told:
        assert f"--set={TRIES[one.question.algorithms[0]]}" in one.sentence


def test_a_replay_that_the_scenario_leaves_out_has_to_be_added_there_as_flags_are_not_enough() -> None:
    usual = [name for name in TRIES if name not in ON_REQUEST]
    lanes = dict.fromkeys(usual, ("captured",))
    asked = "--set=producer.batch.size=16KiB,64KiB."
    by_flag = f"This run has no replay of batch_split: run `pipeline` on the captures with {asked}"
    assert answer_question(findings(lanes=lanes), BY_NUMBER[4]).sentence == by_flag
    refused = findings(lanes={usual[0]: ("captured",)}, refused=dict.fromkeys(usual[1:], "no fetch: capture some"))
    assert answer_question(refused, BY_NUMBER[4]).sentence == by_flag
    some = findings(lanes=dict.fromkeys(usual[1:], ("captured",)))
    assert answer_question(some, BY_NUMBER[4]).sentence == (
        "The scenario of this run leaves batch_split out: add `batch_split:` under `replay:` in its file, and run "
        f"`pipeline` with it and {asked}"
    )


def test_a_question_whose_replay_was_refused_says_why() -> None:
    found = findings(refused={"batch_split": "no produce request: capture producers"})
    assert answer_question(found, BY_NUMBER[4]).sentence == "no produce request: capture producers"


def test_every_question_has_a_whole_sentence_even_if_a_capture_shows_nothing_about_it() -> None:
    everything = findings(lanes=dict.fromkeys(TRIES, ("captured",)))
    assert [told.question.number for told in answer_questions(everything) if not told.sentence.endswith(".")] == []
    assert [told.question.number for told in answer_questions(everything) if told.is_answered] == [20]


def test_a_table_that_a_run_does_not_have_is_not_queried() -> None:
    assert closed_lanes not in queries_of([])
    assert closed_lanes in queries_of(["fetch_max_bytes"])
    assert fetching_software in queries_of([])


def test_starvation_that_other_limits_end_is_attributed_to_the_limits() -> None:
    told = sentence(fetch_limits(lane("captured", 105, 270, 500), lane(LARGE, 0, 34, 900)), 7)
    assert "orders-7 of billing waited longest, 105 ms" in told
    assert "40.0 % of the bytes available to its consumer's fetches. Of what they got it had 10.0 %" in told
    assert "The limits are the cause: with fetch.max.bytes=50 MiB nobody waits" in told


def test_starvation_of_a_consumer_that_a_quota_held_back_is_attributed_to_limits_only_if_the_quota_is_stated() -> None:
    rows = fetch_limits(lane("captured", 105, 270, 500), lane(LARGE, 0, 34, 900))
    throttled = Row(client_id="billing", api_name="FETCH", connections=1, total=5_000, long=0, in_all=1)
    held_back = replace(rows, rows={**rows.rows, throttled_clients: [throttled]})
    told = sentence(held_back, 7)
    assert "A quota held this consumer back in the capture, too, and nobody stated it" in told
    assert "The limits are the cause" not in told
    assert told.endswith("With fetch.max.bytes=50 MiB nobody waits.")
    stated = replace(held_back, captured={**rows.captured, "client.billing.consumer_byte_rate": 1000})
    assert sentence(stated, 7) == sentence(rows, 7)


def test_waits_differ_only_if_their_ranges_do_not_meet() -> None:
    captured = with_range(lane("captured", 105, 270, 500), 80, 200)
    told = sentence(fetch_limits(captured, with_range(lane(LARGE, 0, 34, 900), 0, 90)), 7)
    assert "orders-7 of billing waited longest, 105 ms (80 to 200 ms)" in told
    alike = (
        "With fetch.max.bytes=50 MiB the longest wait is 0 ms (0 to 90 ms), no difference that this capture can tell"
    )
    assert told.endswith(f". {alike}.")
    ended = sentence(fetch_limits(captured, with_range(lane(LARGE, 0, 34, 900), 0, 0)), 7)
    assert ended.endswith("The limits are the cause: with fetch.max.bytes=50 MiB nobody waits.")


def with_range(row: Row, low: float, high: float) -> Row:
    """The lane with a range of its longest wait."""
    return Row(**row.asDict() | {"longest_wait_ms_range": Row(value=row.longest[0], p10=low, p90=high)})


def test_starvation_that_no_lane_ends_is_not_attributed_to_the_limits() -> None:
    told = sentence(fetch_limits(lane("captured", 105, 270, 500), lane(LARGE, 99, 34, 900)), 7)
    assert "the limits are the cause" not in told
    assert "With fetch.max.bytes=50 MiB the longest wait is 99 ms" in told


def test_if_nobody_waits_the_answer_says_so() -> None:
    told = sentence(fetch_limits(lane("captured", 0, 270, 500)), 7)
    assert told == (
        "With the captured limits, no consumer partition came away empty from a fetch while it had records."
    )


def test_if_nobody_waits_in_any_lane_that_is_said_once() -> None:
    told = sentence(fetch_limits(lane("captured", 0, 270, 500), lane(LARGE, 0, 34, 900)), 7)
    assert told.endswith("while it had records, nor in any other replayed lane.")


def test_a_wait_that_only_another_lane_has_is_shown_for_that_lane() -> None:
    fine, slow = lane(LARGE, 0, 34, 900), lane(SMALL, 713, 34, 900)
    told = sentence(fetch_limits(lane("captured", 0, 270, 500), fine, slow), 7)
    assert told.endswith("while it had records. With fetch.max.bytes=1 MiB the longest wait is 713 ms.")
    told = sentence(fetch_limits(lane("captured", 105, 270, 500), fine, slow), 7)
    assert told.endswith(
        "with fetch.max.bytes=50 MiB nobody waits. With fetch.max.bytes=1 MiB the longest wait is 713 ms."
    )


def test_partitions_that_waited_for_less_than_a_tick_of_the_clock_still_count() -> None:
    waits = Row(**(lane("captured", 0, 270, 500).asDict() | {"waiting": 2}))
    told = sentence(fetch_limits(waits, lane(LARGE, 0, 34, 900)), 7)
    assert "2 consumer partitions came away empty from a fetch although there were records. orders-7 of billing" in told


def test_a_lane_with_settings_of_the_model_is_named_like_any_other() -> None:
    shuffled = lane("processing.us.per.record=0,order=shuffle", 0, 34, 900)
    assert "order=shuffle nobody waits" in sentence(fetch_limits(lane("captured", 105, 270, 500), shuffled), 7)


def test_the_bytes_that_a_consumer_holds_are_shown_with_its_own_bound() -> None:
    """Another consumer, of more partitions, has the largest bound of the lane."""
    assert "up to 500 B of records" in (told := sentence(fetch_limits(lane("captured", 0, 270, 500)), 6))
    assert "It can hold at most 8.0 MiB, unless one batch is larger than that" in told


def sessions(captured_refused: int, zero_harm: int, taken: int, at_most: int | None = None) -> Findings:
    c, s = SESSION_CACHE, SESSION_SLOTS
    own = {c.fetches: 100, c.created: 10, c.captured_created: 10, "live": 8, "cached": 40, "reread": 0}
    own |= {c.captured_refused: captured_refused}
    rows = [
        row_of(c).asDict() | own | {c.scenario: name, c.refused: refused, c.full_fetches: 10 + refused}
        for name, refused in (
            ("captured", captured_refused),
            ("broker.max.incremental.fetch.session.cache.slots=64", 0),
        )
    ]
    need = row_of(s, shards=8, zero_harm_slots=zero_harm, slots=taken, slots_at_most=at_most)
    return findings(
        {session_lanes: [Row(**row) for row in rows], slot_needs: [need]},
        {"session_cache": [row[c.scenario] for row in rows]},
    )


def test_too_few_slots_are_raised_to_the_number_that_harms_nobody() -> None:
    found = sessions(captured_refused=30, zero_harm=16, taken=8)
    assert sentence(found, 9).startswith(
        "From 16 slots (8 shards) per broker on, nobody in the capture is refused or evicted. As captured, 75.0 %"
    )


def lost_sessions(captured_refused: int, full: int, full_with_fewer_slots: int) -> Findings:
    c, x = SESSION_CACHE, EXCHANGES
    rows = [
        row_of(c).asDict()
        | {c.fetches: 100, "reread": 0, c.scenario: name, c.refused: refused, c.captured_refused: captured_refused}
        | {c.full_fetches: count}
        for name, refused, count in (
            ("captured", captured_refused, full),
            ("broker.max.incremental.fetch.session.cache.slots=8", 9, full_with_fewer_slots),
        )
    ]
    client = {x.client_id: "app", "fetches": 100, "not_found": 0, "full": full}
    return findings(
        {session_lanes: [Row(**row) for row in rows], fetching_clients: [Row(**client)],
         fetching_software: [Row(**client)]},
        {"session_cache": [row[c.scenario] for row in rows]},
    )  # fmt: skip


def test_full_fetches_are_not_for_lack_of_slots_if_only_fewer_slots_change_their_number() -> None:
    told = sentence(lost_sessions(captured_refused=0, full=35, full_with_fewer_slots=44), 8)
    assert told.endswith("35.0 % of all fetches were full ones, none of them for lack of slots.")


def test_lost_sessions_that_no_lane_avoids_are_not_called_harmless() -> None:
    told = sentence(lost_sessions(captured_refused=9, full=44, full_with_fewer_slots=44), 8)
    assert told.endswith("44.0 % of all fetches were full ones, which no replayed number of slots reduces.")


def test_full_fetches_that_the_replay_does_not_reproduce_are_not_called_inevitable() -> None:
    """The replay assumed 1,000 captured slots, and there were fewer."""
    rows = lost_sessions(captured_refused=9, full=44, full_with_fewer_slots=44).rows
    replayed = [
        Row(**(row.asDict() | {SESSION_CACHE.refused: 0, SESSION_CACHE.full_fetches: 1})) for row in rows[session_lanes]
    ]
    found = findings({**rows, session_lanes: replayed}, {"session_cache": [row.scenario for row in replayed]})
    assert sentence(found, 8).endswith(
        "44.0 % of all fetches were full ones, 1.0 % in the replay of the captured settings, which does not reproduce "
        "the captured refusals."
    )


def evicting(*counts: int) -> Findings:
    c, e = SESSION_CACHE, SESSION_EVICTIONS
    pairs = [
        one_of_one(Row(**{e.scenario: "captured", e.evictor: f"app-{n}", e.victim: "report", e.evictions: count}))
        for n, count in enumerate(counts)
    ]
    lane = row_of(c, scenario="captured", evicted=sum(counts))
    return findings({session_lanes: [lane], evictions_by_pair: pairs}, {"session_cache": ("captured",)})


def test_the_pair_with_most_evictions_is_named_and_pairs_with_as_many_are_counted() -> None:
    assert sentence(evicting(3, 1), 10).endswith(". Most often app-0 evicts report (3).")
    assert sentence(evicting(3, 3, 3, 1), 10).endswith(
        ". Most often app-0 evicts report (3, as often as 2 other pairs)."
    )


def test_captured_refusals_are_shown_if_the_replay_does_not_reproduce_them() -> None:
    found = sessions(captured_refused=30, zero_harm=16, taken=1000)
    rows = [Row(**(row.asDict() | {SESSION_CACHE.refused: 0})) for row in found.of(session_lanes)]
    other = findings({**found.rows, session_lanes: rows}, found.lanes)
    assert (
        ". As captured, 75.0 % of the full fetches that want a session are refused (0 % in the replay of the captured "
        "settings). In the replay 0 sessions are evicted"
    ) in sentence(other, 9)


def test_a_replay_without_evictions_is_shown_with_the_refusals_that_it_does_not_reproduce() -> None:
    found = sessions(captured_refused=30, zero_harm=16, taken=1000, at_most=15)
    rows = [Row(**(row.asDict() | {SESSION_CACHE.refused: 0})) for row in found.of(session_lanes)]
    other = findings({**found.rows, session_lanes: rows, evictions_by_pair: []}, found.lanes)
    assert sentence(other, 10).endswith("lane with the captured traffic, though the capture has 30 refusals.")


def test_slots_that_cannot_have_been_in_force_are_to_be_stated() -> None:
    found = sessions(captured_refused=30, zero_harm=16, taken=1000, at_most=15)
    assert sentence(found, 9).endswith(
        ". The capture allows 0 to 15 slots per broker. The replay took 1,000, which does not fit: state the number "
        "with --captured."
    )
    assert "--captured" not in sentence(sessions(captured_refused=30, zero_harm=16, taken=1000), 9)


def split_lane(name: str, rate: float, high: float | None = None) -> Row:
    counts = {
        "batches": 100,
        "rate_of": 80,
        "splits": int(100 * rate),
        "over": 0.0,
        "sent": 1 << 20,
        "resent": 0,
        "failed": 0,
    }
    told = {"recovery": 12.5, "size_error": 0.031}
    within = dict.fromkeys(("batches_range", "splits_range", "bytes_resent_range"), None)
    within["split_rate_range"] = Row(p10=rate, p90=rate if high is None else high)
    return Row(**{BATCH_SPLIT.scenario: name, "rate": rate, "fill": 0.5, **counts, **told, **within})


def test_the_safe_batch_size_is_the_largest_with_few_splits() -> None:
    names = ["captured", "producer.batch.size=16KiB", "producer.batch.size=30000", "producer.batch.size=64KiB"]
    rows = [split_lane(name, rate) for name, rate in zip(names, (0.09, 0.0, 0.005, 0.8), strict=True)]
    told = sentence(findings({split_lanes: rows}, {"batch_split": names}), 4)
    assert told.startswith(
        "Of those replayed, batch.size=30,000 is the largest with no more than 1 % of the batches split at whatever "
    )
    assert "With the captured settings the worst producer splits 9.0 % of its 80 batches to a topic" in told


def test_a_batch_size_that_may_split_more_at_another_pace_is_not_called_safe() -> None:
    names = ["captured", "producer.batch.size=16KiB", "producer.batch.size=30000"]
    rows = [split_lane("captured", 0.09, 0.12), split_lane(names[1], 0.001, 0.008), split_lane(names[2], 0.005, 0.03)]
    told = sentence(findings({split_lanes: rows}, {"batch_split": names}), 4)
    assert told.startswith("Of those replayed, batch.size=16,384 is the largest with no more than 1 %")
    assert (
        "split at whatever pace. The worst producer splits 0.10 % (0.10 to 0.80 %) of those to a topic. Batches" in told
    )
    assert "splits 9.0 % (9.0 to 12.0 %) of its 80 batches" in told
    assert dict(zip(HEAD, answer_row(rows[2]), strict=True))["split rate"] == "0.50 % (0.50 to 3.00 %)"


def test_a_batch_size_that_is_safe_only_with_another_setting_is_named_with_it() -> None:
    names = ["captured", *(f"producer.batch.size=64KiB,producer.compression.type={name}" for name in ("gzip", "zstd"))]
    rows = [split_lane(name, rate) for name, rate in zip(names, (0.09, 0.8, 0.0), strict=True)]
    found = findings({split_lanes: rows}, {"batch_split": names})
    assert "batch.size=65,536 with compression.type=zstd is the largest" in sentence(found, 4)


def test_refused_batches_that_the_replay_does_not_reproduce_are_in_the_answer() -> None:
    """batch.size was not the default, and nobody stated it."""
    names = ["captured", "producer.batch.size=16KiB"]
    rows: dict[Query, list[Row]] = {
        split_lanes: [split_lane(name, 0.0) for name in names],
        produced_codecs: [Row(refused=40)],
    }
    told = sentence(findings(rows, {"batch_split": names}), 4)
    assert "though the capture has 40 batches refused as too large: state the batch.size" in told
    rows[split_lanes] = [split_lane(name, 0.09) for name in names]
    assert "though the capture" not in sentence(findings(rows, {"batch_split": names}), 4)


def test_no_batch_size_is_called_safe_if_the_replay_lacks_the_refused_batches() -> None:
    """max.message.bytes was lowered while the capture was taken."""
    names = ["captured", "producer.batch.size=64KiB"]
    rows = [split_lane(name, 0.0) for name in names]
    found = findings({split_lanes: rows, produced_codecs: [Row(refused=40)]}, {"batch_split": names})
    assert sentence(found, 4).startswith("The replayed lanes show no safe batch.size: with the captured settings")
    (told, _) = safe_lines(rows, unlike=40)
    assert told.startswith("  no batch.size is called safe: brokers refused 40 batches")
    (told,) = safe_lines(rows, unlike=0)
    assert told.endswith("65,536 bytes")


def test_a_backlog_that_is_not_read_to_its_end_is_not_called_never_read() -> None:
    captured = Row(**(lane("captured", 0, 0, 500).asDict() | {"took": None, "never": True}))
    found = fetch_limits(captured, lane(LARGE, 0, 34, 900))
    assert "the slowest backlog is not read to its end. A consumer holds up to 500 B" in sentence(found, 6)


def test_a_catch_up_says_how_many_backlogs_it_leaves_out() -> None:
    captured = Row(**(lane("captured", 0, 30, 500).asDict() | {"given_up": 3}))
    told = sentence(fetch_limits(captured), 6)
    assert "read in 30 ms (without 3 backlogs that a consumer left before the end). A" in told


def test_a_batch_size_with_which_batches_fail_is_not_called_safe() -> None:
    names = ["captured", "producer.batch.size=64KiB"]
    rows = [split_lane("captured", 0.0), Row(**(split_lane(names[1], 0.0).asDict() | {"failed": 7}))]
    told = sentence(findings({split_lanes: rows}, {"batch_split": names}), 4)
    assert told.startswith(
        "None of those replayed: each splits more than 1 % of a producer's batches to a topic, or has"
    )


def test_a_lane_of_batches_has_the_figures_that_decide_on_it() -> None:
    """Split rate, P(batch > limit), time to recover, and the error of the sizes on which they rest."""
    row = split_lane("producer.batch.size=30000", 0.005)
    told = dict(zip(HEAD, answer_row(row), strict=True))
    assert (told["split rate"], told["> limit"], told["recovery"]) == ("0.50 %", "0.00 %", "12 ms")
    assert told["size error"] == "3.1 %"
    unknown = Row(**{**row.asDict(), "recovery": None, "size_error": None})
    assert answer_row(unknown)[HEAD.index("recovery")] == answer_row(unknown)[HEAD.index("size error")] == "-"


def test_producers_that_are_not_replayed_are_not_said_to_be_missing() -> None:
    for number in (4, 13):
        told = answer_question(findings(lanes={"batch_split": ("captured",)}), BY_NUMBER[number])
        assert told.sentence.startswith(
            "The capture shows no produce request of a Java client, and only the Java client's"
        )


def test_estimates_that_did_not_come_back_are_counted_among_those_that_are_examined() -> None:
    t, e = BATCH_SPLIT, BATCH_SPLIT_TIMELINE
    rows = [row_of(t, scenario="captured", topic="orders", recovery_ms_max=9.0, is_recovering=n < 3) for n in range(5)]
    spans = [row_of(e, topic="orders", estimated_ratio=0.9, observed_ratio=0.5)]
    for in_all, told in ((5, "3 estimates of 5 had"), (90, "3 estimates of the 5 that split most had")):
        asked: dict[Query, list[Row]] = {
            splitting_producers: [one_of_one(row, in_all) for row in rows],
            worst_estimates: spans,
        }
        assert told in sentence(findings(asked, {"batch_split": ("captured",)}), 13)


def test_a_lane_with_a_batch_size_of_0_has_no_fill() -> None:
    names = ["captured", "producer.batch.size=0"]
    rows = [split_lane("captured", 0.0), Row(**(split_lane(names[1], 0.0).asDict() | {"fill": None, "over": None}))]
    told = dict(zip(HEAD, answer_row(rows[1]), strict=True))
    assert (told["fill"], told["> limit"]) == ("-", "-")
    assert sentence(findings({split_lanes: rows}, {"batch_split": names}), 4)


def test_each_reason_for_leaving_plots_out_is_given_once() -> None:
    found = fetch_limits(lane("captured", 0.0, 300.0, 1 << 20))
    assert [figure.why_not for figure in question_part(found, BY_NUMBER[6]).figures] == [NO_LAG, NO_OTHER_LIMITS]


def test_a_table_without_rows_is_left_out() -> None:
    assert question_part(evicting(), BY_NUMBER[10]).grid is None
    assert question_part(evicting(1), BY_NUMBER[10]).grid is not None


def test_an_answer_says_how_far_its_replay_agrees_and_what_is_unknown() -> None:
    assert trust_line(findings(), BY_NUMBER[11]) == "fetches with records (consumer) 99.50 % of 200 and 3 unknown"


def test_the_screen_has_each_question_with_its_answer_and_one_paragraph_for_questions_with_the_same_reason() -> None:
    lines = [*reply_lines(answer_questions(findings()))]
    assert lines[0] == "  20  Can I trust this for my broker version and my capture?"
    assert lines[1].startswith("      0 % of the bytes")
    (splits,) = [line for line in lines if "not answered: 4, 13 " in line]
    assert "batch_split" in splits
    assert max(map(len, lines)) <= 120
