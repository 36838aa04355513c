"""The lists of a full request and of responses: partitions in the order in which the broker reads them.

What an incremental response lists is the difference between two answers, whatever the lane (maybeUpdateResponseData of
org.apache.kafka.server.FetchSession.CachedPartition, Kafka 4.3).

An answer with an error has no high watermark: a broker remembers the same of it after a full response, which has -1,
and after an incremental one, for which it sets -1.
"""

from __future__ import annotations

from udfs.columns.arrays import Record
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.session_entries import ANSWERED, CAPTURED, NOT_TOLD, RETURNED, WANTED, Memory, Partitions
from udfs.replay.session_cache.session_fetches import is_incremental, is_told
from udfs.wire.fetch_sizes import FetchSizes, name_bytes, record_length_bytes, tally


@kernel
def must_return(entry: Record, rows: Partitions, row: int) -> bool:
    """CachedPartition.maybeUpdateResponseData: does an incremental response have the partition?"""
    return (
        rows.records_bytes[row] > 0
        or entry.high_watermark != rows.high_watermark[row]
        or entry.log_start_offset != rows.log_start_offset[row]
        or rows.preferred_read_replica[row] >= 0
        or rows.error[row] != 0
    )


@kernel
def remember(entry: Record, rows: Partitions, row: int) -> None:
    """The broker remembers what it told."""
    entry.high_watermark = NOT_TOLD if rows.error[row] != 0 else rows.high_watermark[row]
    entry.log_start_offset = rows.log_start_offset[row]


@kernel
def answer_partition(memory: Memory, rows: Partitions, row: int, fetch: Record, is_flexible: int) -> None:
    """Count a partition among those of its topic in the lists of responses that it is in."""
    entry, of_topic = memory.entries[memory.places[row - fetch.first]], memory.of_topic[0]
    records, returns = record_length_bytes(rows.records_bytes[row], is_flexible), must_return(entry, rows, row)
    is_captured = rows.is_returned[row] == 1
    of_topic.answered += 1
    of_topic.answered_bytes += records
    if returns:
        of_topic.returned += 1
        of_topic.returned_bytes += records
    if is_captured:
        of_topic.captured += 1
        of_topic.captured_bytes += records
    if is_told(fetch):
        fetch.misreturned += is_incremental(fetch) and returns != is_captured
        remember(entry, rows, row)


@kernel
def write_topic(memory: Memory, rows: Partitions, row: int, fetch: Record, sizes: FetchSizes) -> None:
    """Write what was counted of the topic of a row in the lists of responses."""
    of_topic, tallies, version = memory.of_topic[0], memory.tallies, fetch.version
    flexible, topic = sizes.is_flexible[version], rows.topic[row]
    named = sizes.response_topic[version] + name_bytes(rows.name_length[row], version, flexible)
    each = sizes.response_partition[version]
    answered, returned, captured = of_topic.answered, of_topic.returned, of_topic.captured
    tally(tallies[ANSWERED], topic, named, answered, answered * each + of_topic.answered_bytes, flexible)
    tally(tallies[RETURNED], topic, named, returned, returned * each + of_topic.returned_bytes, flexible)
    tally(tallies[CAPTURED], topic, named, captured, captured * each + of_topic.captured_bytes, flexible)


@kernel
def write_wanted(memory: Memory, rows: Partitions, row: int, fetch: Record, sizes: FetchSizes, wanted: int) -> None:
    """Write so many partitions of the topic of a row in the list of a full request."""
    version = fetch.version
    flexible = sizes.is_flexible[version]
    named = sizes.request_topic[version] + name_bytes(rows.name_length[row], version, flexible)
    tally(memory.tallies[WANTED], rows.topic[row], named, wanted, wanted * sizes.request_partition[version], flexible)


@kernel
def begin_topic(of_topic: Record) -> None:
    """Nothing is counted of a topic."""
    of_topic.answered = of_topic.returned = of_topic.captured = 0
    of_topic.answered_bytes = of_topic.returned_bytes = of_topic.captured_bytes = 0


@kernel
def answer_topic(
    memory: Memory, rows: Partitions, row: int, fetch: Record, sizes: FetchSizes, with_errors: bool
) -> tuple[int, int]:
    """Write the partitions of one topic that stand together, from `row` on, in the lists that they are in.

    with_errors: those whose answer has an error, else the others and, in a full request, all. Returns the row behind
    them, and how many have errors.
    """
    begin_topic(memory.of_topic[0])
    wanted, errors, at = 0, 0, row
    while at < fetch.end and rows.topic[at] == rows.topic[row]:
        if rows.is_wanted[at] == 1:
            has_error = rows.error[at] != 0
            wanted += 1
            errors += has_error
            if has_error == with_errors:
                answer_partition(memory, rows, at, fetch, sizes.is_flexible[fetch.version])
        at += 1
    write_topic(memory, rows, row, fetch, sizes)
    if not with_errors:
        write_wanted(memory, rows, row, fetch, sizes, wanted)
    return at, errors


@kernel
def answer(memory: Memory, rows: Partitions, fetch: Record, sizes: FetchSizes, with_errors: bool) -> int:
    """The lists of a full request and of responses, partitions in the order in which they are read; those whose answer
    has an error come behind the others in a response. Returns how many have.
    """
    errors, row = 0, fetch.first
    while row < fetch.end:
        row, more = answer_topic(memory, rows, row, fetch, sizes, with_errors)
        errors += more
    return errors
