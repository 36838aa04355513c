"""Question 20: which semantics were replayed, and how far the replay agrees with the capture."""

from __future__ import annotations

from pyspark.sql import Row

from jobs.captures.log_agreement import REQUEST
from jobs.captures.packets_needed import lacks_packets
from jobs.report_page.capture_contents import agreement_by_field as clocks
from jobs.report_page.capture_contents import (
    captured_files,
    connections_by_protocol,
    log_zones,
    lost_lines,
    quality_row,
    read_lines,
    requests_by_api,
)
from jobs.report_page.findings import KnownRun
from jobs.report_page.other_brokers import RULES, WHOSE, other_broker_lines, other_brokers_text
from jobs.report_page.page import quality_tiles
from jobs.report_page.question import Findings
from jobs.report_page.questions import answer_questions
from jobs.report_page.semantics import semantics_text
from jobs.report_page.trust import fidelity_by_reason, glossary, semantics_table, trust_answer
from schemas.tables.fetch_reasons import CLOSED_FETCHES, OPEN_FETCHES
from schemas.tables.gold import RUNS
from schemas.tables.silver import CAPTURES
from schemas.tables.silver_quality import CAPTURE_QUALITY, LOG_AGREEMENT
from schemas.wire.vendors import AUTOMQ, CONFLUENT, OTHER, OWN_KEYS
from tests.unit.report.findings import agreement, findings, one_of_one, row_of
from udfs.capture.request_log_head import REQUEST_LOG

WHOSE_TURN = (AUTOMQ, CONFLUENT)
LANES = {
    "fetch_max_bytes": ("captured", "profile=librdkafka"),
    "batch_split": ("captured",),
    "consumer_memory": ("captured",),
}


def run(assumed: list[str], captured: str) -> KnownRun:
    row: Row = row_of(RUNS, assumed=assumed, scenario_json=f'{{"captured": {captured}}}')
    return KnownRun((row,), ())


def test_the_answer_names_the_release_and_how_it_is_known() -> None:
    assert ". Replayed as Kafka 4.3, from the API versions that brokers offer." in trust_answer(findings())


def test_requests_alone_answer_nothing_and_are_not_called_complete() -> None:
    one_way = findings({requests_by_api: [Row(api_name=name, count=5, answered=0) for name in ("FETCH", "PRODUCE")]})
    assert trust_answer(one_way).startswith(
        "No: the capture shows requests, and no response of a broker to any: capture"
    )
    assert {
        told.sentence for told in answer_questions(one_way) if not told.is_answered and "no response" in told.sentence
    } == {"The capture shows requests, and no response of a broker to any: capture both directions of connections."}
    assert [told.question.number for told in answer_questions(one_way) if told.is_answered] == [20]


def of_request_logs() -> Findings:
    log = row_of(CAPTURES, path="/logs/requests.log", format=REQUEST_LOG, log_lines=9)
    return findings({captured_files: [one_of_one(log)], fidelity_by_reason: []})


def test_for_request_logs_it_is_unknown_which_traffic_is_missing() -> None:
    told = of_request_logs()
    assert trust_answer(told).startswith("Request logs do not show what traffic is missing. ")
    assert "  Request logs do not show what traffic is missing" in lost_lines(told)
    assert [tile.number for tile in quality_tiles(told)][:2] == ["7", "unknown"]
    assert trust_answer(findings()).startswith("0 % of the bytes on these connections are missing from the capture. ")


def test_for_request_logs_no_replay_that_needs_packets_is_suggested() -> None:
    sentences = {told.question.number: told.sentence for told in answer_questions(of_request_logs())}
    assert sentences[4] == lacks_packets("batch_split")
    assert "--set=max.incremental.fetch.session.cache.slots" in sentences[8]


def test_a_capture_of_responses_alone_says_that_requests_may_be_missing() -> None:
    row = Row(protocol="other", connections=80, doubled_packets=0, one_sided=79)
    one_way = findings({requests_by_api: [], connections_by_protocol: [row]})
    hint = (
        "of 79 connections only one side was captured; if they are Kafka's, capture both directions, because "
        "responses are recognised by their requests"
    )
    assert f"  {hint}" in lost_lines(one_way)
    assert trust_answer(one_way).startswith(f"No: the capture shows no request; {hint}; ")
    assert f"The capture shows no request; {hint}." in {told.sentence for told in answer_questions(one_way)}


def nothing_of_kafka(files: int, packets: int, *protocols: tuple[str, int], **values: str) -> Findings:
    """A capture without exchanges."""
    rows = [Row(protocol=name, connections=n, doubled_packets=0, one_sided=0) for name, n in protocols]
    held = one_of_one(row_of(CAPTURES, path="/captures/a.pcap", packets=packets, **values), files)
    return findings(
        {captured_files: [held], requests_by_api: [], connections_by_protocol: rows, fidelity_by_reason: []}
    )


def test_a_capture_without_kafkas_traffic_answers_nothing_and_says_what_it_holds() -> None:
    empty = nothing_of_kafka(1, 0)
    told = (
        "No Kafka traffic was found in a.pcap (0 packets; connections: none): check that the brokers' port and "
        "interface were captured, both directions of connections, and whole packets (`tcpdump -s 0`)."
    )
    assert {(one.sentence, one.is_answered) for one in answer_questions(empty)} == {(told, False)}
    assert f"  {told}" in lost_lines(empty)


def test_for_a_dump_without_kafkas_traffic_no_tcpdump_is_suggested() -> None:
    told = answer_questions(nothing_of_kafka(1, 240, format="parquet"))[19].sentence
    assert told.startswith("No Kafka traffic was found in a.pcap (240 frames; connections: none): check its rows ")
    assert "tcpdump" not in told


def test_for_tls_only_a_plaintext_listener_is_suggested() -> None:
    told = answer_questions(nothing_of_kafka(3, 1200, ("other", 2), ("tls", 5)))[19].sentence
    assert told.startswith(
        "No Kafka traffic was found in 3 files (1,200 packets in the first 1; connections: 2 other, 5"
    )
    assert told.endswith(", and that the listener is a plaintext one, for TLS is not decrypted.")


def test_a_kafka_connection_without_an_exchange_is_kafkas_traffic() -> None:
    assert not any("No Kafka traffic" in line for line in lost_lines(nothing_of_kafka(1, 9, ("kafka", 1))))


def test_one_sided_connections_beside_exchanges_are_shown_and_do_not_change_the_answer() -> None:
    rows = [
        Row(protocol=name, connections=9, doubled_packets=0, one_sided=n) for name, n in (("kafka", 0), ("other", 1))
    ]
    beside = findings({connections_by_protocol: rows})
    assert any(line.startswith("  of 1 connection only one side was captured") for line in lost_lines(beside))
    assert not trust_answer(beside).startswith("No")


def told_of(*counts: tuple[int, int]) -> str:
    """What the answer says about comparisons. counts: (checked, equal) of each."""
    rows = [
        agreement("fetch_max_bytes", "consumer", f"metric_{number}", checked, agreed)
        for number, (checked, agreed) in enumerate(counts)
    ]
    return trust_answer(findings({fidelity_by_reason: rows})).partition(" could not be checked")[2]


def test_brokers_without_a_node_id_are_listed() -> None:
    """Three of them are listed with the reason. The table has the others."""
    reasons = [f"10.0.0.{n}:9999: Nothing tells." for n in range(4)]
    row = row_of(CAPTURE_QUALITY, unnamed_connections=7, unnamed_brokers=reasons)
    told = list(lost_lines(findings({quality_row: [row]})))
    first = next(n for n, line in enumerate(told) if "7 connections to brokers whose node id is not known" in line)
    more = "    ... and others, which silver/capture_quality has"
    assert told[first + 1 : first + 5] == [*(f"    {reason}" for reason in reasons[:3]), more]
    assert not any("node id" in line for line in lost_lines(findings()))


def test_brokers_that_are_not_apache_kafkas_are_shown_with_the_rules_that_do_not_hold() -> None:
    row = row_of(CAPTURE_QUALITY, other_brokers=["1: redpanda", "10.0.0.9:9092: redpanda"])
    found = findings({quality_row: [row]})
    told = [line for line in lost_lines(found) if "Redpanda" in line]
    are = "2 brokers are Redpanda's by the API versions offered, and the replays follow Apache Kafka's rules"
    assert told[0] == f"  {are}"
    assert [line.partition(",")[0] for line in told[1:]] == [
        "    Redpanda shares kafka_max_bytes_per_fetch", "    Redpanda has no slots for sessions: none evicts another",
    ]  # fmt: skip
    assert trust_answer(found).startswith(f"With care: {are}. 0 % of the bytes on these connections are missing")
    assert not any("Apache" in line for line in lost_lines(findings()))
    assert not trust_answer(findings()).startswith("With care")


def test_one_broker_of_an_unknown_vendor_is_shown_and_so_are_many() -> None:
    one = row_of(CAPTURE_QUALITY, other_brokers=["1: other"])
    assert other_brokers_text(one).startswith("1 broker is not Apache Kafka's by the API versions offered")
    assert len(list(other_broker_lines(one))) == 1
    many = row_of(CAPTURE_QUALITY, other_brokers=[f"{n}: {WHOSE_TURN[n % 2]}" for n in range(20)])
    assert other_brokers_text(many).startswith("20 brokers or more are AutoMQ's and Confluent's by")
    assert not other_brokers_text(row_of(CAPTURE_QUALITY, other_brokers=None))


def test_every_sentence_on_other_brokers_is_short() -> None:
    assert set(RULES) <= set(WHOSE)
    assert {OTHER, *(own.vendor for own in OWN_KEYS)} == set(WHOSE)
    rules = [rule for of in RULES.values() for rule in of.values()]
    assert max(len(text.split()) for text in (other_brokers_text(row_of(CAPTURE_QUALITY, other_brokers=[
        "1: automq", "2: redpanda"])), *rules)) <= 25  # fmt: skip


def test_the_comparison_that_agrees_least_is_named_and_those_of_few_cases_are_only_counted() -> None:
    told = told_of((200, 199), (10, 9), (9, 0), (1, 0), (0, 0))
    left_out = "2 comparisons of fewer than 10 cases left out"
    assert told == f". Agreement is lowest for metric 1 (consumer), 90.00 % of 10, {left_out}."
    assert told_of((200, 199), (10, 9)) == ". Agreement is lowest for metric 1 (consumer), 90.00 % of 10."


def test_if_only_comparisons_of_few_cases_differ_none_is_named() -> None:
    assert told_of((200, 200), (1, 0)) == ". All differences are in comparisons of fewer than 10 cases."
    assert told_of((200, 200), (1, 1)) == "."


def test_stated_settings_are_distinguished_from_assumed_ones() -> None:
    known = run(
        ["linger.ms", "kafka: 4.3, from the API versions that brokers offer"],
        '{"broker.fetch.max.bytes": 57671680, "topic.a.max.message.bytes": 1048576, "linger.ms": 5, "kafka": "4.3"}',
    )
    assert known.stated == ["broker.fetch.max.bytes=55MiB", "topic.a.max.message.bytes=1MiB"]


def test_a_dump_has_frames_and_not_packets() -> None:
    dump = row_of(CAPTURES, path="/captures/a.parquet", format="parquet", packets=9, tcp_captured_bytes=2048)
    assert "  /captures/a.parquet: 9 frames of a dump, 2.0 KiB" in [
        *read_lines(findings({captured_files: [one_of_one(dump)]}))
    ]


def test_rows_of_a_dump_that_are_left_out_are_counted() -> None:
    dump = row_of(CAPTURES, path="a", format="arrow", packets=1240, malformed_packets=1001, tcp_captured_bytes=9)
    assert next(iter(read_lines(findings({captured_files: [one_of_one(dump)]})))) == (
        "  a: 1,240 frames of a dump, 1,001 of them left out, 9 B"
    )


def test_a_release_is_stated_or_shown_by_the_capture_or_the_newest() -> None:
    assert run([], '{"kafka": "3.7"}').kafka == "3.7, as stated"
    assert run(["kafka: 3.9, from what followers say of themselves"], "{}").kafka == (
        "3.9, from what followers say of themselves"
    )
    assert run(["kafka"], "{}").kafka.endswith(", the newest supported, because the capture shows none")


def test_each_replay_names_the_semantics_that_it_follows_and_those_that_lanes_try() -> None:
    found = findings(lanes=LANES)
    assert semantics_text(found, "fetch_max_bytes") == (
        "kafka=4.3; profile of the captured client software, beside librdkafka"
    )
    assert semantics_text(found, "batch_split") == "kafka=4.3; split.profile=today"
    assert semantics_text(found, "consumer_memory") == "memory.pool=non_strict; memory.variant=memory_pool"


def test_the_table_has_a_row_for_each_replay_with_its_agreement() -> None:
    rows = {row[0]: row[2:] for row in semantics_table(findings(lanes=LANES)).rows}
    assert rows["fetch_max_bytes"] == ["200", "99.50 %", "3"]
    assert rows["batch_split"] == ["0", "-", "0"]


def test_the_glossary_has_the_reasons_of_the_run_each_with_the_meaning_for_its_metric() -> None:
    given = [
        agreement("fetch_max_bytes", "consumer", "fetches_with_records", 9, 8, 0, "fewer_bytes"),
        agreement("fetch_max_bytes", "follower", "empty_fetches", 9, 8, 0, "fewer_bytes"),
        agreement("fetch_max_bytes", "follower", "closed_loop_bytes", 9, 8, 0, "fewer_bytes"),
        agreement("fetch_max_bytes", "follower", "empty_fetches", 9, 8, 1, "no_response"),
        agreement("fetch_max_bytes", "follower", "closed_loop_requests", 9, 9),
    ]
    told = [(term.word, term.reason) for term in glossary(findings({fidelity_by_reason: given}))]
    assert told == [
        ("fewer_bytes", CLOSED_FETCHES.words["fewer_bytes"]),
        ("fewer_bytes", OPEN_FETCHES.words["fewer_bytes"]),
        ("no_response", OPEN_FETCHES.words["no_response"]),
    ]


def test_a_reason_of_another_version_is_left_out_of_the_glossary() -> None:
    given = [agreement("fetch_max_bytes", "consumer", "empty_fetches", 9, 8, 0, "of_another_version")]
    assert glossary(findings({fidelity_by_reason: given})) == []


def test_a_log_whose_clock_is_far_off_is_shown_with_its_files_the_zone_taken_and_the_flag() -> None:
    a, hours_apart = LOG_AGREEMENT, 2 * 3_600_000_000
    logged = row_of(a, field=REQUEST, in_both=9, log_behind_us=hours_apart)
    zone = Row(zone="Europe/Berlin", files=4, paths=["/logs/a.log", "/logs/b.log.gz", "s3://logs/c.log"])
    *_, told = lost_lines(findings({clocks: [logged], log_zones: [zone]}))
    assert told == (
        "  a request log's clock is +7,200 s from that of the packets; times without an offset in a.log, b.log.gz, "
        "c.log, 1 more are read in the zone Europe/Berlin, unless --log-zone states another"
    )


def test_a_log_whose_clock_is_near_needs_no_zone() -> None:
    logged = row_of(LOG_AGREEMENT, field=REQUEST, in_both=9, log_behind_us=5_000)
    assert not any("zone" in line for line in lost_lines(findings({clocks: [logged]})))
