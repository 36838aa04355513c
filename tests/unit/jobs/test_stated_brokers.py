"""A file for --brokers is accepted as a whole, or refused with all its faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.scenarios.stated_brokers import brokers_digest, read_stated_brokers
from udfs.errors import ScenarioError
from udfs.facts.pseudonyms import Pseudonyms


def written(folder: Path, text: str) -> str:
    """The path of a file with this text."""
    path = folder / "brokers.yaml"
    path.write_text(text)
    return str(path)


def test_servers_are_stated_as_tables_have_them(tmp_path: Path) -> None:
    path = written(tmp_path, '# of the lab\n10.0.0.1:9999: 1\n"[2001:DB8::1]:9999": 02\n10.0.0.2:9999: 0\n')
    assert read_stated_brokers(path, None) == {"10.0.0.1:9999": "1", "[2001:db8::1]:9999": "2", "10.0.0.2:9999": "0"}
    assert read_stated_brokers(None, None) == {}


def test_servers_can_be_named_by_pseudonyms(tmp_path: Path) -> None:
    pseudonyms = Pseudonyms(b"a secret key of ours")
    stated = read_stated_brokers(written(tmp_path, "10.0.0.1:9999: 1"), pseudonyms)
    assert stated == {pseudonyms.of("endpoint", "10.0.0.1:9999"): "1"}


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "10.0.0.1:9999: one\nkafka-1:9092: 1\n10.0.0.2: -1\n10.0.0.3:70000:\n10.0.0.4:9999: 1\n10.0.0.4:9999: 2\n"
        "10.0.0.4:09999: 3\n10.0.0.5:9999: [1, 2]\n",
    )
    with pytest.raises(ScenarioError) as refused:
        read_stated_brokers(path, None)
    told = {(fault.split(": ")[0].rpartition(":")[2], fault.partition(": ")[2]) for fault in refused.value.faults}
    lines = sorted(int(line) for line, _ in told)
    assert lines == [1, 2, 3, 3, 4, 4, 6, 7, 8]
    assert (
        "1",
        "`10.0.0.1:9999`: expected a node id, 0 or more, as `node.id` of the broker has it, found `one`",
    ) in told
    assert ("6", "key `10.0.0.4:9999` is given twice") in told
    assert ("7", "`10.0.0.4:09999` is 10.0.0.4:9999, which is given twice; leave one of the two lines out") in told
    assert any(line == "2" and "`kafka-1:9092`: expected an IP address and port" in text for line, text in told)


@pytest.mark.parametrize(("text", "found"), [("", "nothing"), ("- 10.0.0.1:9999", "a list"), ("one", "`one`")])
def test_a_file_without_lines_is_refused(tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(ScenarioError, match=f"expected lines such as .*, found {found}"):
        read_stated_brokers(written(tmp_path, text), None)


def test_the_id_of_stated_brokers_does_not_depend_on_their_order() -> None:
    one, two = {"a:1": "1", "b:1": "2"}, {"b:1": "2", "a:1": "1"}
    assert brokers_digest(one) == brokers_digest(two) != brokers_digest({"a:1": "2", "b:1": "1"})
