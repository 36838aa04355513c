"""Aims in scenario files and --find: what they mean, and every fault with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.scenarios.aims import Constraint, Span, whom_in
from jobs.scenarios.scenario import Scenario
from jobs.scenarios.scenario_file import resolve_scenario
from udfs.errors import ScenarioError

KiB, MiB = 1 << 10, 1 << 20
AIM = "fetch_max_bytes: least catch_up where held <= 64MiB and longest_wait <= 1s"
FILE = """\
find:
  fetch_max_bytes:
    minimise: catch_up
    where: [held <= 64MiB, longest_wait <= 1s]
    over:
      consumer.fetch.max.bytes: 64KiB..100MiB
      consumer.max.poll.records: [100, 500, 2000]
"""


def of_flag(*texts: str) -> Scenario:
    return resolve_scenario(None, (), (), texts)


def faults(*texts: str, path: str | None = None) -> tuple[str, ...]:
    with pytest.raises(ScenarioError) as raised:
        resolve_scenario(path, (), (), texts)
    return raised.value.faults


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "x.yaml"


def test_an_aim_names_an_outcome_and_what_must_hold() -> None:
    aim = of_flag(AIM).aims["fetch_max_bytes"]
    assert (aim.target, aim.is_least) == ("catch_up", True)
    assert aim.where == (Constraint("held", "<=", 64 * MiB), Constraint("longest_wait", "<=", 1000))


def test_an_aim_without_settings_tries_those_of_its_side_within_their_usual_bounds() -> None:
    assert of_flag(AIM).aims["fetch_max_bytes"].over == {
        "consumer.fetch.max.bytes": Span(64 * KiB, 100 * MiB),
        "consumer.max.partition.fetch.bytes": Span(16 * KiB, 10 * MiB),
    }
    memory = of_flag("consumer_memory: least producer_used where producer_waits = 0").aims["consumer_memory"]
    assert [*memory.over] == ["producer.buffer.memory"]


def test_a_setting_itself_can_be_minimised_or_maximised() -> None:
    aim = of_flag("batch_split: largest batch.size where split_rate <= 1%").aims["batch_split"]
    assert (aim.target, aim.is_least, aim.where) == (
        "producer.batch.size",
        False,
        (Constraint("split_rate", "<=", 0.01),),
    )
    assert [*aim.over] == ["producer.batch.size"]


def test_a_file_and_a_flag_that_say_the_same_are_the_same_scenario(write: Path) -> None:
    write.write_text(FILE)
    flag = f"{AIM} over consumer.fetch.max.bytes=64KiB..100MiB and consumer.max.poll.records=2000,500,100"
    in_file = resolve_scenario("x.yaml")
    assert in_file.aims == of_flag(flag).aims
    assert in_file.scenario_id == of_flag(flag).scenario_id != resolve_scenario(None).scenario_id


def test_a_flag_replaces_the_aim_of_a_file(write: Path) -> None:
    write.write_text(FILE)
    aims = resolve_scenario("x.yaml", (), (), ["fetch_max_bytes: least held"]).aims
    assert aims["fetch_max_bytes"].target == "held"


def test_the_replay_of_an_aim_is_made_in_addition_to_those_of_the_file(write: Path) -> None:
    write.write_text("replay:\n  session_cache:\n" + FILE)
    assert resolve_scenario("x.yaml").algorithms == ("fetch_max_bytes", "session_cache")
    assert "batch_split" in of_flag("batch_split: most producer.batch.size where split_rate <= 0.01").algorithms


def test_the_text_of_an_aim_reads_back_as_the_aim() -> None:
    aim = of_flag(AIM).aims["fetch_max_bytes"]
    assert of_flag(str(aim)).aims["fetch_max_bytes"] == aim


def test_the_message_on_an_unknown_name_has_the_list_and_the_nearest_name() -> None:
    known = "known are catch_up, held, longest_wait, end_lag, requests, waiting, cut_tails"
    assert faults("fetch_max_bytes: least catchup where heldd <= 1MiB") == (
        f"--find: fetch_max_bytes has no outcome or setting `catchup`; did you mean `catch_up`? {known}",
        f"--find: fetch_max_bytes has no outcome `heldd`; did you mean `held`? {known}",
    )
    assert "did you mean `session_cache`?" in faults("session_cash: least harmed")[0]
    (told,) = faults("batch_split: most batchsize where split_rate <= 1%")
    assert "did you mean `batch.size`? known are split_rate, " in told


def test_a_setting_without_whole_numbers_can_be_maximised_among_listed_values() -> None:
    growth = "fetch_max_bytes: most traffic.speed where end_lag <= 64MiB"
    found = of_flag(f"{growth} over traffic.speed=1,1.5,2").aims["fetch_max_bytes"]
    assert (found.target, found.over) == ("traffic.speed", {"traffic.speed": (1.0, 1.5, 2.0)})
    assert "say `over`, as over traffic.speed=1,2,4" in faults(growth)[0]
    assert "list the values" in faults(f"{growth} over traffic.speed=1..4")[0]


def test_all_faults_of_a_file_are_reported_at_once_with_their_lines(write: Path) -> None:
    write.write_text(
        "find:\n  fetch_max_bytes:\n    minimise: held\n    maximise: held\n    where: [held <= 1x, held ~ 3]\n"
        "    over:\n      consumer.fetch.max.bytes: 8MiB..1MiB\n      profile: a..b\n    stepp: 1\n    rounds: 0\n"
    )
    told = faults(path="x.yaml")
    assert [fault.partition(": ")[0] for fault in told] == [f"x.yaml:{line}" for line in (2, 5, 5, 7, 8, 9, 10)]
    assert "8MiB is not below 1MiB" in told[3]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("fetch_max_bytes least held", "is not ALGORITHM: least|most OUTCOME"),
        ("fetch_max_bytes: least held where held <= ", "`held <=` is not OUTCOME <= BOUND"),
        ("fetch_max_bytes: least held over fetch.max.bytes=1,2 and max.partition.fetch.bytes=1,2 "
         "and max.poll.records=1,2 and fetch.min.bytes=1,2 and fetch.max.wait.ms=1,2 and order=fixed,shuffle "
         "and processing.us.per.record=1,2",
         "`over` has 7 settings; at most 6"),
        ("fetch_max_bytes: least profile", "its values are no numbers"),
        ("consumer_memory: least memory.pool", "its values are no numbers"),
        ("fetch_max_bytes: least fetch.max.bytes over max.poll.records=1..9", "`over` does not vary it"),
        ("fetch_max_bytes: least held over slots", "is not SETTING=FROM..TO"),
        ("fetch_max_bytes: least user.producer_byte_rate where end_lag <= 1MiB over user.producer_byte_rate=1MB,2MB",
         "no outcome says what becomes of producers under producer_byte_rate: list its values in --set"),
        ("consumer_memory: most traffic.speed where producer_waits = 0 over traffic.speed=2,4",
         "no lane with other traffic has producer_waits: such a lane is about what consumers hold"),
        ("consumer_memory: least batch.size where producer_waits = 0 over buffer.memory=x", "is not a size in bytes"),
    ],
)  # fmt: skip
def test_an_aim_that_means_nothing_is_refused(text: str, fault: str) -> None:
    assert fault in "\n".join(faults(text))


def test_a_replay_has_one_aim() -> None:
    assert faults("session_cache: least harmed", "session_cache: least evicted") == (
        "--find: session_cache is given two aims; a run has one for each replay",
    )


def test_an_aim_can_be_for_only_some_clients(write: Path) -> None:
    write.write_text(
        "find:\n  fetch_max_bytes:\n    minimise: catch_up\n    for: {client_id: [orders-*, billing]}\n"
        "    where: held <= 64MiB\n"
    )
    aim = resolve_scenario("x.yaml").aims["fetch_max_bytes"]
    assert aim.whom == {"client": ("orders-*", "billing")}
    flag = "fetch_max_bytes: least catch_up for client=orders-*,billing where held <= 64MiB"
    assert of_flag(flag).aims["fetch_max_bytes"] == aim == of_flag(str(aim)).aims["fetch_max_bytes"]
    assert whom_in(str(aim)) == aim.whom
    everyone = of_flag("fetch_max_bytes: least catch_up where held <= 64MiB")
    assert whom_in(str(everyone.aims["fetch_max_bytes"])) == {}
    assert everyone.scenario_id != of_flag(flag).scenario_id


def test_an_aim_for_producers_can_be_for_topics() -> None:
    aim = of_flag("batch_split: largest batch.size for topic=orders and client=app-? where split_rate <= 1%")
    assert aim.aims["batch_split"].whom == {"topic": ("orders",), "client": ("app-?",)}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("fetch_max_bytes: least held for group=x", "not for `group`; known are client, client_id, topic"),
        ("fetch_max_bytes: least held for clients=x", "did you mean `client`?"),
        ("fetch_max_bytes: least held for orders", "`orders` is not client=NAME,NAME or topic=NAME,NAME"),
        ("fetch_max_bytes: least held for topic=x", "held is not of one topic"),
        ("fetch_max_bytes: least held for client=a b", "`a b` has a blank or a comma; write ? for it"),
        ("session_cache: fewest slots for client=x where harmed = 0", "slots is not of one client"),
        (
            "consumer_memory: least consumer_used for client=x where broker_waits = 0",
            "broker_waits is not of one client",
        ),
    ],
)
def test_an_aim_can_be_only_for_clients_or_topics_that_can_have_their_own_setting(text: str, fault: str) -> None:
    assert fault in "\n".join(faults(text))
