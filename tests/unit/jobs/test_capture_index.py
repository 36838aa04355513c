"""Files that are no captures are left out, and a line names them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.captures.capture_index import check_faults, index_batches, index_file
from jobs.captures.capture_plan import plan_capture
from tests.unit.capture.frame_dumps import DUMP, write_arrow
from udfs.capture.file_index import CaptureIndex
from udfs.capture.request_log_head import UTC
from udfs.errors import CaptureError


def indexes_of(*paths: Path) -> tuple[list[CaptureIndex], list[str]]:
    """What a task finds: the index of each file that has one, and the faults of files."""
    files = pa.RecordBatch.from_pydict({"file_no": list(range(len(paths))), "path": list(map(str, paths))})
    rows = [row for batch in index_batches([files], UTC) for row in batch.to_pylist()]
    found = [pickle.loads(row["content"]) for row in rows if row["content"]]  # noqa: S301
    return found, [row["fault"] for row in rows if row["fault"]]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.pcap"
    path.write_text("no capture")
    return path


@pytest.fixture
def sample(repository: Path) -> Path:
    return repository / "tests/captures/starve.pcap.zst"


def test_a_file_that_is_no_capture_is_left_out_of_those_that_are(
    text: Path, sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = text.with_name("cut.parquet")
    cut.write_bytes(b"PAR1" + bytes(40))
    indexes, faults = indexes_of(text, sample, cut)
    check_faults(faults, [index.format for index in indexes], 3)
    told = capsys.readouterr().err
    assert f"refetch: left out: {text}: the content is text; " in told
    assert f"refetch: left out: {cut}: cannot be read as parquet" in told
    of_text, whole, of_cut = indexes
    assert whole.counts.packets > 0
    for index, size in ((of_text, 10), (of_cut, 44)):
        assert [(fault.reason, fault.bytes_not_read) for fault in index.faults] == [("not_a_capture", size)]
        assert (index.format, index.size_bytes, index.counts.packets, index.ranges) == ("none", size, 0, [])
    plan = plan_capture(tuple(indexes), 2)
    assert [(plan.indexes[file_no], part) for file_no, part in plan.packets.ranges] == [(whole, *whole.ranges)]


def test_files_of_which_none_is_a_capture_are_refused_together(text: Path) -> None:
    empty, image = text.with_name("empty.pcap"), text.with_name("image.pcap")
    empty.touch()
    image.write_bytes(b"\x89PNG\r\n")
    indexes, faults = indexes_of(text, empty, image)
    with pytest.raises(CaptureError) as refused:
        check_faults(faults, [index.format for index in indexes], 3)
    assert [line.split(":")[0].rpartition("/")[2] for line in str(refused.value).splitlines()] == [
        "text.pcap", "image.pcap",
    ]  # fmt: skip


def test_an_empty_file_alone_is_damage_and_no_refusal(tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").touch()
    indexes, faults = indexes_of(tmp_path / "empty.pcap")
    check_faults(faults, [index.format for index in indexes], 1)


def test_a_file_that_cannot_be_read_is_refused_whatever_is_beside_it(sample: Path, tmp_path: Path) -> None:
    indexes, faults = indexes_of(sample, tmp_path / "gone.pcap")
    with pytest.raises(CaptureError, match=r"gone\.pcap: cannot be read"):
        check_faults(faults, [index.format for index in indexes], 2)


def test_an_empty_file_does_not_count_as_packets_beside_a_frame_dump(tmp_path: Path) -> None:
    (tmp_path / "empty.parquet").touch()
    dump = write_arrow(tmp_path / "frames.arrow", DUMP.empty_table())
    plan = plan_capture((index_file(str(tmp_path / "empty.parquet")), index_file(str(dump))), 2)
    assert {index.format for index in plan.indexes} == {"none", "arrow"}
