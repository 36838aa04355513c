"""The first screen: whether to trust a run, what to change, what to keep, and what was not answered."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from pyspark.sql import Row

from jobs.find.scopes import Scope
from jobs.report_page.advice.aims import aim_settings
from jobs.report_page.advice.floors import metrics_below_floor
from jobs.report_page.advice.recommendation import Confidence, Effect, InForce, Recommendation
from jobs.report_page.advice.withheld import unstated_settings
from jobs.report_page.capture_contents import captured_files, quality_row
from jobs.report_page.fetch_max_bytes.throttles import throttled_clients
from jobs.report_page.question import Findings
from jobs.report_page.refusals import gate_refusals
from jobs.report_page.verdict import first_screen, repeat_command, repeat_lines
from jobs.scenarios.settings import settings
from schemas.tables.algorithms import FETCH_MAX_BYTES as FETCH_LIMITS
from schemas.tables.gold_aims import AIM_SETTINGS
from schemas.tables.gold_gates import GATE_RESULTS
from schemas.tables.silver import CAPTURES
from schemas.tables.silver_quality import CAPTURE_QUALITY
from tests.unit.report.findings import findings, known, one_of_one, row_of, verdict
from udfs.capture.request_log_head import REQUEST_LOG

FETCH = "consumer.fetch.max.bytes"
CHANGED = Recommendation(
    "fetch_max_bytes", Scope("client", "app"), FETCH, "change", InForce("200000", "captured"), str(1 << 20),
    Confidence(50, 49, 2), "The limits, and not the data, make partitions wait.",
    Effect("5 partitions wait up to 224 ms -> none", "longest_wait_ms", 224.0, 0.0),
    Effect("memory 1.4 MiB -> 1.6 MiB", "held_bytes", 1.0, 2.0),
)  # fmt: skip


def screen(found: Findings, *made: Recommendation) -> list[str]:
    return first_screen("/lake", verdict(found, *made))


def test_a_change_has_the_value_in_force_and_a_better_one_gain_cost_and_how_sure_that_is() -> None:
    head, trust, *lines = screen(findings(), CHANGED)
    assert head == "refetch  a.pcap  7 exchanges  Kafka 4.3"
    assert trust == "TRUST     ok: 99.50 % of 200 results that could be checked equal the capture; 3 unknown"
    assert lines[:5] == [
        "CHANGE    fetch.max.bytes            app  195 KiB (captured) -> 1 MiB",
        "          why   5 partitions wait up to 224 ms -> none",
        "          cost  memory 1.4 MiB -> 1.6 MiB",
        "          sure  49 of 50 results equal the capture, 2 unknown",
        "          set   fetch.max.bytes=1048576 in the configuration of this consumer, read when it starts",
    ]


def test_a_change_that_costs_nothing_has_no_line_for_its_cost() -> None:
    lines = screen(findings(), replace(CHANGED, cost=Effect()))
    assert [line.split()[0] for line in lines[2:5]] == ["CHANGE", "why", "sure"]


def test_clients_for_which_a_change_is_the_same_are_shown_together() -> None:
    others = [replace(CHANGED, scope=Scope("client", f"app-{n}")) for n in range(2)]
    (line,) = [line for line in screen(findings(), CHANGED, *others) if line.startswith("CHANGE")]
    assert "app and 2 more clients" in line


def test_topics_of_a_limit_are_not_counted_among_clients() -> None:
    limits = [replace(CHANGED, scope=Scope("limit", size)) for size in ("2500", "4096")]
    lines = [line for line in screen(findings(), CHANGED, *limits) if line.startswith("CHANGE")]
    assert [line.split("  ")[-2] for line in lines] == ["app", "topics of max.message.bytes=2500 B and 1 more limit"]


def test_a_value_to_set_has_all_its_bytes() -> None:
    (line,) = [line for line in screen(findings(), replace(CHANGED, recommended="1408")) if line.startswith("CHANGE")]
    assert line.endswith("195 KiB (captured) -> 1408 B")


def test_a_setting_that_is_kept_shows_the_value_that_would_have_done() -> None:
    slots = "broker.max.incremental.fetch.session.cache.slots"
    kept = replace(
        CHANGED, verdict="keep", setting=slots, scope=Scope(), now=InForce("1000", "default"), enough="8",
        gain=Effect(), cost=Effect(),
    )  # fmt: skip
    (line,) = [line for line in screen(findings(), kept) if line.startswith("KEEP")]
    assert line.endswith("max.incremental.fetch.session.cache.slots  brokers  1,000 (default); 8 would be enough")


def test_no_value_would_have_done_for_several_clients_if_it_is_unknown_for_one() -> None:
    enough = {"app": "65536", "other": None}
    kept = [
        replace(CHANGED, verdict="keep", scope=Scope("client", client), enough=value, gain=Effect(), cost=Effect())
        for client, value in enough.items()
    ]
    (line,) = [line for line in screen(findings(), *kept) if line.startswith("KEEP")]
    assert line.endswith("app and 1 more client  195 KiB (captured)")


def test_a_refused_run_says_so_first() -> None:
    refused = row_of(GATE_RESULTS, gate="gold", rule="fidelity_above_floor", table_name="fidelity")
    _, trust, *_ = screen(findings({gate_refusals: [refused]}))
    assert trust == "TRUST     no: the gold gate refused this run by fidelity_above_floor"


def low(**told: Any) -> Row:
    return Row(algorithm="session_cache", metric="session_grants", reader="consumer", checked=40, agreed=4, **told)


def test_a_replay_below_its_floor_is_trusted_in_part_and_gets_the_command_that_states_what_was_in_force() -> None:
    found = findings({metrics_below_floor: [low(floor=0.99)]}, {"session_cache": ("captured",)})
    key = "broker.max.incremental.fetch.session.cache.slots"
    found = replace(found, assumed=(key,))
    held = replace(CHANGED, algorithm="session_cache", setting=key, verdict="withheld", reason="It is below the floor.")
    lines = screen(found, held)
    assert lines[1].startswith("TRUST     partly: ")
    assert lines[2] == "          session grants of consumers equal the capture in 10.00 % of 40, below 99.0 %"
    assert "WITHHELD  max.incremental.fetch.session.cache.slots: It is below the floor." in lines
    (run,) = [line for line in lines if line.startswith("RUN")]
    assert run == f"RUN       ./spark-submit.sh replay --lake=/lake --captured={key}=..."


def test_settings_to_state_come_in_one_order_and_a_quota_only_if_a_fetch_was_throttled() -> None:
    keys = [key for key, of in settings().items() if of.captured and "fetch_max_bytes" in of.algorithms]
    throttled = Row(client_id="app", api_name="FETCH", connections=1, total=9, long=0)
    quota = Row(client_id="app", api_name="PRODUCE", connections=1, total=9, long=0)

    def asked(*rows: Row) -> list[str]:
        return unstated_settings(replace(findings({throttled_clients: [*rows]}), assumed=frozenset(keys)), FETCH_LIMITS)

    assert asked(throttled) == [key for key in keys if key != "kafka"]
    assert asked() == asked(quota) == [key for key in asked(throttled) if "consumer_byte_rate" not in key]
    assert asked() != asked(throttled)


def test_the_command_repeats_the_aims_of_the_run() -> None:
    key, aim = "broker.max.incremental.fetch.session.cache.slots", "session_cache: fewest slots"
    found = findings({metrics_below_floor: [low(floor=0.99)], aim_settings: [row_of(AIM_SETTINGS, aim=aim)] * 2})
    found = replace(found, assumed=(key,), lanes={"session_cache": ("captured",)})
    held = replace(CHANGED, algorithm="session_cache", setting=key, verdict="withheld")
    command = repeat_command("/lake", verdict(found, held))
    assert command == f"./spark-submit.sh replay --lake=/lake '--find={aim}' --captured={key}=..."


def test_a_run_of_one_of_several_clusters_names_it_and_the_command_repeats_it() -> None:
    key, cluster = "broker.max.incremental.fetch.session.cache.slots", "MkU3OEVBNTcwNTJENDM2Qk"
    found = findings({metrics_below_floor: [low(floor=0.99)]}, {"session_cache": ("captured",)})
    held = replace(CHANGED, algorithm="session_cache", setting=key, verdict="withheld")
    of = verdict(replace(found, assumed=(key,)), held, of=known(cluster_id=cluster))
    head, named, *_ = first_screen("/lake", of)
    assert head == "refetch  a.pcap  7 exchanges  Kafka 4.3"
    assert named.startswith(f"CLUSTER   only {cluster} is replayed, one of several that the captures show; ")
    assert repeat_command("/lake", of) == (
        f"./spark-submit.sh replay --lake=/lake --cluster-id={cluster} --captured={key}=..."
    )


def test_bytes_that_the_capture_lacks_are_shown_with_the_trust() -> None:
    lossy = row_of(CAPTURE_QUALITY, missing_bytes=9, missing_share=0.021)
    assert screen(findings({quality_row: [lossy]}))[2] == "          2.1 % of the bytes are missing from the capture"


def test_questions_that_lack_a_replay_come_with_the_flag_that_asks_for_it() -> None:
    others = ("fetch_max_bytes", "consumer_memory", "session_cache", "batch_split")
    lines = screen(findings(lanes=dict.fromkeys(others, ("captured",))))
    (line,) = [line for line in lines if line.startswith("ASK       questions 3, 15")]
    assert line.startswith("ASK       questions 3, 15: --set=max.broker.partitions=2000,4000, with `partition_limits:`")


def test_questions_that_request_logs_cannot_answer_come_without_a_flag_that_would_be_refused() -> None:
    log = one_of_one(row_of(CAPTURES, path="/logs/requests.log", format=REQUEST_LOG, log_lines=9))
    lines = screen(
        findings({captured_files: [log]}, dict.fromkeys(("session_cache", "partition_limits"), ("captured",)))
    )
    assert any(line.startswith("ASK       questions 4, 13: The captures are request logs") for line in lines)
    assert not any("batch.size" in line for line in lines)


def test_the_verdict_fits_a_screen_however_many_clients_and_settings_there_are() -> None:
    settings = ["producer.buffer.memory", "producer.batch.size", "consumer.max.partition.fetch.bytes", FETCH]
    many = [
        replace(CHANGED, setting=setting, verdict=what, scope=Scope("client", f"{'long-' * 9}{n}"),
                now=InForce(str(n), "captured"), reason=f"No {n}.")
        for n in range(50) for setting in settings for what in ("change", "withheld", "keep")
    ]  # fmt: skip
    lows = [low(floor=0.99)] * 9
    lines = screen(findings({metrics_below_floor: lows}, {"session_cache": ("captured",)}), *many)
    assert len(lines) + 3 <= 40  # three more say where report and tables are
    assert max(map(len, lines)) <= 120


def test_a_command_of_several_lines_is_a_single_command_for_a_shell() -> None:
    key = "broker.max.incremental.fetch.session.cache.slots"
    aim = f"session_cache: fewest slots where {' and '.join(['harmed = 0'] * 12)}"
    found = findings({metrics_below_floor: [low(floor=0.99)], aim_settings: [row_of(AIM_SETTINGS, aim=aim)]})
    found = replace(found, assumed=(key, "broker.fetch.max.bytes"), lanes={"session_cache": ("captured",)})
    held = replace(CHANGED, algorithm="session_cache", setting=key, verdict="withheld")
    lines = list(repeat_lines("/lake" * 20, verdict(found, held)))
    assert len(lines) > 2
    assert max(map(len, lines)) <= 120
    words = shlex.split("\n".join(lines).removeprefix("RUN").replace("\\\n", ""))
    whole = shlex.split(repeat_command("/lake" * 20, verdict(found, held)))
    assert [" ".join(word.split()) for word in words] == whole
