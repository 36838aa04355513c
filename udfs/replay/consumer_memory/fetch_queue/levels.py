"""How full a librdkafka consumer's queue can have been, as its fetches show it.

A consumer that asks for more has less in its queue than the thresholds, whatever the application did. What a thread
has received is in the queue by the time at which that thread asks again; before, it may still be decompressing it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records, edges, read_only
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel

PARSED_US = 1_000_000
"""What has come is in the queue by then (us)."""

LEVEL = int_fields(
    "most_bytes",  # in the queue, when the response had come
    "may_be_full",  # 1: the queue can have been full between the response before on the connection and this request
    "is_full_at_most",  # 1: ... even without what other threads may not have put into it by then
)
"""What is known of the queue at a response."""
SEEN = int_fields(
    "bytes",  # of its last response, while it may not be in the queue
    "messages",
    "arrived_at",  # us
    "may_be_full",
    "is_full_at_most",
)
"""What a thread has shown since its last response."""
TAKEN = int_fields(
    "messages",  # that the application has taken, at least
    "bytes",
    "by_messages",  # the response that has the last of so many messages
    "by_bytes",
)
"""How far the application has come."""


class Levels(NamedTuple):
    """What levels are found in. responses: RESPONSE[n], by arrival. order: int64[2 n], arrivals (below n) and requests
    (from n on) as they come. messages, value_bytes: int64[n + 1], of all responses before. thresholds: THRESHOLDS[1].
    seen: SEEN[fetchers]. taken: TAKEN[1].
    """

    responses: Records
    order: Ints
    messages: Ints
    value_bytes: Ints
    thresholds: Records
    seen: Records
    taken: Records


def levels_of(responses: Records, thresholds: Records) -> Records:
    """LEVEL[n] of RESPONSE[n] under THRESHOLDS[1]."""
    n, found = len(responses), np.zeros(len(responses), LEVEL)
    time = np.concatenate([responses["arrived_at"], responses["requested_at"]])
    of = Levels(
        responses=read_only(responses),
        order=read_only(np.lexsort((np.repeat([0, 1], n), time))),
        messages=read_only(edges(responses["messages"])),
        value_bytes=read_only(edges(responses["value_bytes"])),
        thresholds=read_only(thresholds),
        seen=np.zeros(int(responses["fetcher"].max(initial=-1)) + 1, SEEN),
        taken=np.zeros(1, TAKEN),
    )
    fill_levels(of, found)
    return found


@kernel
def share_of(amount: int, whole: int, of: int) -> int:
    """So much of a response as `amount` is of its `whole`."""
    return amount * of // whole if whole > 0 else 0


@kernel
def take_at_least(of: Levels, messages: int, value_bytes: int) -> None:
    """Have the application have taken so many messages and bytes, which come in the order of responses."""
    taken, last = of.taken[0], len(of.responses) - 1
    while taken.by_messages < last and of.messages[taken.by_messages + 1] <= messages:
        taken.by_messages += 1
    while taken.by_bytes < last and of.value_bytes[taken.by_bytes + 1] <= value_bytes:
        taken.by_bytes += 1
    one, other = of.responses[taken.by_messages], of.responses[taken.by_bytes]
    more, more_bytes = messages - of.messages[taken.by_messages], value_bytes - of.value_bytes[taken.by_bytes]
    if more > 0:
        value_bytes = max(
            value_bytes, of.value_bytes[taken.by_messages] + share_of(more, one.messages, one.value_bytes)
        )
    if more_bytes > 0:
        messages = max(messages, of.messages[taken.by_bytes] + share_of(more_bytes, other.value_bytes, other.messages))
    taken.messages, taken.bytes = max(taken.messages, messages), max(taken.bytes, value_bytes)


@kernel
def exceeds(thresholds: Record, messages: int, value_bytes: int) -> int:
    """1 where so many messages and bytes fill the queue, else 0."""
    return 1 if messages >= thresholds.min_messages or value_bytes >= thresholds.max_bytes else 0


@kernel
def note_levels(of: Levels, time: int, come: int) -> tuple[int, int]:
    """Have all threads note how full the queue can be, with the first `come` responses. Returns (messages, bytes) that
    may not be in it: what came more than PARSED_US ago is.
    """
    pending, pending_bytes = 0, 0
    for number in range(len(of.seen)):
        seen = of.seen[number]
        if time - seen.arrived_at > PARSED_US:
            seen.messages, seen.bytes = 0, 0
        pending += seen.messages
        pending_bytes += seen.bytes
    messages = of.messages[come] - of.taken[0].messages
    value_bytes = of.value_bytes[come] - of.taken[0].bytes
    for number in range(len(of.seen)):
        seen = of.seen[number]
        others, others_bytes = pending - seen.messages, pending_bytes - seen.bytes
        seen.may_be_full |= exceeds(of.thresholds[0], messages, value_bytes)
        seen.is_full_at_most |= exceeds(of.thresholds[0], messages - others, value_bytes - others_bytes)
    return pending, pending_bytes


@kernel
def fill_levels(of: Levels, found: Records) -> None:
    """Fill LEVEL[n]."""
    n, come, thresholds = len(of.responses), 0, of.thresholds[0]
    for event in of.order:
        response = of.responses[event % n]
        seen = of.seen[response.fetcher]
        if event < n:
            come = event + 1
            seen.messages, seen.bytes, seen.arrived_at = response.messages, response.value_bytes, response.arrived_at
            seen.may_be_full, seen.is_full_at_most = 0, 0
            note_levels(of, response.arrived_at, come)
            found[event].most_bytes = of.value_bytes[come] - of.taken[0].bytes
            continue
        seen.messages, seen.bytes = 0, 0
        pending, pending_bytes = note_levels(of, response.requested_at, come)
        found[event - n].may_be_full, found[event - n].is_full_at_most = seen.may_be_full, seen.is_full_at_most
        take_at_least(
            of,
            of.messages[come] - pending - thresholds.min_messages + 1,
            of.value_bytes[come] - pending_bytes - thresholds.max_bytes + 1,
        )
