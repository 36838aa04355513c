"""What the capture alone answers: refusals of batches, sizes of fetches, followers, client versions, shards."""

from __future__ import annotations

from pyspark.sql import Row

from jobs.replays.fetch_max_bytes.answers import open_lanes
from jobs.replays.session_cache.answers import lanes
from jobs.report_page.batch_split.refused_batches import checks_table
from jobs.report_page.questions import QUESTIONS, answer_question
from jobs.report_page.session_cache.sessions import shards_by_broker, shards_in_captured_lane
from jobs.report_page.traffic import (
    bin_start,
    cut_produce_requests,
    fetches_by_reader,
    fetching_consumers,
    fetching_software,
    produced_codecs,
    produced_topics,
)
from schemas.tables import algorithms
from schemas.tables.gold_sessions import SESSION_CACHE
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from tests.unit.report.findings import findings

BY_NUMBER = {question.number: question for question in QUESTIONS}


def sent(codec: str, refused: int, answered: int = 90) -> Row:
    sums = {"batches": 90, "refused": refused, "largest_taken": 39_000, "largest_taken_uncompressed": 51_200}
    more = {
        "answered": answered,
        "smallest_refused": 40_960 if refused else None,
        "bytes": 1 << 20,
        "uncompressed": 2 << 20,
    }
    b = RECORD_BATCHES
    return Row(**{b.codec: codec, b.topic: "orders", b.client_id: "billing", **sums, **more})


def software(name: str, version: str, full: int) -> Row:
    x = EXCHANGES
    return Row(
        **{x.client_software_name: name, x.client_software_version: version},
        fetches=100,
        full=full,
        sessions=full // 2,
        not_found=full // 10,
        oldest=12,
        newest=17,
    )


def reader(name: str, fetches: int, sessions: int, cut: int = 0, beyond: int = 0) -> Row:
    return Row(
        reader=name, fetches=fetches, empty=fetches // 2, beyond=beyond, bytes=fetches << 10, sessions=sessions,
        oldest=12, cut=cut,
    )  # fmt: skip


def test_the_bytes_thrown_away_are_those_of_the_replay_of_the_captured_limits() -> None:
    rows = [Row(scenario="captured", reader="consumer", bytes=6 << 20, cut=3 << 20)]
    told = answer_question(
        findings({open_lanes: rows}, {algorithms.FETCH_MAX_BYTES: ("captured",)}), BY_NUMBER[17]
    ).sentence
    assert told == (
        "Replayed with the captured limits, 50.0 % of the 6.0 MiB of records that consumers get are tails of cut "
        "batches. These 3.0 MiB are thrown away and fetched again."
    )


def test_refused_batches_are_counted_with_their_client_and_topic() -> None:
    rows = [sent("lz4", 10)]
    told = answer_question(findings({produced_codecs: rows, produced_topics: rows}), BY_NUMBER[2]).sentence
    assert told.startswith(
        "Brokers refused 10 of 90 produced batches, of 40.0 KiB or more. Most are from billing to orders (10 of 90)"
    )


def test_if_nothing_was_refused_the_answer_says_so() -> None:
    told = answer_question(findings({produced_codecs: [sent("lz4", 0)]}), BY_NUMBER[2]).sentence
    assert (
        told == "It does not happen here: of 90 produced batches, up to 38.1 KiB large, none was refused as too large."
    )


def test_the_answer_that_no_batch_was_refused_counts_those_that_were_answered() -> None:
    """A request with acks=0 has no answer."""
    rows = [sent("lz4", 0, answered=0), sent("none", 0, answered=80)]
    told = answer_question(findings({produced_codecs: rows}), BY_NUMBER[2])
    assert told.sentence == (
        "It does not happen here: of 180 produced batches, 80 of them answered, up to 38.1 KiB large, none was refused "
        "as too large."
    )
    assert checks_table(findings({produced_codecs: rows})).rows[1][3] == "80 batches within, 0 above"
    assert not answer_question(findings({produced_codecs: rows[:1]}), BY_NUMBER[2]).is_answered


def test_that_no_batch_was_refused_does_not_count_requests_that_the_capture_cuts() -> None:
    found = findings({produced_codecs: [sent("lz4", 0)], cut_produce_requests: [Row(cut=9)]})
    assert answer_question(found, BY_NUMBER[2]).sentence == (
        "Of 90 produced batches, up to 38.1 KiB large, none was refused as too large. The capture cuts 9 more produce "
        "requests, whose batches do not count."
    )
    only_cut = answer_question(findings({cut_produce_requests: [Row(cut=9)]}), BY_NUMBER[2])
    assert not only_cut.is_answered
    assert only_cut.sentence == "The capture cuts all produce requests: capture whole packets (`tcpdump -s 0`)."


def test_a_larger_batch_that_was_taken_shows_that_the_limit_counts_compressed_bytes() -> None:
    codecs = [sent("lz4", 10), sent("none", 0)]
    told = answer_question(findings({produced_codecs: codecs, produced_topics: codecs}), BY_NUMBER[5]).sentence
    assert "90 of 180 produced batches here are compressed" in told
    assert "Of those to orders one with 50.0 KiB uncompressed was accepted. One of 40.0 KiB on the wire was" in told


def test_one_batch_is_in_the_singular_and_several_are_in_the_plural() -> None:
    def told(batches: int, codec: str = "lz4") -> str:
        rows = [Row(**(sent(codec, 0).asDict() | {"batches": batches}))]
        return answer_question(findings({produced_codecs: rows, produced_topics: rows}), BY_NUMBER[5]).sentence

    assert ". 0 of 1 produced batch here is compressed" in told(1, "none")
    assert ". 1 of 1 produced batch here is compressed" in told(1)
    assert ". 2 of 2 produced batches here are compressed" in told(2)


def test_batches_of_two_topics_are_not_compared_for_each_may_have_its_own_limit() -> None:
    b, refused, taken = RECORD_BATCHES, sent("lz4", 10), sent("lz4", 0)
    small = Row(**(refused.asDict() | {b.topic: "small", "largest_taken_uncompressed": 100}))
    told = answer_question(
        findings({produced_codecs: [refused], produced_topics: [small, taken]}), BY_NUMBER[5]
    ).sentence
    assert told.endswith("90 of 90 produced batches here are compressed.")


def test_small_fetches_are_shown_per_mib_and_by_their_fill() -> None:
    f = FETCH_PARTITIONS
    asks = {f.client_id: "billing", "median": 1 << 18, f.max_bytes: 1 << 20}
    found = findings({fetches_by_reader: [reader("consumer", 2048, 3)], fetching_consumers: [Row(**asks)]})
    assert answer_question(found, BY_NUMBER[16]).sentence == (
        "Consumers got 2,048 fetches answered, with 2.0 MiB of records, 1,024 per MiB. 50.0 % came back empty. For "
        "billing, which sent most, half of the responses with records have 256.0 KiB or less, 25.0 % of its "
        "fetch.max.bytes."
    )


def test_consumers_whose_partitions_are_not_known_have_their_fetches_counted() -> None:
    found = findings({fetches_by_reader: [reader("consumer", 2048, 3)], fetching_consumers: []})
    assert answer_question(found, BY_NUMBER[16]).sentence.endswith("1,024 per MiB. 50.0 % came back empty.")


def test_consumers_that_a_new_leader_answers_at_once_have_a_sentence_unless_they_are_few() -> None:
    def told(beyond: int) -> str:
        found = findings({fetches_by_reader: [reader("consumer", 2048, 3, beyond=beyond)], fetching_consumers: []})
        return answer_question(found, BY_NUMBER[16]).sentence

    assert told(1000).endswith(
        "50.0 % came back empty. 1,000 of the empty ones asked for records beyond the high watermark of a new leader: "
        "it answers at once, and the consumer asks again, until the followers have caught up."
    )
    assert told(20).endswith("50.0 % came back empty.")


def test_responses_that_the_capture_cuts_are_not_called_empty() -> None:
    found = findings({fetches_by_reader: [reader("consumer", 2048, 3, cut=9)], fetching_consumers: []})
    told = answer_question(found, BY_NUMBER[16]).sentence
    assert told.endswith("50.0 % came back empty. The capture cuts 9 more responses, which do not count.")
    one = findings({fetches_by_reader: [reader("consumer", 2048, 3, cut=1)], fetching_consumers: []})
    assert answer_question(one, BY_NUMBER[16]).sentence.endswith("cuts 1 more response, which does not count.")
    only_cut = answer_question(findings({fetches_by_reader: [reader("consumer", 0, 0, cut=9)]}), BY_NUMBER[16])
    assert not only_cut.is_answered
    assert only_cut.sentence == "The capture cuts all responses to fetches: capture whole packets (`tcpdump -s 0`)."


def test_batches_that_would_be_larger_than_other_limits_have_a_whole_sentence() -> None:
    rows = [
        Row(scenario=lane, reader="consumer", bytes=1, cut=0, overrides=count)
        for lane, count in (("captured", 0), ("consumer.fetch.max.bytes=1KiB", 51))
    ]
    found = findings(
        {open_lanes: rows, fetches_by_reader: [reader("consumer", 9, 1)]},
        {algorithms.FETCH_MAX_BYTES: [row.scenario for row in rows]},
    )
    assert (
        ". Here no fetch got a batch larger than the captured limits. 51 fetches would get one with "
        "fetch.max.bytes=1 KiB." in answer_question(found, BY_NUMBER[11]).sentence
    )


def test_followers_have_their_share_of_fetches_and_sessions() -> None:
    found = findings({fetches_by_reader: [reader("consumer", 300, 3), reader("follower", 100, 1)]})
    told = answer_question(found, BY_NUMBER[19]).sentence
    assert told.startswith(
        "Followers sent 25.0 % of the answered fetches. They got 25.0 % of the record bytes (100.0 KiB)"
    )
    assert "opened 25.0 % of the fetch sessions (1)" in told
    only_cut = answer_question(findings({fetches_by_reader: [reader("follower", 0, 0, cut=1)]}), BY_NUMBER[19])
    assert not only_cut.is_answered


def test_versions_of_clients_are_compared_where_there_are_two() -> None:
    rows = [software("java", "4.3.1", 2), software("java", "3.9.0", 50)]
    told = answer_question(findings({fetching_software: rows}), BY_NUMBER[18])
    assert told.is_answered
    assert told.sentence == (
        "Fetches of java come from 2 versions. Of java 4.3.1 (Fetch 12 to 17) 2.0 % are full, in 1 session with 0 not "
        "found. Of java 3.9.0 (Fetch 12 to 17) 50.0 % are full, in 25 sessions with 5 not found."
    )


def test_a_version_with_a_few_fetches_is_left_out_and_counted() -> None:
    once = Row(**{**software("java", "2.8.2", 1).asDict(), "fetches": 1})
    rows = [software("java", "4.3.1", 2), software("java", "3.9.0", 50), once]
    told = answer_question(findings({fetching_software: rows}), BY_NUMBER[18]).sentence
    assert told.startswith("Fetches of java come from 3 versions, 1 of them with fewer than 10. Of java 4.3.1 ")
    assert "2.8.2" not in told
    alone = answer_question(findings({fetching_software: [software("java", "4.3.1", 2), once]}), BY_NUMBER[18])
    assert not alone.is_answered
    assert alone.sentence.startswith(
        "Fetches of java come from 2 versions, 1 of them with fewer than 10: too few to compare."
    )


def test_one_version_alone_is_nothing_to_compare() -> None:
    told = answer_question(findings({fetching_software: [software("java", "4.3.1", 2)]}), BY_NUMBER[18])
    assert not told.is_answered
    assert told.sentence.startswith("No client fetches with two versions here (java 4.3.1): capture before and after")


def test_two_clients_are_not_two_versions_of_one_client() -> None:
    rows = [software("java", "4.3.1", 2), software("python", "3.0.12", 50)]
    told = answer_question(findings({fetching_software: rows}), BY_NUMBER[18])
    assert not told.is_answered
    assert "(java 4.3.1, python 3.0.12)" in told.sentence
    unnamed = answer_question(findings({fetching_software: [software("", "", 2), software("", "1", 2)]}), BY_NUMBER[18])
    assert "(none names its software)" in unnamed.sentence


def test_refusals_and_evictions_while_another_shard_has_room_are_counted() -> None:
    counts = {"refused": 7, "refused_despite_room": 5, "evicted": 3, "evicted_despite_room": 1}
    of_shards = [Row(broker="1", shard=i, each=2, most=2 - i, **counts) for i in (0, 1)]
    told = answer_question(
        findings({shards_in_captured_lane: of_shards}, {"session_cache": ("captured",)}), BY_NUMBER[14]
    ).sentence
    assert "spread over 2 shards of 2 each" in told
    assert told.endswith(
        ". With the captured settings, 5 of 7 refusals and 1 of 3 evictions happen while another of the broker's "
        "shards has a free slot."
    )


def test_that_nobody_was_refused_does_not_say_that_no_shard_was_full() -> None:
    counts = dict.fromkeys(("refused", "refused_despite_room", "evicted", "evicted_despite_room"), 0)
    of_shards = [Row(broker="1", shard=i, each=2, most=2, **counts) for i in (0, 1)]
    told = answer_question(
        findings({shards_in_captured_lane: of_shards}, {"session_cache": ("captured",)}), BY_NUMBER[14]
    ).sentence
    assert told.endswith("whose turn it was. With the captured settings nobody is refused or evicted.")
    c = SESSION_CACHE
    lane = {c.scenario: "captured", c.refused: 0, c.captured_refused: 1892}
    other = findings({shards_in_captured_lane: of_shards, lanes: [Row(**lane)]}, {"session_cache": ("captured",)})
    assert answer_question(other, BY_NUMBER[14]).sentence.endswith(
        "nobody is refused or evicted, though the capture has 1,892 refusals."
    )


def test_of_many_brokers_those_that_refuse_most_are_plotted() -> None:
    of_shards = [
        Row(broker=str(broker), shard=shard, each=2, most=1, refused=broker, evicted=0)
        for broker in range(100)
        for shard in (0, 1)
    ]
    plot = shards_by_broker(findings({shards_in_captured_lane: of_shards}, {"session_cache": ("captured",)}))
    assert plot.says.endswith(", of 20 of 100 brokers")
    assert {str(row["broker"]) for row in plot.rows} == {f"broker {broker}" for broker in range(80, 100)}


def test_sizes_have_two_bins_per_doubling() -> None:
    assert [bin_start(number) for number in (0, 2, 20)] == [1.0, 2.0, 1024.0]
    assert round(bin_start(21) / bin_start(20), 9) == round(2**0.5, 9)
