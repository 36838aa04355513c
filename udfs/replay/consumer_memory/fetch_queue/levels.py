"""How full a librdkafka consumer's queue can have been, as its fetches show it.

When a consumer asks for more, its queue is below the thresholds, whatever the application did. A response is in the
queue at the latest when its fetcher asks again; before that, the fetcher may still be decompressing it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udfs.columns.arrays import Ints, Record, Records, read_only, stretch_edges
from udfs.columns.records import int_fields
from udfs.kernels.kernel import kernel

PARSED_US = 1_000_000
"""A response is in the queue at the latest this time after it came (us)."""

LEVEL = int_fields(
    "most_bytes",  # the most bytes that the queue can have had when the response had come
    "may_be_full",  # 1: the queue can have been full between the last response on the connection and this request
    "is_full_at_most",  # 1: the same, even without responses that other fetchers may not have queued by then
)
"""What is known of the queue at a response."""
FETCHER_SHOWN = int_fields(
    "bytes",  # of its last response, as long as that may not be in the queue
    "messages",
    "arrived_at",  # us
    "may_be_full",
    "is_full_at_most",
)
"""What a fetcher has shown since its last response."""
TAKEN = int_fields(
    "messages",  # the fewest messages that the application can have taken
    "bytes",
    "by_messages",  # the response that has the last of these messages
    "by_bytes",
)
"""How far the application has come."""


class CapturedQueue(NamedTuple):
    """A consumer's queue as its responses show it, and what is known of it so far.

    responses: RECORDS_RESPONSE[n], by arrival. order: int64[2 n], arrivals (below n) and requests (from n on) in time
    order. messages, value_bytes: int64[n + 1], sums over all earlier responses. thresholds: THRESHOLDS[1]. shown:
    FETCHER_SHOWN[fetchers]. taken: TAKEN[1].
    """

    responses: Records
    order: Ints
    messages: Ints
    value_bytes: Ints
    thresholds: Records
    shown: Records
    taken: Records


def known_levels(responses: Records, thresholds: Records) -> Records:
    """What is known of the queue at each response: LEVEL[n].

    responses: RECORDS_RESPONSE[n]. thresholds: THRESHOLDS[1].
    """
    n, levels = len(responses), np.zeros(len(responses), LEVEL)
    time = np.concatenate([responses["arrived_at"], responses["requested_at"]])
    view = CapturedQueue(
        responses=read_only(responses),
        order=read_only(np.lexsort((np.repeat([0, 1], n), time))),
        messages=read_only(stretch_edges(responses["messages"])),
        value_bytes=read_only(stretch_edges(responses["value_bytes"])),
        thresholds=read_only(thresholds),
        shown=np.zeros(int(responses["fetcher"].max(initial=-1)) + 1, FETCHER_SHOWN),
        taken=np.zeros(1, TAKEN),
    )
    fill_levels(view, levels)
    return levels


@kernel
def proportional_share(amount: int, whole: int, total: int) -> int:
    """The part of `total` in the proportion of `amount` to `whole`; 0 if `whole` is 0."""
    return amount * total // whole if whole > 0 else 0


@kernel
def take_at_least(view: CapturedQueue, messages: int, value_bytes: int) -> None:
    """Note that the application has taken at least this number of messages, and at least this number of bytes.

    It takes them in the order of responses, so a number of messages tells the number of bytes, and the other way round.
    """
    taken, last = view.taken[0], len(view.responses) - 1
    while taken.by_messages < last and view.messages[taken.by_messages + 1] < messages:
        taken.by_messages += 1
    while taken.by_bytes < last and view.value_bytes[taken.by_bytes + 1] < value_bytes:
        taken.by_bytes += 1
    one, other = view.responses[taken.by_messages], view.responses[taken.by_bytes]
    more, more_bytes = messages - view.messages[taken.by_messages], value_bytes - view.value_bytes[taken.by_bytes]
    of_messages = view.value_bytes[taken.by_messages] + proportional_share(more, one.messages, one.value_bytes)
    of_bytes = view.messages[taken.by_bytes] + proportional_share(more_bytes, other.value_bytes, other.messages)
    taken.messages, taken.bytes = max(taken.messages, messages, of_bytes), max(taken.bytes, value_bytes, of_messages)


@kernel
def exceeds_threshold(thresholds: Record, messages: int, value_bytes: int) -> int:
    """1 if these messages or bytes fill the queue, otherwise 0."""
    return 1 if messages >= thresholds.min_messages or value_bytes >= thresholds.max_bytes else 0


@kernel
def note_levels(view: CapturedQueue, time: int, come: int) -> tuple[int, int]:
    """Note for all fetchers how full the queue can be at `time` (us), with the first `come` responses. Returns
    (messages, bytes) that may not yet be in the queue; responses that came more than PARSED_US ago are in it.
    """
    pending, pending_bytes = 0, 0
    for number in range(len(view.shown)):
        fetcher = view.shown[number]
        if time - fetcher.arrived_at > PARSED_US:
            fetcher.messages, fetcher.bytes = 0, 0
        pending += fetcher.messages
        pending_bytes += fetcher.bytes
    messages = view.messages[come] - view.taken[0].messages
    value_bytes = view.value_bytes[come] - view.taken[0].bytes
    for number in range(len(view.shown)):
        fetcher = view.shown[number]
        others, others_bytes = pending - fetcher.messages, pending_bytes - fetcher.bytes
        fetcher.may_be_full |= exceeds_threshold(view.thresholds[0], messages, value_bytes)
        fetcher.is_full_at_most |= exceeds_threshold(view.thresholds[0], messages - others, value_bytes - others_bytes)
    return pending, pending_bytes


@kernel
def fill_levels(view: CapturedQueue, levels: Records) -> None:
    """Write the levels of the view's responses. levels: LEVEL[n]."""
    n, come, thresholds = len(view.responses), 0, view.thresholds[0]
    for event in view.order:
        response = view.responses[event % n]
        fetcher = view.shown[response.fetcher]
        if event < n:
            come = event + 1
            fetcher.messages, fetcher.bytes = response.messages, response.value_bytes
            fetcher.arrived_at = response.arrived_at
            fetcher.may_be_full, fetcher.is_full_at_most = 0, 0
            note_levels(view, response.arrived_at, come)
            levels[event].most_bytes = view.value_bytes[come] - view.taken[0].bytes
            continue
        fetcher.messages, fetcher.bytes = 0, 0
        pending, pending_bytes = note_levels(view, response.requested_at, come)
        levels[event - n].may_be_full, levels[event - n].is_full_at_most = fetcher.may_be_full, fetcher.is_full_at_most
        take_at_least(
            view,
            view.messages[come] - pending - thresholds.min_messages + 1,
            view.value_bytes[come] - pending_bytes - thresholds.max_bytes + 1,
        )
