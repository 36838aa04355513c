"""Which connections continue from an earlier capture set, and which id a topic's name stands for, row by row."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from schemas.tables.values import CONTINUED, DOES_NOT_FIT, NO_REQUEST, NOT_THERE
from tests.unit.facts.earlier_sets import earlier_set
from udfs.capture.framing import FRAME
from udfs.columns.arrays import Ints
from udfs.columns.sentinels import UNKNOWN
from udfs.columns.time_units import ALWAYS, NEVER
from udfs.facts.cluster_names import ClusterNames, IdInForce
from udfs.facts.continued_connections import EARLIER_CONNECTIONS, ContinuedConnections, EarlierSet
from udfs.facts.hashed_names import ABSENT, HashedNames, hash_of

NO_TABLES: dict[str, list[dict[str, Any]]] = {"connections": [], "exchanges": [], "fetch_partitions": []}
IDS = [100, 200, 300, 400]
"""Ids of connections. The earlier set has those from 200 on, or none."""
LAST = {200: 5, 300: 2**31 - 1, 400: -(2**31)}
"""The correlation id of each connection's last request in the earlier set."""


def chunk_of(connections: list[tuple[int, bool]], requests: list[tuple[int, int, int]]) -> Any:
    """connections: id, and whether the capture shows its beginning. requests: connection, number, correlation id."""
    frames = np.zeros(len(requests), FRAME)
    for row, (connection, number, correlation_id) in enumerate(requests):
        frames[row]["connection"], frames[row]["number"] = connection, number
        frames[row]["correlation_id"] = correlation_id
    begins: Ints = np.array([7 if is_shown else UNKNOWN for _, is_shown in connections], np.int64)
    return SimpleNamespace(
        frames=SimpleNamespace(requests=frames, connections={"syn_sequence": begins}),
        connection_ids=np.array([of for of, _ in connections], np.int64),
        names=HashedNames(), request=np.zeros(0, np.int64), connection_id=np.zeros(0, np.int64),
        response_fields={"lacking": np.zeros(0, np.int64), "correlation_id": np.zeros(0, np.int64)},
    )  # fmt: skip


def known_set(is_empty: bool) -> EarlierSet:
    rows = [] if is_empty else [
        {"connection_id": of, "client_software_name": f"lib {of}", "client_software_version": None,
         "correlation_id": last, "fetch_correlation_id": None} for of, last in LAST.items()
    ]  # fmt: skip
    return EarlierSet(pa.Table.from_pylist(rows, schema=EARLIER_CONNECTIONS), earlier_set(NO_TABLES).partitions)


def follows(correlation_id: int, last: int) -> bool:
    """Whether an id of 32 bits can be counted up to from the last one, by less than half of all."""
    return 0 < (correlation_id - last) % 2**32 < 2**31


CORRELATION_IDS = st.sampled_from([5, 6, 7, 0, -(2**31), -(2**31) + 1, 2**31 - 1, 2**31 - 2, -1])


@given(
    st.lists(st.tuples(st.sampled_from(IDS), st.booleans()), max_size=4, unique_by=lambda of: of[0]),
    st.lists(CORRELATION_IDS | st.none(), min_size=4, max_size=4),
    st.booleans(),
)
def test_a_connection_continues_if_its_first_request_follows_the_last_one(
    connections: list[tuple[int, bool]], first: list[int | None], is_empty: bool
) -> None:
    """first: the correlation id of each connection's first request, None if the chunk has only a later one."""
    requests = []
    for number in range(len(connections)):
        at, correlation_id = first[number], 6
        requests += [(number, 0, at)] if at is not None else []
        requests.append((number, 1, correlation_id))
    exchanges = chunk_of(connections, requests)
    continued = ContinuedConnections(known_set(is_empty))
    begun = continued.begin(exchanges)
    words = continued.words(exchanges, len(connections)).to_pylist()
    expected: list[str | None] = []
    for number, (of, is_shown) in enumerate(connections):
        at = first[number]
        is_known = of in LAST and not is_empty
        fits = is_known and at is not None and follows(at, LAST[of])
        if is_shown:
            expected.append(None)
        elif not is_known:
            expected.append(NOT_THERE)
        else:
            expected.append(NO_REQUEST if at is None else CONTINUED if fits else DOES_NOT_FIT)
        software = [hash_of(f"lib {of}".encode()), ABSENT]
        assert (number in begun) == (fits and not is_shown)
        assert begun.get(number, np.array(software)).tolist() == software
    assert words == expected
    assert continued.begin(exchanges) == {}, "what a chunk has shown is not decided again"


SERVERS = {"s1": "one", "s2": "two"}
TIMES = st.none() | st.integers(0, 12)


@st.composite
def spans_of_ids(draw: st.DrawFn) -> list[IdInForce]:
    """Ids that follow each other in time; the first may be from always, and the last for ever."""
    edges = sorted(draw(st.lists(st.integers(0, 12), min_size=2, max_size=4, unique=True)))
    spans = [IdInForce(f"id-{at}", edges[at], edges[at + 1] - 1) for at in range(len(edges) - 1)]
    if draw(st.booleans()):
        spans[0] = spans[0]._replace(since=ALWAYS)
    if draw(st.booleans()):
        spans[-1] = spans[-1]._replace(until=NEVER)
    return [span for span in spans if draw(st.integers(0, 3))]


@given(
    st.dictionaries(st.sampled_from(["one/a", "one/b", "two/a", "a", "b"]), spans_of_ids(), max_size=4),
    st.lists(
        st.tuples(st.sampled_from([*SERVERS, "s3"]), st.sampled_from(["a", "b", "c", None]), TIMES, TIMES), max_size=6
    ),
    st.booleans(),
)
def test_a_name_stands_for_the_id_that_was_in_force_all_the_time(
    ids: dict[str, list[IdInForce]], rows: list[tuple[str, str | None, int | None, int | None]], several: bool
) -> None:
    names = ClusterNames(ids_of=ids, cluster_of=SERVERS if several else {})
    expected = []
    for server, topic, first, last in rows:
        key = f"{SERVERS.get(server, '')}/{topic}" if several else topic
        begin = ALWAYS if first is None else first
        end = NEVER if first is None and last is None else first if last is None else last
        fitting = [
            span for span in ids.get(str(key) if topic else "", []) if span.since <= begin and (end or 0) <= span.until
        ]
        # Of the ids that the name ever stood for, the last one that began is meant.
        latest = [span for span in ids.get(str(key) if topic else "", []) if span.since <= begin][-1:]
        expected.append(latest[0].topic_id if latest and latest[0] in fitting else None)
    columns = [
        pa.array([row[place] for row in rows], kind)
        for place, kind in enumerate((pa.string(), pa.string(), pa.int64(), pa.int64()))
    ]
    assert names.id_between(*columns).to_pylist() == expected
