"""Changes that a user cannot notice, each with the reason; a mutation run counts them separately.

If the code can be written so that it has no such change, that is better than an entry here.
"""

from __future__ import annotations

EQUAL: dict[tuple[str, str, str], str] = {
    (
        "udfs/capture/reassembly.py",
        "end > direction.position",
        "end >= direction.position",
    ): "no byte is between, and the position stays where it is",
    (
        "udfs/capture/reassembly.py",
        "stream_end(streams[side]) > direction.position",
        "stream_end(streams[side]) >= direction.position",
    ): "a skip to where the position is counts no byte",
    (
        "udfs/facts/arrow_tables.py",
        "len(of_table) >= HELD_BATCHES",
        "len(of_table) > HELD_BATCHES",
    ): "one batch more is held, and rows are packed at the same row",
    (
        "udfs/replay/partition_limits/curve.py",
        "replicas // np.maximum(others, 1)",
        "replicas * np.maximum(others, 1)",
    ): "more limits are tried, which are too high to refuse anything and so add no step to the curve",
    (
        "udfs/replay/partition_limits/curve.py",
        "brokers.table['unfenced'].sum() - factor + 1",
        "brokers.table['unfenced'].sum() - factor - 1",
    ): "more limits are tried, which are too high to refuse anything and so add no step to the curve",
    (
        "udfs/replay/session_cache/cache.py",
        "session_id <= 0",
        "session_id < 0",
    ): "no session that is there has the id 0, so that none is found for it either way",
    (
        "udfs/replay/session_cache/cache.py",
        "session_id > 0",
        "session_id >= 0",
    ): "a client's place is NONE once its session is closed, so that there is none with the id 0 at it",
    (
        "udfs/replay/fetch_max_bytes/warm_up.py",
        "1 << 20",
        "1 >> 20",
    ): "the same kernels are compiled, whatever limit they are called with",
    (
        "udfs/replay/session_cache/contents/entries.py",
        "slot + 1",
        "slot - 1",
    ): "a partition is looked for in the slots on the other side, as it was put there",
    (
        "udfs/replay/session_cache/memory.py",
        "cache.headroom[0] >= more",
        "cache.headroom[0] > more",
    ): "memory for more sessions is made one event sooner",
    (
        "udfs/replay/shared/columns.py",
        "(end + 7) // 8",
        "(end + 7) * 8",
    ): "the bits behind those of the column's rows are cut off all the same",
    (
        "udfs/replay/shared/int_map.py",
        "place + 1",
        "place - 1",
    ): "a key is looked for in the places on the other side, as it was put there",
    (
        "udfs/replay/shared/columns.py",
        "width > max(LARGEST_TABLE, len(code))",
        "width >= max(LARGEST_TABLE, len(code))",
    ): "codes have the same numbers, whether a table or sorting gives them",
    (
        "udfs/replay/shared/line_fit.py",
        "rest >= 0",
        "rest > 0",
    ): "where nothing is left, the mean of the times is the time of amount 0, and the slope is 0 either way",
}
"""By (file, expression, the changed expression): why no result changes. The text follows the word `for`."""
