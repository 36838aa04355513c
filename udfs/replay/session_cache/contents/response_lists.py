"""The lists of a full request and of responses: partitions in the order in which the broker reads them.

In every lane, an incremental response lists the difference between two answers (maybeUpdateResponseData of
org.apache.kafka.server.FetchSession.CachedPartition, Kafka 4.3).

An answer with an error has no high watermark. The broker then remembers -1: after a full response because the response
says -1, and after an incremental response because the broker sets -1.
"""

from __future__ import annotations

from udfs.columns.arrays import Record, Records
from udfs.columns.sentinels import NONE
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.contents.entries import find_entry, is_altered
from udfs.replay.session_cache.contents.state import ANSWERED, IN_CAPTURE, RETURNED, WANTED, Contents
from udfs.replay.session_cache.state import is_answer_known, is_incremental
from udfs.wire.fetch_sizes import name_bytes, record_length_bytes, tally_partitions


@kernel
def must_return(entry: Record, row: Record) -> bool:
    """CachedPartition.maybeUpdateResponseData: whether an incremental response has the partition."""
    return bool(
        row.records_bytes > 0
        or entry.high_watermark != row.high_watermark
        or entry.log_start_offset != row.log_start_offset
        or row.preferred_read_replica >= 0
        or row.diverging_epoch >= 0
        or row.error != 0
    )


@kernel
def remember_answer(entry: Record, row: Record) -> None:
    """Let the broker remember its answer."""
    entry.high_watermark = NONE if row.error != 0 else row.high_watermark
    entry.log_start_offset = row.log_start_offset


@kernel
def note_wanted(contents: Contents, client: Record, row: Record, number: int, fetch: Record) -> int:
    """Note that a fetch wants a partition; returns the index of its entry. number: of the row."""
    reading, place = contents.reading[0], find_entry(contents, client, row)
    entry = contents.entries[place]
    reading.likely = place + 1
    fetch.size += entry.wanted_by != fetch.number
    entry.wanted_by, entry.row = fetch.number, number
    reading.changes |= is_altered(entry, row) or (is_incremental(fetch) and row.is_listed == 1)
    reading.wanted += 1
    return place


@kernel
def note_answered(contents: Contents, entry: Record, row: Record, fetch: Record) -> None:
    """Count a partition with its topic, in each list of a response that has it."""
    reading = contents.reading[0]
    records = record_length_bytes(row.records_bytes, reading.flexible)
    returns, is_in_capture = must_return(entry, row), row.is_returned == 1
    reading.answered += 1
    reading.answered_bytes += records
    if returns:
        reading.returned += 1
        reading.returned_bytes += records
    if is_in_capture:
        reading.in_capture += 1
        reading.in_capture_bytes += records
    if is_answer_known(fetch):
        fetch.misreturned += is_incremental(fetch) and returns != is_in_capture
        remember_answer(entry, row)


@kernel
def begin_topic(reading: Record) -> None:
    """Begin to count a topic's partitions, from 0."""
    reading.wanted = reading.answered = reading.returned = reading.in_capture = 0
    reading.answered_bytes = reading.returned_bytes = reading.in_capture_bytes = 0


@kernel
def write_topic(contents: Contents, row: Record, version: int) -> None:
    """Write the counts of a row's topic, in each list that has the topic."""
    reading, tallies, sizes = contents.reading[0], contents.tallies, contents.sizes
    flexible = reading.flexible
    topic, name = row.topic, name_bytes(row.name_length, version, flexible)
    wanted, answered, returned, in_capture = reading.wanted, reading.answered, reading.returned, reading.in_capture
    named, each = sizes.request_topic[version] + name, sizes.request_partition[version]
    tally_partitions(tallies[WANTED], topic, named, wanted, wanted * each, flexible)
    named, each = sizes.response_topic[version] + name, sizes.response_partition[version]
    tally_partitions(tallies[ANSWERED], topic, named, answered, answered * each + reading.answered_bytes, flexible)
    tally_partitions(tallies[RETURNED], topic, named, returned, returned * each + reading.returned_bytes, flexible)
    tally_partitions(
        tallies[IN_CAPTURE], topic, named, in_capture, in_capture * each + reading.in_capture_bytes, flexible
    )


@kernel
def read_topic(contents: Contents, client: Record, rows: Records, first: int, fetch: Record) -> int:
    """Read successive partitions of one topic, from row `first` on. Returns the row behind them.

    rows: LISTED_PARTITION[n].
    """
    reading, row = contents.reading[0], first
    begin_topic(reading)
    is_full = fetch.epoch == 0
    while row < fetch.end and rows[row].topic == rows[first].topic:
        partition, place = rows[row], NONE
        if partition.is_wanted == 1:
            place = note_wanted(contents, client, partition, row, fetch)
            fetch.strayed += is_full and partition.is_returned == 0
            if partition.error != 0:
                reading.errors += 1
            else:
                note_answered(contents, contents.entries[place], partition, fetch)
        else:
            fetch.strayed += partition.is_returned == 1
        contents.places[row - fetch.first] = place
        row += 1
    write_topic(contents, rows[first], fetch.version)
    return row


@kernel
def answer_errors(contents: Contents, rows: Records, fetch: Record) -> None:
    """Write the partitions whose answer has an error. They come after the others in a response.

    rows: LISTED_PARTITION[n].
    """
    for row in range(fetch.first, fetch.end):
        place = contents.places[row - fetch.first]
        if place != NONE and rows[row].error != 0:
            begin_topic(contents.reading[0])
            note_answered(contents, contents.entries[place], rows[row], fetch)
            write_topic(contents, rows[row], fetch.version)
