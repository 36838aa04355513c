"""The verdicts on a captured fetch, for every combination of what it may show."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.unit.replay.session_cache.captures import Fetch, captured, ids, lanes, reasons
from tests.unit.replay.session_cache.event_rows import gold_rows
from udfs.columns.records import new_records
from udfs.replay.session_cache.fidelity import (
    METRICS,
    NOT_CAPTURED,
    OTHER_PARTITIONS,
    OTHER_REQUEST,
    PARTITIONS,
    REQUESTS,
    RESPONSES,
    SESSION_FROM_BEFORE,
    VERDICTS,
    judge_contents,
    request_verdict,
)
from udfs.replay.session_cache.state import (
    AFTER_LOSS,
    AS_EXPECTED,
    BY_RULES,
    FROM_BEFORE,
    NO_TIME,
    SESSION_FETCH,
    UNEXPECTED,
)
from udfs.replay.shared.fidelity_rows import AGREED

BITS = (0, 1)
EPOCHS = (-1, 0, 1)


def test_a_request_is_judged_by_what_its_client_was_expected_to_send_where_that_is_known() -> None:
    for expected, is_known, epoch, mislisted in product((AS_EXPECTED, AFTER_LOSS, UNEXPECTED), BITS, EPOCHS, BITS):
        fetch = new_records(SESSION_FETCH, 1, expected=expected, is_known=is_known, epoch=epoch, mislisted=mislisted)[0]
        verdict = AGREED if (expected, mislisted) == (AS_EXPECTED, 0) else OTHER_REQUEST
        if epoch > 0 and not is_known:
            verdict = SESSION_FROM_BEFORE
        if expected == AFTER_LOSS:
            verdict = NOT_CAPTURED
        assert request_verdict(fetch) == verdict, fetch


@pytest.mark.parametrize("name", ["response_us", "error", "is_throttled", "epoch"])
def test_partitions_are_judged_only_by_whole_responses_that_give_or_use_a_session(name: str) -> None:
    """They are not judged without a response, with an error, if throttled, or without a session."""
    spoilt = {"response_us": NO_TIME, "error": 70, "is_throttled": 1, "epoch": -1}[name]
    verdicts = np.zeros((len(METRICS), VERDICTS), np.int64)
    whole = {"response_us": 9, "is_known": 1, "epoch": 0}
    judge_contents(verdicts, new_records(SESSION_FETCH, 1, **whole | {name: spoilt})[0])
    assert (verdicts[PARTITIONS].sum(), verdicts[REQUESTS].sum()) == (0, 1)
    judge_contents(verdicts, new_records(SESSION_FETCH, 1, **whole)[0])
    assert (verdicts[PARTITIONS, AGREED], verdicts[PARTITIONS].sum()) == (1, 1)


def test_partitions_and_those_of_an_incremental_response_have_a_verdict_each() -> None:
    for is_known, is_lost, strayed, misreturned, epoch, act in product(*4 * [BITS], (0, 1), (BY_RULES, FROM_BEFORE)):
        verdicts = np.zeros((len(METRICS), VERDICTS), np.int64)
        told = {"is_known": is_known, "is_lost": is_lost, "strayed": strayed, "misreturned": misreturned}
        other = NOT_CAPTURED if is_lost else OTHER_PARTITIONS
        other = SESSION_FROM_BEFORE if act == FROM_BEFORE else other
        judge_contents(verdicts, new_records(SESSION_FETCH, 1, response_us=9, epoch=epoch, act=act, **told)[0])
        expected = np.zeros_like(verdicts)
        expected[PARTITIONS, OTHER_PARTITIONS if strayed else AGREED] = is_known
        expected[RESPONSES, other if misreturned else AGREED] = is_known and epoch
        if not is_known:
            expected[PARTITIONS, SESSION_FROM_BEFORE if is_lost else OTHER_PARTITIONS] = 1
        for metric in (PARTITIONS, RESPONSES):
            assert verdicts[metric].tolist() == expected[metric].tolist(), (told, epoch)


def test_a_session_that_is_not_seen_is_as_idle_as_the_capture_is_long() -> None:
    """Such sessions took a slot in each shard when the capture began. After 121 s one makes room for a new session."""
    first, begin = ids(*range(8)), 1_000_000
    granted = [Fetch(begin + n, f"c{n}", 1, granted=session) for n, session in enumerate(first)]
    refused = [Fetch(begin + 1000 + n, f"r{n}", 1) for n in range(8)]
    used = Fetch(begin + 60_000, "c0", 1, session_id=first[0], epoch=1, granted=first[0])
    late = Fetch(begin + 121_000, "late", 1, granted=first[0] + 1)
    given = reasons(gold_rows([captured(*granted, *refused, used, late)], lanes(16, shards=8)))
    assert given["session_grants"] == {"session_not_seen": 8}


@pytest.mark.parametrize(("waited_ms", "is_from_before"), [(120_000, True), (120_001, False)])
@pytest.mark.parametrize("begin_ms", [0, 1_000_000])
def test_a_refusal_may_be_due_to_a_session_that_is_not_seen_until_that_would_be_idle(
    waited_ms: int, is_from_before: bool, begin_ms: int
) -> None:
    granted = [Fetch(begin_ms, f"c{n}", 1, granted=session, wait_us=n) for n, session in enumerate(ids(*range(8)))]
    late = Fetch(begin_ms + waited_ms, "late", 1, wait_us=0)
    given = reasons(gold_rows([captured(*granted, late)], lanes(16, shards=8)))
    assert given["session_grants"] == {"session_not_seen" if is_from_before else "refused": 1}
