"""The view of lanes has a column for each setting."""

from __future__ import annotations

import pyarrow as pa

from jobs.lake_views import table_of_lanes


def test_a_setting_with_numbers_is_a_column_of_numbers_that_is_null_in_lanes_as_captured() -> None:
    fetch = ["captured", "consumer.fetch.max.bytes=1MiB,consumer.max.poll.records=50"]
    rows = table_of_lanes({"fetch_max_bytes": fetch, "session_cache": ["captured", "profile=java-3.9"]})
    assert rows.to_pylist() == [
        row("fetch_max_bytes", "captured", 0),
        row("fetch_max_bytes", fetch[1], 1, fetch_max_bytes=1 << 20, max_poll_records=50),
        row("session_cache", "captured", 0),
        row("session_cache", "profile=java-3.9", 1, profile="java-3.9"),
    ]
    assert rows.schema.field("fetch_max_bytes").type == pa.int64()


def test_columns_of_settings_with_the_same_name_are_called_by_their_whole_keys() -> None:
    lane = "consumer.fetch.max.bytes=1MiB,broker.fetch.max.bytes=8MiB"
    (only,) = table_of_lanes({"fetch_max_bytes": [lane]}).to_pylist()
    assert (only["consumer_fetch_max_bytes"], only["broker_fetch_max_bytes"]) == (1 << 20, 8 << 20)


def row(algorithm: str, scenario: str, place: int, **settings: object) -> dict[str, object]:
    every = dict.fromkeys(("fetch_max_bytes", "max_poll_records", "profile"))
    return {"algorithm": algorithm, "scenario": scenario, "place": place, **every, **settings}
