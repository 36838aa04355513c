"""Message sets of formats 0 and 1 in the replay of fetches: what is in the log, and what a broker converted it to."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.tables.event_kinds import LogEvent
from tests.unit.replay.fetch_max_bytes.captured_reader import lanes_of, read_row
from tests.unit.replay.fetch_max_bytes.test_closed_loop import gold
from udfs.replay.shared.lanes import AS_CAPTURED


def batch(
    first: int, last: int, size: int, *, is_old: bool, version: int | None = None, produced: int | None = None
) -> dict[str, Any]:
    """A batch of a fetch response, or of a produce request at the time `produced`."""
    return {
        "topic": "t", "topic_key": "t", "partition": 0, "kind": LogEvent.BATCH, "position": first, "last_offset": last,
        "size_bytes": size, "append_after": produced, "append_before": 0, "is_old_format": is_old,
        "api_version": version,
    }  # fmt: skip


def read(returned: int, *, version: int, offset: int = 0, end: int = 20) -> dict[str, Any]:
    """A fetch of at most 150 bytes of the partition, whose records end before the offset `end`."""
    bound = {"bound_low": end, "bound_high": end, "response_bound": end, "fetch_offset": offset, "api_version": version}
    limits = {"max_bytes": 1 << 30, "partition_max_bytes": 150, "in_session": False, "opens_session": False}
    return read_row(0, 0, 0, 0, returned) | bound | limits


def fidelity(*events: dict[str, Any]) -> tuple[int, int, int, dict[str, int]]:
    """Checked, agreed, unknown and reasons of the open loop's fetches with records."""
    (row,) = [
        row for row in gold(list(events), lanes_of(AS_CAPTURED))["fidelity"] if row["metric"] == "fetches_with_records"
    ]
    return row["checked"], row["agreed"], row["unknown"], dict(row["reasons"])


WRAPPERS = (batch(0, 9, 100, is_old=True), batch(10, 19, 100, is_old=True))


@pytest.mark.parametrize("version", [2, 3, 11])
def test_a_log_of_wrappers_is_read_in_slices_of_bytes(version: int) -> None:
    assert fidelity(*WRAPPERS, read(150, version=version)) == (1, 1, 0, {})
    assert fidelity(*WRAPPERS, read(140, version=version)) == (1, 0, 0, {"fewer_bytes": 1})


def test_a_slice_begins_with_the_wrapper_that_holds_the_offset() -> None:
    assert fidelity(*WRAPPERS, read(100, version=3, offset=15)) == (1, 1, 0, {})


def test_a_fetch_before_version_3_gets_a_part_of_a_wrapper_that_is_too_large() -> None:
    large = batch(0, 19, 400, is_old=True)
    assert fidelity(large, read(150, version=2)) == (1, 1, 0, {})
    assert fidelity(large, read(400, version=3)) == (1, 1, 0, {})


def test_a_batch_that_a_broker_converted_is_not_in_the_log_and_its_fetch_is_unknown() -> None:
    """A client of today, and one that gets the same records as message sets, read the same log."""
    log = batch(0, 9, 80, is_old=False), batch(10, 19, 90, is_old=False)
    assert fidelity(*log, *WRAPPERS, read(150, version=11)) == (1, 1, 0, {})
    assert fidelity(*log, *WRAPPERS, read(100, version=2)) == (0, 0, 1, {"converted_format": 1})


def test_a_topic_of_an_older_format_keeps_record_batches_as_message_sets() -> None:
    """message.format.version: a fetch by version 4 or later is answered in the format of the log."""
    sent = [batch(0, 9, 80, is_old=False, produced=-10), batch(10, 19, 90, is_old=False, produced=-10)]
    kept = [batch(0, 9, 100, is_old=True, version=11), batch(10, 19, 100, is_old=True, version=11)]
    assert fidelity(*sent, *kept, read(100, version=11, offset=10)) == (1, 1, 0, {})
    assert fidelity(*sent, *kept, read(100, version=2, offset=10)) == (1, 1, 0, {})


def test_a_log_whose_format_changed_has_both() -> None:
    """The older part is as the broker converted it, the later part as it was sent."""
    sent = [batch(0, 9, 80, is_old=False, produced=-10), batch(10, 19, 90, is_old=False, produced=-10)]
    kept = [batch(0, 9, 100, is_old=True, version=11), batch(10, 19, 90, is_old=False, version=11)]
    assert fidelity(*sent, *kept, read(100, version=11, end=10)) == (1, 1, 0, {})
    assert fidelity(*sent, *kept, read(90, version=11, offset=10)) == (1, 1, 0, {})
