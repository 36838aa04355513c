"""The events of a broker's share sessions, one after the other: compared with the capture, and replayed in all
lanes."""

from __future__ import annotations

from udfs.columns.arrays import Ints, Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.share_sessions.share_fidelity import (
    fails_before_session,
    judge_share_request,
    note_end,
    note_release,
)
from udfs.replay.session_cache.share_sessions.share_loop import end_connection, release_closed, take_up
from udfs.replay.session_cache.share_sessions.state import BEGAN_BEFORE, END, REQUEST, CapturedBroker, ShareLanes


@kernel
def play_shares(events: Records, buckets: Ints, captured: CapturedBroker, lanes: ShareLanes) -> None:
    """Replay the events, SHARE_EVENT[n], of one life of a broker. buckets: int64[n], the bucket of time of each."""
    for number in range(len(events)):
        event, bucket = events[number], buckets[number]
        if event.kind == REQUEST:
            act = judge_share_request(captured, bucket, event)
            take_up(lanes, bucket, event, act, fails_before_session(event.error))
        elif event.kind == END:
            note_end(captured, event)
            end_connection(lanes, bucket, event)
        elif event.kind == BEGAN_BEFORE:
            captured.unseen[event.connection] = 1
            captured.shown[0].unseen += 1
        else:
            note_release(captured, event)
            release_closed(lanes, bucket, event)
        for lane in range(len(lanes.cache.settings)):
            lanes.outcomes[bucket, lane].live_sessions = lanes.cache.live[lane]
