"""The events of a broker's share sessions, one by one: compared with the capture, and replayed in all lanes."""

from __future__ import annotations

from udfs.columns.arrays import Ints, Records
from udfs.kernels.kernel import kernel
from udfs.replay.session_cache.share_sessions.share_fidelity import (
    fails_before_session,
    judge_share_request,
    note_end,
    note_release,
)
from udfs.replay.session_cache.share_sessions.share_loop import end_connection, release_closed, replay_share_request
from udfs.replay.session_cache.share_sessions.state import BEGAN_BEFORE, END, REQUEST, CapturedShareSessions, ShareSim


@kernel
def replay_shares(events: Records, buckets: Ints, captured: CapturedShareSessions, sim: ShareSim) -> None:
    """Replay the events, SHARE_EVENT[n], of one life of a broker. buckets: int64[n], the bucket of time of each."""
    for number in range(len(events)):
        event, bucket = events[number], buckets[number]
        if event.kind == REQUEST:
            act = judge_share_request(captured, bucket, event)
            replay_share_request(sim, bucket, event, act, fails_before_session(event.error))
        elif event.kind == END:
            note_end(captured, event)
            end_connection(sim, bucket, event)
        elif event.kind == BEGAN_BEFORE:
            captured.unseen[event.connection] = 1
            captured.shown[0].unseen += 1
        else:
            note_release(captured, event)
            release_closed(sim, bucket, event)
        for lane in range(len(sim.cache.settings)):
            sim.outcomes[bucket, lane].live_sessions = sim.cache.live[lane]
