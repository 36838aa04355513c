"""Which files a user means."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from jobs.captures.inputs import resolve_captures
from jobs.cli import parse_arguments
from jobs.resolve import resolve_run
from tests.unit.capture.logged import heartbeat
from udfs.errors import ArgumentError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("b.pcap", "a.pcapng.zst", "c.CAP.gz", "notes.txt", "sub/d.pcap", "odd[1].pcap", "none/readme"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return tmp_path


def names(folder: Path, *named: str) -> list[str]:
    return [str(Path(path).relative_to(folder)) for path in resolve_captures(named)]


def test_a_folder_means_the_captures_in_it_and_not_below(folder: Path) -> None:
    assert names(folder, ".") == ["a.pcapng.zst", "b.pcap", "c.CAP.gz", "odd[1].pcap"]


def test_request_logs_in_a_folder_are_recognised_by_their_content(folder: Path) -> None:
    (folder / "none/kafka-request.log.2026-11-21-12").write_text(heartbeat(1))
    (folder / "none/broker.gz").write_bytes(gzip.compress(heartbeat(1).encode()))
    assert names(folder, "none") == ["none/broker.gz", "none/kafka-request.log.2026-11-21-12"]


def test_captures_in_a_folder_are_recognised_by_the_names_that_tcpdump_gives_them(folder: Path) -> None:
    for name in ("broker1.pcap", "broker1.pcap1", "broker1.pcap02.gz", "broker1.pcapx"):
        (folder / "sub" / name).touch()
    (folder / "sub/d.pcap").unlink()
    assert names(folder, "sub") == ["sub/broker1.pcap", "sub/broker1.pcap02.gz", "sub/broker1.pcap1"]


@pytest.mark.parametrize("magic", [b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a"], ids=["pcap", "pcapng"])
def test_captures_in_a_folder_are_recognised_by_their_content(magic: bytes, folder: Path) -> None:
    (folder / "none/trace-0900").write_bytes(magic + bytes(20))
    (folder / "none/trace-1000").write_bytes(gzip.compress(magic + bytes(20)))
    assert names(folder, "none") == ["none/trace-0900", "none/trace-1000"]


def test_files_of_a_folder_that_are_left_out_are_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        (folder / f"sub/{number}\x1b.txt").touch()
    names(folder, "sub")
    assert capsys.readouterr().err == (
        "refetch: sub: left out, as not a capture, a frame dump (.parquet, .arrow) or a request log: "
        "0\\x1b.txt, 1\\x1b.txt, 2\\x1b.txt and 1 more\n"
    )


def test_a_pattern_with_two_stars_also_matches_in_subfolders(folder: Path) -> None:
    assert names(folder, "**/*.pcap") == ["b.pcap", "odd[1].pcap", "sub/d.pcap"]


def test_a_file_may_have_any_name(folder: Path) -> None:
    assert names(folder, "notes.txt") == ["notes.txt"]


def test_a_name_with_brackets_is_looked_for_as_written(folder: Path) -> None:
    assert names(folder, "odd[1].pcap") == ["odd[1].pcap"]


def test_a_file_named_twice_is_read_once(folder: Path) -> None:
    assert names(folder, "b.pcap", "./b.pcap", "sub/../b.pcap", "*.pcap") == ["b.pcap", "odd[1].pcap"]


def test_every_name_that_matches_no_file_is_reported(folder: Path) -> None:
    with pytest.raises(ArgumentError) as raised:
        resolve_captures(["b.pcap", "gone.pcap", "*.pcapng", "none"])
    assert str(raised.value).splitlines() == [
        "Captures cannot be read:",
        "  gone.pcap: there is no such file or folder",
        "  *.pcapng: no file matches this pattern",
        "  none: no file in this folder is a capture, a frame dump (.parquet, .arrow) or a request log; name files "
        "themselves to have them read",
    ]


def test_the_message_on_a_name_in_a_scenario_file_says_where_it_is(folder: Path) -> None:
    (folder / "s.yaml").write_text("captures:\n  - b.pcap\n  - gone.pcap\n  - none\n")
    with pytest.raises(ArgumentError) as raised:
        resolve_run(parse_arguments(["pipeline", "--scenario=s.yaml"]))
    head, gone, empty = str(raised.value).splitlines()
    assert head == "Captures cannot be read:"
    assert gone == "  s.yaml:3: gone.pcap: there is no such file or folder"
    assert empty.startswith("  s.yaml:4: none: no file in this folder is a capture")
    with pytest.raises(ArgumentError, match=r"\n  gone\.pcap: there is no such file or folder$"):
        resolve_run(parse_arguments(["pipeline", "--scenario=s.yaml", "--captures=gone.pcap"]))


def test_a_file_that_cannot_be_opened_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("udfs.capture.storage.open", refuse, raising=False)
    with pytest.raises(ArgumentError, match=r"b\.pcap: cannot be read \(Permission denied\)"):
        resolve_captures(["b.pcap"])


def test_a_path_that_may_not_be_followed_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    too_long = "a.pcap " * 100
    with pytest.raises(ArgumentError, match=rf"\n  {too_long}: cannot be read \(File name too long\)"):
        resolve_captures([too_long])
    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(ArgumentError, match=r"\n  closed/\*\.pcap: cannot be read \(Permission denied\)\. Check"):
        resolve_captures(["closed/*.pcap"])


def test_a_pipe_is_refused_without_waiting_for_it(folder: Path) -> None:
    os.mkfifo("pipe.pcap")
    for named in ("pipe.pcap", "/dev/null"):
        with pytest.raises(ArgumentError, match=rf"\n  {named}: is a pipe or a device, and a capture is read twice\."):
            resolve_captures([named])


def test_a_message_says_that_there_are_no_captures() -> None:
    with pytest.raises(ArgumentError, match="No captures given: name files, folders or patterns with --captures"):
        resolve_captures([])
