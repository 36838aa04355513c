"""Changes that a user cannot notice, each with the reason; a mutation run counts them separately.

If the code can be written so that it has no such change, that is better than an entry here.
"""

from __future__ import annotations

EQUAL: dict[tuple[str, str, str], str] = {
    (
        "udfs/capture/reassembly.py",
        "end > direction.position",
        "end >= direction.position",
    ): "there is no byte in between, and the position does not change",
    (
        "udfs/capture/reassembly.py",
        "stream_end(streams[side]) > direction.position",
        "stream_end(streams[side]) >= direction.position",
    ): "a skip to the current position counts no bytes",
    (
        "udfs/facts/arrow_tables.py",
        "len(of_table) >= HELD_BATCHES",
        "len(of_table) > HELD_BATCHES",
    ): "one more batch is held, and rows are packed at the same row",
    (
        "udfs/replay/consumer_memory/fetch_queue/fetcher.py",
        "full_until(sim) - now + backoff",
        "full_until(sim) - now - backoff",
    ): "it looks again sooner, and finds the queue still full as often",
    (
        "udfs/replay/batch_split/possible_estimates/estimates.py",
        "memory.possible[place].waits <= added.waits",
        "memory.possible[place].waits < added.waits",
    ): "of two ways with as many waits, either is one with the fewest",
    (
        "udfs/replay/batch_split/possible_estimates/fidelity.py",
        "progress.steps > MOST_STEPS // 2",
        "progress.steps >= MOST_STEPS // 2",
    ): "the ways are reduced to one a step earlier, long before there is no room",
    (
        "udfs/replay/batch_split/splitting.py",
        "record - begin",
        "record + begin",
    ): "a part is as large as its first record may be, so it has room for that record in any case",
    (
        "udfs/replay/shared/correlation_ids.py",
        "0 < own[0, 1] - known[:, 1].max() <= NEXT_IDS",
        "0 <= own[0, 1] - known[:, 1].max() <= NEXT_IDS",
    ): "a connection with an id that the process has, too, is not of the process",
    (
        "udfs/replay/consumer_memory/fetch_queue/levels.py",
        "view.messages[taken.by_messages + 1] < messages",
        "view.messages[taken.by_messages + 1] <= messages",
    ): "if all messages of a response are taken, it does not matter whether they are its last or those before the next",
    (
        "udfs/replay/partition_limits/curve.py",
        "replicas // np.maximum(others, 1)",
        "replicas * np.maximum(others, 1)",
    ): "the added limits are too high to refuse anything, so the curve has no more steps",
    (
        "udfs/replay/partition_limits/curve.py",
        "brokers.table['unfenced'].sum() - factor + 1",
        "brokers.table['unfenced'].sum() - factor - 1",
    ): "the added limits are too high to refuse anything, so the curve has no more steps",
    (
        "udfs/replay/session_cache/cache.py",
        "session_id <= 0",
        "session_id < 0",
    ): "no session has the id 0, so none is found either way",
    (
        "udfs/replay/session_cache/cache.py",
        "session_id > 0",
        "session_id >= 0",
    ): "a client whose session is closed has the place NONE, so no place has the id 0",
    (
        "udfs/replay/fetch_max_bytes/warm_up.py",
        "1 << 20",
        "1 >> 20",
    ): "the same kernels are compiled, whatever limit they are called with",
    (
        "udfs/replay/session_cache/contents/entries.py",
        "client.count + more <= client.room",
        "client.count + more < client.room",
    ): "entries move to more memory while the last place is still free",
    (
        "udfs/replay/session_cache/contents/entries.py",
        "slot + 1",
        "slot - 1",
    ): "partitions are put, and looked for, in the slots on the other side",
    (
        "udfs/replay/session_cache/memory.py",
        "cache.headroom[0] >= more",
        "cache.headroom[0] > more",
    ): "memory for more sessions is made one event earlier",
    (
        "udfs/replay/shared/columns.py",
        "(end + 7) // 8",
        "(end + 7) * 8",
    ): "the bits after those of the column's rows are cut off either way",
    (
        "udfs/replay/shared/columns.py",
        "width > LARGEST_WIDTH",
        "width >= LARGEST_WIDTH",
    ): "numbers have the same order, whether or not they are made smaller first",
    (
        "udfs/replay/shared/row_order.py",
        "first < order.size",
        "first <= order.size",
    ): "behind the last row there is no row to sort",
    (
        "udfs/replay/shared/int_map.py",
        "place + 1",
        "place - 1",
    ): "keys are put, and looked for, in the places on the other side",
    (
        "udfs/replay/shared/columns.py",
        "width > max(LARGEST_TABLE, len(code))",
        "width >= max(LARGEST_TABLE, len(code))",
    ): "codes have the same numbers, whether a table or sorting gives them",
    (
        "udfs/replay/shared/taken_rows.py",
        "order[1:] > order[:-1]",
        "order[1:] >= order[:-1]",
    ): "each row has one place",
    (
        "udfs/replay/shared/event_heap.py",
        "heap.code[a] < heap.code[b]",
        "heap.code[a] <= heap.code[b]",
    ): "of two equal events, either may be first",
    (
        "udfs/replay/shared/event_heap.py",
        "2 * place + 1 < last",
        "2 * place + 1 <= last",
    ): "the event behind the last one is that which is moved down, and does not come before itself",
    (
        "udfs/replay/shared/line_fit.py",
        "rest >= 0",
        "rest > 0",
    ): "if nothing is left, the mean of the times is the time of amount 0, and the slope is 0 either way",
    (
        "udfs/facts/number_columns.py",
        "(n + _BITS - 1) // _BITS",
        "(n + _BITS - 1) * _BITS",
    ): "the bits behind those of the last row belong to no row",
    (
        "udfs/wire/frame_loop.py",
        "level + USED",
        "level - USED",
    ): "USED is the first cell of a level, number 0",
    (
        "udfs/wire/records.py",
        "at < 0",
        "at <= 0",
    ): "a number takes a byte at least, so that none ends at 0",
}
"""By (file, expression, the changed expression): why no result changes. The text follows the word `for`."""
