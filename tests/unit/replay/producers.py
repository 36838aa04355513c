"""A producer for the replay of KIP-126: its settings, its records and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from udfs.replay.accumulator import NEVER, Batches, Log, Sizes, Topics, no_sums, no_timeline, run, working_memory
from udfs.replay.compression_estimate import DETERIORATE_STEP, ESTIMATION_FACTOR, IMPROVING_STEP, TODAY, Producers
from udfs.wire.records import CODEC_NAMES


@dataclass(frozen=True)
class Producer:
    """Settings of one lane; a batch that is ready is sent at once, and refused at once."""

    batch_size: int
    limit: int
    linger: int
    codec: str
    halves: bool = True
    profile: int = TODAY

    @property
    def codec_number(self) -> int:
        return CODEC_NAMES.index(self.codec)


@dataclass(frozen=True)
class Outcome:
    """What came of a producer's records."""

    batches: int
    splits: int
    split_batches: int
    bytes_sent: int
    failed: int
    estimate: np.float32


def lanes_of(*producers: Producer) -> Producers:
    """A lane a producer."""

    def whole(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, np.int64)

    def single(value: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        return np.full(len(producers), value, np.float32)

    return Producers(
        whole([p.batch_size for p in producers]), whole([p.limit for p in producers]),
        whole([p.linger * 1000 for p in producers]), whole([p.codec_number for p in producers]),
        whole([p.profile for p in producers]), whole([p.halves for p in producers]), whole([0 for _ in producers]),
        single(IMPROVING_STEP), single(DETERIORATE_STEP), single(ESTIMATION_FACTOR),
    )  # fmt: skip


def a_log(records: Sequence[tuple[int, int]]) -> Log:
    """Records of one partition, each (ms after the one before, bytes of its value), without key and headers."""
    n = len(records)
    ms = np.cumsum([wait for wait, _ in records])
    content = np.array([1 + varint(size) + size + 1 for _, size in records], np.int64)
    none = np.zeros(n, np.int64)
    return Log(ms * 1000, ms, content, none, none, np.full(n, NEVER), np.arange(n))


def varint(value: int) -> int:
    """Bytes of a zig-zag varint of a value that is not negative."""
    return max(1, -(-(2 * value).bit_length() // 7))


def replayed(producer: Producer, log: Log, sizes: Sizes) -> Outcome:
    """The records of one topic with one partition, replayed."""
    one, never = np.zeros(1, np.int64), np.full(1, NEVER)
    batches = Batches(one, one, never, one, one, never)
    estimates = np.ones((1, 1, 5), np.float32)
    sums, line = no_sums(1, 1), no_timeline(1, 1)
    run(
        working_memory(len(log.time), 1, 1),
        log,
        batches,
        Topics(one, one),
        sizes,
        estimates,
        lanes_of(producer),
        0,
        sums,
        line,
    )
    return Outcome(
        *(
            int(column[0, 0])
            for column in (sums.batches, sums.splits, sums.split_batches, sums.bytes_sent, sums.failed)
        ),
        estimates[0, 0, producer.codec_number],
    )
