"""The releases of brokers, which their ApiVersions responses tell, as rows of `cluster_metadata`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.tables.silver_topics import CLUSTER_METADATA
from schemas.tables.values import RELEASE
from schemas.wire.releases import BROKERS_ONLY, MARKS
from udfs.facts.exchanges import Exchanges
from udfs.facts.messages import Messages
from udfs.facts.metadata import entry_rows
from udfs.wire.arrays import Bools, Ints
from udfs.wire.messages import Decoded

UNKNOWN = -1


def release_rows(exchanges: Exchanges, versions: Messages) -> pa.RecordBatch:
    """A row an ApiVersions response that tells the broker's release."""
    newest = newest_marks(versions.response, len(versions.answered))
    told = np.flatnonzero(newest != UNKNOWN)
    releases = pa.array([MARKS[place].release for place in newest[told].tolist()], pa.string())
    at = versions.answered[told]
    return entry_rows(exchanges, RELEASE, at, np.zeros(len(at), np.int64), {CLUSTER_METADATA.release: releases})


def newest_marks(decoded: Decoded, responses: int) -> Ints:
    """By response the place in MARKS of the newest that it bears, or UNKNOWN; int64[responses]."""
    offered = decoded.levels["api_keys"]
    api_key, version = offered.column("api_key"), offered.column("max_version")

    def bears(key: int, least: int) -> Bools:
        found: Bools = np.bincount(offered.parent[(api_key == key) & (version >= least)], minlength=responses) > 0
        return found

    newest = np.full(responses, UNKNOWN)
    for place, mark in enumerate(MARKS):
        newest[bears(mark.api_key, mark.version)] = place
    newest[~bears(BROKERS_ONLY, 0)] = UNKNOWN
    return newest
