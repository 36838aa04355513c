"""Scenario files, --set and --captured: what they mean, and every fault with its line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from jobs.resolve import unlike_units
from jobs.scenarios.scenario import Scenario, with_defaults_of
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import ON_REQUEST, algorithms, settings
from udfs.errors import ScenarioError

MiB = 1024 * 1024
USUAL = set(algorithms()) - ON_REQUEST
"""Replays that are made if none is named."""

GRID = """\
captures: [a.pcap, sub/*.pcap]
lake: ./lake
captured:
  broker.fetch.max.bytes: 30MiB
replay:
  fetch_max_bytes:
    consumer.fetch.max.bytes: [1MiB, 8MiB]
    consumer.max.partition.fetch.bytes: [256KiB, 1MiB]
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, so that a scenario file in it is named by its short name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scenario(folder: Path, text: str, name: str = "x.yaml") -> Scenario:
    (folder / name).write_text(text)
    return resolve_scenario(name)


def faults(folder: Path, text: str, *, sets: tuple[str, ...] = (), captured: tuple[str, ...] = ()) -> tuple[str, ...]:
    (folder / "x.yaml").write_text(text)
    with pytest.raises(ScenarioError) as raised:
        resolve_scenario("x.yaml", sets, captured)
    return raised.value.faults


def test_the_captured_lane_comes_before_the_grid(write: Path) -> None:
    lanes = scenario(write, GRID).lanes("fetch_max_bytes")
    assert [(lane.name, dict(lane.settings)) for lane in lanes] == [
        ("captured", {}),
        (
            "consumer.fetch.max.bytes=1MiB,consumer.max.partition.fetch.bytes=256KiB",
            {"consumer.fetch.max.bytes": MiB, "consumer.max.partition.fetch.bytes": 256 * 1024},
        ),
        (
            "consumer.fetch.max.bytes=1MiB,consumer.max.partition.fetch.bytes=1MiB",
            {"consumer.fetch.max.bytes": MiB, "consumer.max.partition.fetch.bytes": MiB},
        ),
        (
            "consumer.fetch.max.bytes=8MiB,consumer.max.partition.fetch.bytes=256KiB",
            {"consumer.fetch.max.bytes": 8 * MiB, "consumer.max.partition.fetch.bytes": 256 * 1024},
        ),
        (
            "consumer.fetch.max.bytes=8MiB,consumer.max.partition.fetch.bytes=1MiB",
            {"consumer.fetch.max.bytes": 8 * MiB, "consumer.max.partition.fetch.bytes": MiB},
        ),
    ]


def test_a_scenario_that_varies_nothing_replays_what_was_captured(write: Path) -> None:
    assert [lane.name for lane in scenario(write, "").lanes("fetch_max_bytes")] == ["captured"]
    assert [lane.name for lane in scenario(write, "replay: {fetch_max_bytes: }").lanes("fetch_max_bytes")] == [
        "captured"
    ]


def test_settings_in_force_are_kafkas_defaults_unless_stated(write: Path) -> None:
    unstated, stated = scenario(write, ""), scenario(write, GRID)
    captured = {key: s for key, s in settings().items() if s.captured and not s.only_with}
    concerns = {key: s for key, s in captured.items() if set(s.algorithms) & USUAL}
    defaults = {key: s.default_value for key, s in concerns.items()}
    assert dict(unstated.captured) == {key: value for key, value in defaults.items() if value not in (None, "none")}
    assert unstated.captured["broker.fetch.max.bytes"] == 55 * MiB
    assert unstated.assumed == tuple(defaults)
    assert stated.captured["broker.fetch.max.bytes"] == 30 * MiB
    assert stated.assumed == tuple(key for key, s in concerns.items() if "fetch_max_bytes" in s.algorithms)[1:]


def test_a_setting_that_no_replay_of_the_scenario_takes_is_not_assumed(write: Path) -> None:
    assert "producer.batch.size" not in scenario(write, GRID).captured
    assert scenario(write, "replay: {consumer_memory: }").captured["producer.batch.size"] == 16 * 1024


def test_paths_in_a_file_are_relative_to_the_files_folder(write: Path) -> None:
    (write / "conf").mkdir()
    found = scenario(write, "captures: [../a.pcap, /abs/b.pcap]\nlake: s3a://bucket/lake\n", "conf/x.yaml")
    assert (found.captures, found.lake) == (("conf/../a.pcap", "/abs/b.pcap"), "s3a://bucket/lake")
    assert scenario(write, "captures: a.pcap\nlake: l\n", "conf/x.yaml").lake == "conf/l"


def test_scenarios_with_the_same_meaning_have_the_same_id(write: Path) -> None:
    other_order = """\
replay:
  fetch_max_bytes:
    max.partition.fetch.bytes: [1048576, 256 KiB, 1MiB]
    fetch.max.bytes: [8388608, 1MiB]
captured: {fetch.max.bytes: 31457280}
lake: /somewhere/else
"""
    assert scenario(write, GRID).scenario_id == scenario(write, other_order).scenario_id
    assert scenario(write, GRID) == scenario(write, other_order)


def test_scenarios_with_different_meanings_have_different_ids(write: Path) -> None:
    ids = {scenario(write, GRID).scenario_id, scenario(write, "").scenario_id}
    ids.add(scenario(write, GRID.replace("30MiB", "31MiB")).scenario_id)
    ids.add(scenario(write, GRID.replace("8MiB", "9MiB")).scenario_id)
    assert len(ids) == 4


def test_the_id_stays_from_release_to_release(write: Path) -> None:
    found = scenario(write, GRID)
    canonical = (
        '{"captured":{"broker.fetch.max.bytes":31457280,"consumer.max.poll.records":500},'
        '"replay":{"fetch_max_bytes":{"consumer.fetch.max.bytes":[1048576,8388608],"consumer.max.partition.fetch.bytes":[262144,1048576]}}}'
    )
    assert found.to_json() == canonical
    assert found.scenario_id == hashlib.sha256(canonical.encode()).hexdigest()


def test_the_canonical_form_is_a_scenario_file_of_the_same_meaning(write: Path) -> None:
    found = scenario(write, GRID)
    assert scenario(write, found.to_json(), "y.yaml").scenario_id == found.scenario_id


def test_a_profile_is_text_although_it_looks_like_a_number(write: Path) -> None:
    found = scenario(write, "captured: {kafka: 4.0}\nreplay: {fetch_max_bytes: {kafka: [kip, 3.9, 4.3]}}\n")
    assert found.captured["kafka"] == "4.0"
    assert [lane.name for lane in found.lanes("fetch_max_bytes")] == ["captured", "kafka=4.3", "kafka=3.9", "kafka=kip"]


def test_a_topics_own_setting_is_written_with_the_topics_name(write: Path) -> None:
    text = """\
captured: {topic.orders.v2.max.message.bytes: 2MiB, max.message.bytes: 1MiB}
replay:
  batch_split:
    topic.b.max.message.bytes: 8MiB
    topic.a.max.message.bytes: 4MiB
    producer.batch.size: 16KiB
    max.message.bytes: 3MiB
"""
    found = scenario(write, text)
    assert found.captured["topic.orders.v2.max.message.bytes"] == 2 * MiB
    assert [lane.name for lane in found.lanes("batch_split")][1:] == [
        "producer.batch.size=16KiB,topic.max.message.bytes=3MiB,"
        "topic.a.max.message.bytes=4MiB,topic.b.max.message.bytes=8MiB"
    ]
    assert scenario(write, found.to_json(), "y.yaml").scenario_id == found.scenario_id


@pytest.mark.parametrize(
    "name", ["topic.a b.max.message.bytes", "topic..max.message.bytes", "topic.a.max.mesage.bytes"]
)
def test_a_setting_that_no_topic_can_have_is_unknown(write: Path, name: str) -> None:
    (told,) = faults(write, f"captured: {{{name}: 1MiB}}\n")
    assert f"unknown key `{name}`" in told


def test_all_faults_are_reported_at_once_with_their_lines(write: Path) -> None:
    text = """\
capture: [a.pcap]
captured:
  broker.fetch.max.bytes: [1MiB, 2MiB]
  consumer.fetch.max.bytes: 1MiB
replay:
  fetch_max_byte: {}
  fetch_max_bytes:
    consumer.fetch.max.byte: 8MiB
    consumer.max.partition.fetch.bytes:
      - 1MiB
      - 8 megs
    broker.fetch.max.bytes: 100
    replica.fetch.max.bytes: []
"""
    assert faults(write, text, sets=("fetch.max.bytes",), captured=("kafka=5",)) == (
        "x.yaml:1: unknown key `capture`; did you mean `captures`?",
        "x.yaml:3: `captured.broker.fetch.max.bytes` must be one value",
        "x.yaml:4: consumer.fetch.max.bytes is in the capture, so it cannot be stated; "
        "to replay others, vary it (replay:, --set)",
        "x.yaml:6: unknown algorithm `fetch_max_byte`; did you mean `fetch_max_bytes`?",
        "x.yaml:8: unknown key `consumer.fetch.max.byte`; did you mean `consumer.fetch.max.bytes`?",
        "x.yaml:11: consumer.max.partition.fetch.bytes: `8 megs` is not a size in bytes such as 1048576, 8MiB or 50 MB",
        "x.yaml:12: broker.fetch.max.bytes: `100` is below the minimum, 1024",
        "x.yaml:13: replica.fetch.max.bytes has no value",
        "--captured: kafka: `5` is none of 4.4, 4.3, 4.2, 4.1, 4.0, 3.9, 3.8, 3.7, 3.2, 2.7, 2.4, kip",
        "--set: `fetch.max.bytes` is not KEY=VALUE",
    )


def test_a_malformed_value_hides_no_other_fault(write: Path) -> None:
    text = """\
captured:
  kafka: [4.0, 4.1]
  broker.fetch.max.byte: {}
  sending.threads: 0
replay:
  session_caches: 3
  fetch_max_bytes:
    broker.fetch.max.bytes: 100
    consumer.fetch.max.byte: {a: 1}
    consumer.max.partition.fetch.bytes:
      - [1MiB]
      - 8 megs
    replica.fetch.max.bytes: [{}]
  session_cache: 500
"""
    assert faults(write, text, sets=("max.partitions=500",)) == (
        "x.yaml:2: `captured.kafka` must be one value",
        "x.yaml:3: `captured.broker.fetch.max.byte` must be one value",
        "x.yaml:3: unknown key `broker.fetch.max.byte`; did you mean `broker.fetch.max.bytes`?",
        "x.yaml:4: sending.threads: `0` is below the minimum, 1",
        "x.yaml:6: `replay.session_caches` must be a mapping of keys to values",
        "x.yaml:6: unknown algorithm `session_caches`; did you mean `session_cache`?",
        "x.yaml:8: broker.fetch.max.bytes: `100` is below the minimum, 1024",
        "x.yaml:9: `replay.fetch_max_bytes.consumer.fetch.max.byte` must be a value or a list of values",
        "x.yaml:9: unknown key `consumer.fetch.max.byte`; did you mean `consumer.fetch.max.bytes`?",
        "x.yaml:11: `replay.fetch_max_bytes.consumer.max.partition.fetch.bytes.0` must be one value",
        "x.yaml:12: consumer.max.partition.fetch.bytes: `8 megs` is not a size in bytes such as 1048576, 8MiB or 50 MB",
        "x.yaml:13: `replay.fetch_max_bytes.replica.fetch.max.bytes.0` must be one value",
        "x.yaml:14: `replay.session_cache` must be a mapping of keys to values",
        "--set: max.partitions is no setting of fetch_max_bytes, session_cache: it is one of partition_limits; "
        "have `partition_limits:` under `replay:` for it",
    )


def test_faults_are_reported_for_every_value_of_a_key_that_is_repeated(write: Path) -> None:
    text = """\
replay:
  session_cache: {kafka: 5}
replay:
  fetch_max_bytes:
    fetch.max.bytes: 1 meg
    fetch.max.bytes: 2 megs
    consumer.fetch.max.bytes: 3 megs
    fetch.max.bytes: 4 megs
"""
    told = faults(write, text, sets=("max.incremental.fetch.session.cache.slots=500",))
    assert [fault.partition(" is not a size")[0] for fault in told] == [
        "x.yaml:2: kafka: `5` is none of 4.4, 4.3, 4.2, 4.1, 4.0, 3.9, 3.8, 3.7, 3.2, 2.7, 2.4, kip",
        "x.yaml:3: key `replay` is given twice",
        "x.yaml:5: consumer.fetch.max.bytes: `1 meg`",
        "x.yaml:6: key `fetch.max.bytes` is given twice",
        "x.yaml:6: consumer.fetch.max.bytes: `2 megs`",
        "x.yaml:7: consumer.fetch.max.bytes is given twice",
        "x.yaml:7: consumer.fetch.max.bytes: `3 megs`",
        "x.yaml:8: key `fetch.max.bytes` is given twice",
        "x.yaml:8: consumer.fetch.max.bytes: `4 megs`",
    ]


SLOTS = "max.incremental.fetch.session.cache.slots"


def test_the_message_on_a_setting_of_another_replay_says_what_to_add(write: Path) -> None:
    only_fetches = "replay:\n  fetch_max_bytes:\n"
    of_sessions = (
        "no setting of fetch_max_bytes: it is one of session_cache; have `session_cache:` under `replay:` for it"
    )
    assert faults(write, only_fetches, sets=(f"{SLOTS}=500",)) == (f"--set: {SLOTS} is {of_sessions}",)
    for name in (SLOTS, f"broker.{SLOTS}"):
        assert faults(write, f"{only_fetches}    {name}: 500\n") == (f"x.yaml:3: {name} is {of_sessions}",)
    assert faults(write, "replay:\n  session_cache:\n    fetch.max.bytes: 1MiB\n") == (
        "x.yaml:3: fetch.max.bytes is no setting of session_cache: it is one of fetch_max_bytes and consumer_memory; "
        "have `fetch_max_bytes:` under `replay:` for it",
    )


def test_the_message_on_a_setting_that_no_replay_varies_says_to_state_it(write: Path) -> None:
    assert faults(write, "replay:\n  partition_limits:\n    num.partitions: 3\n") == (
        "x.yaml:3: num.partitions is no setting of partition_limits: no replay varies it; state it under `captured:`, "
        "or with --captured",
    )


def test_the_message_on_a_flag_for_a_setting_that_no_replay_varies_says_to_state_it() -> None:
    with pytest.raises(ScenarioError, match=r"1 fault\n  --set: num\.partitions is no setting of .*: no replay"):
        resolve_scenario(None, ["num.partitions=3"])


def test_the_message_on_an_unknown_key_lists_those_that_are_accepted_there(write: Path) -> None:
    (told,) = faults(write, "replay:\n  session_cache:\n", sets=("zzz=1",))
    listed = told.removeprefix("--set: unknown key `zzz`; known here: ").split(", ")
    assert {SLOTS, f"broker.{SLOTS}", "kafka"} <= set(listed)
    for name in listed:
        assert not any("no setting" in told for told in faults(write, "replay: {session_cache: }", sets=(f"{name}=?",)))


def test_if_many_keys_are_accepted_the_message_has_the_nearest_ones_and_where_all_are_listed() -> None:
    unknown, nothing = ["qqq.zzz=1"], list[str]()
    for sets, captured in (unknown, nothing), (nothing, unknown):
        with pytest.raises(ScenarioError) as raised:
            resolve_scenario(None, sets, captured)
        (told,) = raised.value.faults
        assert told.count("`") == 2 * 4
        assert told.endswith("; docs/settings.md has all")


def test_a_setting_that_the_capture_shows_cannot_be_stated(write: Path) -> None:
    assert faults(write, "captured:\n  consumer.fetch.max.bytes: 1MiB\n") == (
        "x.yaml:2: consumer.fetch.max.bytes is in the capture, so it cannot be stated; "
        "to replay others, vary it (replay:, --set)",
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lake: a\nlake: b\n", "x.yaml:2: key `lake` is given twice"),
        ("lake: &a x\ncaptures:\n  - *a\n", "x.yaml:3: alias *a is not taken here; write the value out"),
        ("lake: [\n", "x.yaml:2: not YAML: expected the node content, but found '<stream end>'"),
        (
            "- a\n- b\n",
            "x.yaml:1: a scenario is a mapping with the keys captures, log_zone, lake, cluster, captured, replay, "
            "find, from, to",
        ),
        ("replay: 3\n", "x.yaml:1: `replay` must be a mapping of keys to values"),
        (
            "replay:\n  fetch_max_bytes: {fetch.max.bytes: 1MiB,\n    consumer.fetch.max.bytes: 2MiB}\n",
            "x.yaml:3: consumer.fetch.max.bytes is given twice",
        ),
    ],
)
def test_a_fault_of_form_has_its_line(write: Path, text: str, told: str) -> None:
    assert faults(write, text) == (told,)


def test_a_recursive_alias_is_refused(write: Path) -> None:
    assert any("alias" in fault for fault in faults(write, "captures: &a [*a]\n"))


def test_a_file_that_is_not_there_is_named(write: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"nope\.yaml: cannot be read: No such .*; give the path of a scenario file"
    ):
        resolve_scenario("nope.yaml")


def test_a_file_that_is_no_text_is_reported(write: Path) -> None:
    (write / "x.yaml").write_bytes(b"lake: \xff\xfe\x00")
    with pytest.raises(ScenarioError, match=r"x\.yaml:1: not YAML text"):
        resolve_scenario("x.yaml")


def test_set_replaces_the_values_of_the_file(write: Path) -> None:
    (write / "x.yaml").write_text(GRID)
    found = resolve_scenario("x.yaml", ["fetch.max.bytes=2MiB,3MiB"], ["fetch.max.bytes=40MiB"])
    assert found.replay["fetch_max_bytes"] == {
        "consumer.fetch.max.bytes": (2 * MiB, 3 * MiB),
        "consumer.max.partition.fetch.bytes": (256 * 1024, MiB),
    }
    assert found.captured["broker.fetch.max.bytes"] == 40 * MiB


def test_flags_alone_make_a_scenario() -> None:
    found = resolve_scenario(None, ["broker.fetch.max.bytes=8MiB"])
    assert [lane.name for lane in found.lanes("fetch_max_bytes")] == ["captured", "broker.fetch.max.bytes=8MiB"]


def test_a_flag_given_twice_is_a_fault() -> None:
    with pytest.raises(ScenarioError, match=r"--set: consumer\.fetch\.max\.bytes is given twice"):
        resolve_scenario(None, ["fetch.max.bytes=1MiB", "consumer.fetch.max.bytes=2MiB"])


def test_a_bad_value_of_a_setting_that_two_replays_take_is_one_fault() -> None:
    with pytest.raises(ScenarioError, match=r"^arguments: 1 fault\n  --set: consumer\.fetch\.max\.bytes: `8 M` is not"):
        resolve_scenario(None, ["fetch.max.bytes=8 M"])


def test_a_grid_with_too_many_lanes_is_a_fault() -> None:
    many = ",".join(str(size) for size in range(1, 40))
    with pytest.raises(ScenarioError, match="fetch_max_bytes has 1522 lanes; at most 1024"):
        resolve_scenario(None, [f"fetch.max.bytes={many}", f"max.partition.fetch.bytes={many}"])


def test_a_replay_that_needs_more_from_a_capture_is_made_only_on_request(tmp_path: Path) -> None:
    """The file names it, or a flag sets a setting that belongs to it first."""
    everything = tuple(sorted(algorithms()))
    assert resolve_scenario(None, ["fetch.max.bytes=1MiB"], []).algorithms == tuple(sorted(USUAL))
    assert resolve_scenario(None, ["batch.size=32KiB"], []).algorithms == everything
    assert resolve_scenario(None, [], ["max.message.bytes=40000"]).algorithms == everything
    file = tmp_path / "mine.yaml"
    file.write_text("replay:\n  batch_split:\n    compression.ratio.improving.step: [0.005, 0.01]\n")
    lanes = resolve_scenario(str(file), [], []).lanes("batch_split")
    assert [lane.name for lane in lanes] == [
        "captured",
        "compression.ratio.improving.step=0.005",
        "compression.ratio.improving.step=0.01",
    ]


@pytest.mark.parametrize(
    ("release", "max_bytes", "message_bytes"),
    [("2.4", 2147483647, 1000012), ("2.7", 55 << 20, 1048588), ("4.3", 55 << 20, 1048588), ("kip", 55 << 20, 1048588),
     (None, 55 << 20, 1048588)],
)  # fmt: skip
def test_settings_that_nobody_states_have_the_defaults_of_the_brokers_release(
    release: str | None, max_bytes: int, message_bytes: int
) -> None:
    """KIP-541 and KAFKA-4203 came with 2.5."""
    scenario = with_defaults_of(resolve_scenario(None, ["fetch.max.bytes=1MiB", "batch.size=1KiB"], []), release)
    assert scenario.captured["broker.fetch.max.bytes"] == max_bytes
    assert scenario.captured["broker.message.max.bytes"] == message_bytes


def test_stated_settings_are_in_force_whatever_the_release() -> None:
    scenario = resolve_scenario(None, ["fetch.max.bytes=1MiB"], ["fetch.max.bytes=8MiB"])
    assert with_defaults_of(scenario, "2.4") == scenario


def test_lists_without_end_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text("replay:\n  " + "[" * 100_000)
    with pytest.raises(ScenarioError, match=r"deep.yaml:2: lists and mappings are nested more than 32 deep") as raised:
        resolve_scenario(str(tmp_path / "deep.yaml"))
    assert len(str(raised.value)) < 1000


def test_a_huge_grid_is_refused_before_a_value_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.scenarios.scenario_file.parse_values", None)
    values = ",".join(f"{kib}KiB" for kib in range(1, 1001))
    with pytest.raises(ScenarioError, match="fetch_max_bytes has 1000001 lanes; at most 1024"):
        resolve_scenario(None, [f"consumer.fetch.max.bytes={values}", f"consumer.max.partition.fetch.bytes={values}"])


def test_values_that_differ_only_in_similar_units_get_a_note() -> None:
    asked = resolve_scenario(None, ["consumer.fetch.max.bytes=8MB,8MiB,50MiB"])
    (note, *_) = unlike_units(asked)
    assert note.startswith("consumer.fetch.max.bytes: 8MB and 8MiB are two lanes")
    assert not [*unlike_units(resolve_scenario(None, ["consumer.fetch.max.bytes=8MiB,16MiB"]))]


def test_a_lane_at_the_captured_speed_is_named_by_its_other_settings() -> None:
    grids = ["traffic.speed=1,2", "consumer.fetch.max.bytes=8MiB"]
    assert [lane.name for lane in resolve_scenario(None, grids, []).lanes("fetch_max_bytes")] == [
        "captured",
        "consumer.fetch.max.bytes=8MiB",
        "consumer.fetch.max.bytes=8MiB,traffic.speed=2",
    ]
    speeds = resolve_scenario(None, ["traffic.speed=1,2"], [])
    assert [lane.name for lane in speeds.lanes("fetch_max_bytes")] == ["captured", "traffic.speed=2"]
    consumers = resolve_scenario(None, ["traffic.consumers=1,2"], [])
    assert [lane.name for lane in consumers.lanes("fetch_max_bytes")] == ["captured", "traffic.consumers=2"]


def test_a_setting_that_only_matters_with_another_one_is_listed_only_with_that_one(write: Path) -> None:
    windows = "broker.quota.window.num"
    quota = "replay: {fetch_max_bytes: {consumer_byte_rate: 1MiB}}"
    assert windows not in scenario(write, GRID).captured
    assert scenario(write, quota).captured[windows] == 11
    stated = GRID.replace("captured:", "captured:\n  consumer_byte_rate: 1MiB")
    assert scenario(write, stated).captured[windows] == 11


@pytest.mark.parametrize(
    ("stated", "fault"),
    [
        ("broker.x.fetch.max.bytes=1MiB", "expected broker.ID.fetch.max.bytes, in which ID is the broker's node id"),
        ("broker.2.broker.fetch.max.bytes=1MiB", "expected broker.2.fetch.max.bytes, in which ID is"),
        ("broker.2.linger.ms=5", "broker.2.linger.ms cannot be stated for one broker; what can be is broker.ID.fetch"),
        ("broker.2.replica.fetch.max.bytes=1MiB", "replica.fetch.max.bytes is in the capture, for each broker"),
        ("broker.2.fetch.max.bytes=5", "broker.2.fetch.max.bytes: `5` is below the minimum, 1024"),
        ("broker.2.fetch.max.bytes=1MiB,2MiB", "one value was in force, and 2 are given"),
    ],
)
def test_what_cannot_be_stated_for_one_broker_is_refused_with_what_can(write: Path, stated: str, fault: str) -> None:
    (found,) = faults(write, "", captured=(stated,))
    assert fault in found


@pytest.mark.parametrize("misspelt", ["broker.num.network.thread", "broker.group.share.max.share.session"])
def test_the_first_word_of_a_misspelt_setting_of_all_brokers_is_no_broker(write: Path, misspelt: str) -> None:
    (found,) = faults(write, "", captured=(f"{misspelt}=3",))
    assert f"did you mean `{misspelt}s`?" in found


def test_a_lane_has_one_value_for_all_brokers(write: Path) -> None:
    (found,) = faults(write, "", sets=("broker.2.fetch.max.bytes=1MiB",))
    assert "a lane has one value for all brokers; vary broker.fetch.max.bytes, or state this as captured" in found


def test_no_bound_can_be_stated_for_one_broker() -> None:
    stated = ["queued.max.request.bytes=200MiB", "broker.2.queued.max.request.bytes=none"]
    captured = resolve_scenario(None, [], stated).captured
    assert captured["broker.queued.max.request.bytes"] == 200 * MiB
    assert captured["broker.2.queued.max.request.bytes"] == "none"
    assert "broker.queued.max.request.bytes" not in resolve_scenario(None, [], []).captured
