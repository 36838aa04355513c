"""The size in which a broker stores a batch, if the topic's compression.type makes it compress batches again.

A broker checks max.message.bytes twice: for the batch as it was sent and, if it compressed the batch in another codec,
for the batch as it is stored (UnifiedLog.append and LogValidator of Kafka 4.4). A batch in the topic's codec stays as
it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Bools, Ints, Records
from udfs.kernels.kernel import kernel
from udfs.replay.batch_split.state import AS_PRODUCED, ProducerSim, codec_of, topic_of
from udfs.wire.compressed_sizes import CODEC_NAMES
from udfs.wire.record_batches import RECORD_BATCH_OVERHEAD

UNCOMPRESSED = CODEC_NAMES.index("none")


@kernel
def modelled_size(sim: ProducerSim, lane: int, first: int, codec: int) -> int:
    """Bytes of a closed batch, from the model of sizes."""
    ready, sizes = sim.ready[first], sim.capture.sizes
    if codec == UNCOMPRESSED:
        return RECORD_BATCH_OVERHEAD + ready.uncompressed
    cost = sizes.cost[sim.settings[lane].is_fitted, codec]
    inside = sizes.fixed[codec, first] + cost[ready.end] - cost[first]
    return RECORD_BATCH_OVERHEAD + max(1, int(np.rint(inside)))


@kernel
def checked_size(sim: ProducerSim, lane: int, first: int, size: int) -> int:
    """The bytes that have to be within max.message.bytes: those of the batch as sent, or those of the stored batch by
    the model, if these are more. size: bytes of the batch as sent.
    """
    stored = sim.rules.stored[topic_of(sim, first)]
    if stored == AS_PRODUCED or stored == codec_of(sim, lane, first):
        return size
    return max(size, modelled_size(sim, lane, first, stored))


class Checked(NamedTuple):
    """The sizes that brokers checked for captured batches. size: int64[n]. is_known: bool[n], whether the capture shows
    the size, which it does not if the broker compressed the batch again.
    """

    size: Ints
    is_known: Bools


def checked_sizes(sendings: Records, stored: Ints) -> Checked:
    """The sizes that brokers checked for captured batches; if they are not known, the sizes as sent.

    sendings: SENDING[n]. stored: int64[topics], the codecs that brokers compress topics' batches into, or AS_PRODUCED.
    """
    size, codec = sendings["size"], stored[sendings["topic"]]
    stays = (codec == AS_PRODUCED) | (codec == sendings["codec"])
    is_opened = ~stays & (codec == UNCOMPRESSED) & (sendings["uncompressed"] > 0)
    opened = np.maximum(size, RECORD_BATCH_OVERHEAD + sendings["uncompressed"])
    return Checked(np.where(is_opened, opened, size), stays | is_opened)
