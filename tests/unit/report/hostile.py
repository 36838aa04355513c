"""Names of topics and clients that would do harm if a screen or page obeyed them."""

from __future__ import annotations

from pyspark.sql import Row

from jobs.report_page.question import Findings
from jobs.report_page.traffic import (
    fetches_by_reader,
    fetching_consumers,
    fetching_software,
    produced_codecs,
    produced_topics,
)
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from tests.unit.report.findings import findings, one_of_one

NAMES = {
    "markup": "<script>alert('topic')</script>",
    "end of a plot": "</svg></style><img src=x onerror=alert(1)>",
    "quotes": "\"a\" & 'b' `--set=c`",
    "longest": "t" * 249,
    "emoji": "unicorn-\N{UNICORN FACE}",
    "right to left": "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}",
    "turned around": "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe",
    "lines": "first\r\nsecond\tthird\N{LINE SEPARATOR}fourth",
    "terminal": "\x1b[2J\x1b]0;title\x07\x00\x9b1A",
}


def named(*names: str) -> Findings:
    """A capture of topics, producers and consumers of these names."""
    b, f, x = RECORD_BATCHES, FETCH_PARTITIONS, EXCHANGES
    sums = {"batches": 3, "answered": 3, "refused": 1, "largest_taken": 9, "smallest_refused": 10, "bytes": 29,
            "uncompressed": None, "largest_taken_uncompressed": None}  # fmt: skip
    asks: dict[str, int] = {f.max_bytes: 1 << 20, f.min_bytes: 1, f.max_wait_ms: 500}
    consumer = {"fetches": 4, "empty": 1, "bytes": 9000, "median": 3000, **asks}
    software = {"fetches": 4, "full": 1, "sessions": 1, "sessionless": 2, "not_found": 0, "request_bytes": 90,
                "response_bytes": 900, "oldest": 12, "newest": 17}  # fmt: skip
    return findings({
        produced_codecs: [Row(**{b.codec: "none", **sums})],
        produced_topics: [one_of_one(Row(**{b.topic: name, b.client_id: name, **sums})) for name in names],
        fetches_by_reader: [
            Row(reader="consumer", fetches=4, empty=1, beyond=0, bytes=9000, sessions=1, oldest=12, cut=0)
        ],
        fetching_consumers: [one_of_one(Row(**{f.client_id: name, **consumer})) for name in names],
        fetching_software: [
            one_of_one(Row(**{x.client_software_name: name, x.client_software_version: "1", **software}))
            for name in names
        ],
    })  # fmt: skip
