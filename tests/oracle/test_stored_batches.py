"""A batch is refused, or stored in a codec, as in Kafka's own log of a topic with a compression.type."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tests.oracle.conftest import KAFKA_NEWEST, Jars, RunJava
from tests.oracle.test_batch_split import CODECS
from tests.oracle.test_compressed_sizes import OFF_BY, values
from tests.oracle.test_fetch_order_and_reads import KAFKA_PARTS, OTHER_PARTS
from tests.unit.wire.encoding import record
from udfs.columns.records import new_records
from udfs.replay.batch_split.events import SENDING
from udfs.replay.batch_split.state import AS_PRODUCED
from udfs.replay.batch_split.stored_size import checked_sizes
from udfs.wire.compressed_sizes import CODEC_NAMES, compressed_size
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

PRODUCER, UNCOMPRESSED = "producer", "uncompressed"
TYPES = (PRODUCER, UNCOMPRESSED, *CODEC_NAMES[1:])
"""The values of compression.type."""


class Case(NamedTuple):
    """A batch of these values for a topic with these settings. uncompressed: the bytes of its records."""

    compression_type: str
    codec: int
    values: list[bytes]
    limit: int
    uncompressed: int

    @property
    def stored(self) -> int:
        """The number of the topic's codec, or AS_PRODUCED."""
        if self.compression_type == PRODUCER:
            return AS_PRODUCED
        return 0 if self.compression_type == UNCOMPRESSED else CODEC_NAMES.index(self.compression_type)


class Answer(NamedTuple):
    """What Kafka did: the bytes as produced, the bytes as stored or -1 if refused, the codec of the stored batch."""

    produced: int
    stored: int
    codec: str


def records_in(of: list[bytes]) -> bytes:
    """The records of a batch, without compression."""
    return b"".join(record(at, at, None, value) for at, value in enumerate(of))


def cases() -> list[Case]:
    """Batches with limits near their sizes in each codec and without compression, and with a limit of 1 MiB."""
    found = []
    for seed, codec, kind in [(seed, codec, kind) for seed in (1, 2) for codec in range(5) for kind in TYPES]:
        of = values(seed)
        encoded = records_in(of)
        sizes = {RECORD_BATCH_OVERHEAD + compressed_size(each, encoded) for each in range(5)}
        for limit in (*(size + more for size in sizes for more in (-1, 0)), 1 << 20):
            found.append(Case(kind, codec, of, limit, len(encoded)))
    return found


@pytest.fixture(scope="module")
def answers(jars: Jars, run_java: RunJava) -> list[tuple[Case, Answer]]:
    """The answer of Kafka's UnifiedLog to every case."""
    asked = cases()
    parts = (f"org.apache.kafka:{name}:{KAFKA_NEWEST}" for name in KAFKA_PARTS)
    lines = (
        " ".join([case.compression_type, str(case.limit), CODEC_NAMES[case.codec], *(of.hex() for of in case.values)])
        for case in asked
    )
    printed = run_java("AppendsToLog.java", *jars(*parts, *OTHER_PARTS, *CODECS), stdin="\n".join(lines) + "\n")
    told = [line.split() for line in printed.splitlines()]
    return list(zip(asked, (Answer(int(sent), int(kept), codec) for sent, kept, codec in told), strict=True))


def test_a_batch_is_stored_in_the_topics_codec(answers: list[tuple[Case, Answer]]) -> None:
    taken = [(case, answer) for case, answer in answers if answer.stored >= 0]
    assert {case.compression_type for case, _ in taken} == set(TYPES)
    for case, answer in taken:
        codec = case.codec if case.stored == AS_PRODUCED else case.stored
        assert answer.codec == CODEC_NAMES[codec]
        if codec == case.codec:
            assert answer.stored == answer.produced


def test_a_batch_is_refused_for_its_size_as_sent_or_as_stored(answers: list[tuple[Case, Answer]]) -> None:
    """Sizes that are not known may differ by as much as other versions of the codecs do."""
    refused_as_stored = 0
    for case, answer in answers:
        sending = new_records(
            SENDING, 1, topic=0, size=answer.produced, codec=case.codec, uncompressed=case.uncompressed
        )
        size, is_known = (column.item() for column in checked_sizes(sending, np.array([case.stored])))
        off_by = 0.0
        if not is_known:
            stored = RECORD_BATCH_OVERHEAD + compressed_size(case.stored, records_in(case.values))
            size, off_by = max(size, stored), OFF_BY[CODEC_NAMES[case.stored]] * stored
        assert is_known == (case.stored in (AS_PRODUCED, 0, case.codec))
        if not is_known and abs(size - case.limit) <= off_by + 1:
            continue
        assert (answer.stored < 0) == (size > case.limit), (case.compression_type, case.codec, case.limit)
        refused_as_stored += answer.stored < 0 and answer.produced <= case.limit
    assert refused_as_stored > 50
