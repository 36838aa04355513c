"""Cluster files, which describe a cluster for `size`."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc
import pytest

from jobs.cli import parse_arguments, run_command
from jobs.resolve import resolve_run
from jobs.scenarios.cluster_file import read_cluster
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.size import events_of_cluster, part_for_size
from schemas.tables.event_kinds import TopicEvent
from schemas.tables.steps import TOPIC_EVENTS
from udfs.errors import ScenarioError

EXAMPLE = Path(__file__).parents[3] / "conf" / "clusters" / "example.yaml"
GROWTH = "growth: {days: 10, topics: [{name: new, partitions: 3, replication.factor: 2, topics.per.day: 2}]}\n"


def written(folder: Path, text: str) -> str:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return str(path)


def test_the_example_is_a_cluster_of_fifty_brokers_in_three_racks() -> None:
    cluster = read_cluster(str(EXAMPLE))
    assert Counter(broker.rack for broker in cluster.brokers) == {"a": 17, "b": 17, "c": 16}
    assert [broker.id for broker in cluster.brokers] == list(range(1, 51))


def test_a_cluster_file_gives_the_rows_that_a_capture_of_the_cluster_would_give(tmp_path: Path) -> None:
    text = (
        "brokers: [{id: 1}, {id: 5}]\n"
        "topics:\n"
        "  - {name: a, count: 2, partitions: 3, replication.factor: 2}\n"
        "  - {name: b, partitions: 1, replication.factor: 1}\n"
    )
    t, events = TOPIC_EVENTS, events_of_cluster(read_cluster(written(tmp_path, text + GROWTH)), seed=7)
    of = {entry: events.filter(pc.field(t.entry) == entry.value) for entry in TopicEvent}
    assert of[TopicEvent.BROKER][t.node_id].to_pylist() == [1, 5]
    assert Counter(of[TopicEvent.SIGHTING][t.topic].to_pylist()) == {"a-0": 3, "a-1": 3, "b": 1}
    assert all(sorted(nodes or []) == [1, 5] for nodes in of[TopicEvent.SIGHTING][t.replica_nodes].to_pylist()[:6])
    assert of[TopicEvent.CHANGE][t.topic].to_pylist() == [f"new-{i}" for i in range(20)]
    times = of[TopicEvent.CHANGE][t.time].to_numpy().tolist()
    assert {later - earlier for earlier, later in pairwise(times)} == {43_200_000_000}


def test_all_faults_of_a_file_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """\
brokers:
  - {id: 1, rak: a}
  - {id: x}
topics:
  - {name: a, partitions: 0, replication.factor: 1}
growth:
  days: 10
  topics: [{name: b, partitions: 1, replication.factor: 1}]
"""
    with pytest.raises(ScenarioError) as raised:
        read_cluster(written(tmp_path, text))
    told = [fault.removeprefix(str(tmp_path / "cluster.yaml")) for fault in raised.value.faults]
    assert [fault.partition(": ")[0] for fault in told] == [":2", ":3", ":5", ":8"]
    assert told[0].endswith("unknown key `brokers.0.rak`; did you mean `rack`?")
    assert "`growth.topics.0.topics.per.day` is missing" in told[3]


def test_the_message_on_an_unknown_key_lists_those_that_are_known_there(tmp_path: Path) -> None:
    text = """\
zzz: 1
brokers: [{id: 1}]
topics: [{name: a, partitions: 1, replication.factor: 1, replication_facto: 2}]
growth: {days: 1, qqq: 2, topics: [{name: b, partitions: 1, replication.factor: 1, topics.per.days: 1}]}
"""
    with pytest.raises(ScenarioError) as raised:
        read_cluster(written(tmp_path, text))
    assert {fault.partition("unknown key ")[2] for fault in raised.value.faults} == {
        "`zzz`; known here: brokers, topics, growth",
        "`topics.0.replication_facto`; did you mean `replication.factor`?",
        "`growth.qqq`; known here: from, days, topics",
        "`growth.topics.0.topics.per.days`; did you mean `topics.per.day`?",
        "",  # topics.per.day is missing
    }


ONE = "partitions: 1, replication.factor: 1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("brokers: {count: 2}\ntopics: [{name: a, partitions: 1, replication.factor: 3}]\n", ":2: a: replication.fac"),
        ("brokers: [{id: 1}, {id: 1}, {id: 2}]\n", ":1: broker 1 is given twice"),
        (f"brokers: {{count: 2}}\ntopics: [{{name: new, {ONE}}}]\n", "new is given twice"),
        (f"brokers: {{count: 2}}\ntopics: [{{name: a, count: 6000000, {ONE}}}]\n", "at most 5,000,000"),
        ("brokers: {racks: [a]}\n", ":1: `brokers` is a list of {id, rack}, or {count: N"),
        ("brokers: {count: 99999}\n", "not from 1 to 10,000"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        read_cluster(written(tmp_path, text + GROWTH))
    assert told in str(raised.value)


def faults_of(folder: Path, text: str) -> list[str]:
    """`LINE: FAULT` of a file."""
    path = written(folder, text)
    with pytest.raises(ScenarioError) as raised:
        read_cluster(path)
    return [fault.removeprefix(f"{path}:") for fault in raised.value.faults]


def test_contradictions_are_reported_together_with_faults_of_form(tmp_path: Path) -> None:
    text = """\
brokers:
  - {id: 1}
  - {id: 1, rak: a}
  - {id: x}
topics:
  - {name: a, partitions: 1}
  - {name: a, partitions: 1, replication.factor: 4}
  - {partitions: 6000000, replication.factor: 3}
growth: {days: -1}
"""
    assert faults_of(tmp_path, text) == [
        "1: broker 1 is given twice",
        "1: at least 6,000,002 partitions in the end; at most 5,000,000",
        "3: unknown key `brokers.1.rak`; did you mean `rack`?",
        "4: `brokers.2.id` is x; expected a whole number",
        "6: `topics.0.replication.factor` is missing",
        "6: a is given twice",
        "7: a: replication.factor 4 on 2 brokers",
        "7: a is given twice",
        "8: `topics.2.name` is missing",
        "8: `topics.2`: replication.factor 3 on 2 brokers",
        "9: `growth.days` is -1; expected more than 0",
        "9: `growth.topics` is missing",
    ]


LISTED = "1: `brokers` is a list of {id, rack}, or {count: N, racks: [a, b]}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"brokers: {{racks: [a]}}\n{GROWTH}", [LISTED]),
        (f"brokers: {{count: 9, racks: [[a]]}}\n{GROWTH}", [LISTED]),
        (f"brokers: {{count: 0}}\n{GROWTH}", ["1: `brokers.count` is 0, and not from 1 to 10,000"]),
        (f"brokers: 3\n{GROWTH}", [LISTED]),
        (GROWTH, ["1: `brokers` is missing"]),
        ("brokers: {count: 2}\n", ["1: `growth` is missing"]),
        ("", ["1: `brokers` is missing", "1: `growth` is missing"]),
        (
            "- a\n",
            ["1: a cluster is a mapping with the keys brokers, topics, growth; conf/clusters/example.yaml is one"],
        ),
        (f"brokers: [{{}}, {{}}]\n{GROWTH}", ["1: `brokers.0.id` is missing", "1: `brokers.1.id` is missing"]),
        (
            f"brokers: [1, {{id: 0}}]\n{GROWTH}",
            ["1: `brokers.0` is 1; expected a mapping"],
        ),
    ],
)
def test_a_value_that_cannot_be_read_contradicts_nothing(tmp_path: Path, text: str, told: list[str]) -> None:
    assert faults_of(tmp_path, text) == told


def test_the_message_on_a_missing_file_says_what_it_should_contain(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"gone\.yaml: cannot be read: No such .* path of a file that describes"):
        read_cluster(str(tmp_path / "gone.yaml"))


def test_a_cluster_is_named_by_a_flag_or_by_the_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["size"]) == 2
    assert "--cluster=FILE" in capsys.readouterr().err
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("cluster: clusters/prod.yaml\n")
    assert resolve_run(parse_arguments(["size", f"--scenario={scenario}"])).cluster == str(
        tmp_path / "clusters/prod.yaml"
    )
    assert resolve_run(parse_arguments(["size", f"--scenario={scenario}", "--cluster=b.yaml"])).cluster == "b.yaml"


def test_settings_that_size_does_not_try_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    scenario = part_for_size(
        resolve_scenario(None, ["max.broker.partitions=4000", "consumer.fetch.max.bytes=1MiB,8MiB"])
    )
    assert {name: list(lanes) for name, lanes in scenario.replay.items()} == {
        "partition_limits": ["max.broker.partitions"]
    }
    assert capsys.readouterr().err == "refetch: size replays partition_limits alone, and not consumer.fetch.max.bytes\n"
    part_for_size(resolve_scenario(None, ["max.broker.partitions=4000"]))
    assert capsys.readouterr().err == ""
