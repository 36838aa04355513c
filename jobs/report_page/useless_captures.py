"""Captures that answer nothing: without any Kafka traffic, as on another port or with TLS, or with one direction alone,
whose requests have no responses, or whose responses nothing shows to be such.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from pyspark.sql import Row

from jobs.captures.capture_quality import KAFKA_PROTOCOL
from jobs.paths import SHOWN_DOCS
from jobs.report_page.row_caps import IN_ALL
from jobs.terminal.wording import quantity
from schemas.tables.silver import CAPTURES, CONNECTIONS
from udfs.capture.frame_dump import MAGICS

TO_CHECK = (
    "check that the brokers' port and interface were captured, both directions of connections, and whole packets "
    "(`tcpdump -s 0`)"
)
OF_DUMPS = (
    f"check its rows against {SHOWN_DOCS}/frames.md: a frame begins with the 4 bytes of its size, and an address "
    "is an IP address with a port"
)
PLAINTEXT = ", and that the listener is a plaintext one, for TLS is not decrypted"
NO_RESPONSE = "The capture shows requests, and no response of a broker to any: capture both directions of connections."


def no_traffic_text(captures: Sequence[Row], apis: Sequence[Row], connections: Sequence[Row]) -> str | None:
    """What the captures hold in place of Kafka's traffic, and what to check; None where they have any of it.

    captures, apis, connections: rows of these queries of `capture_contents`.
    """
    protocols = {row[CONNECTIONS.protocol]: row["connections"] for row in connections}
    if apis or KAFKA_PROTOCOL in protocols:
        return None
    plaintext = PLAINTEXT if "tls" in protocols else ""
    listed = ", ".join(f"{count:,} {protocol}" for protocol, count in protocols.items()) or "none"
    to_check = OF_DUMPS if _has_dump(captures) else f"{TO_CHECK}{plaintext}"
    return f"No Kafka traffic was found in {_files_and_packets(captures)}; connections: {listed}): {to_check}."


def _has_dump(captures: Sequence[Row]) -> bool:
    """Whether there are frame dumps, beside which no packets are."""
    return any(row[CAPTURES.format] in MAGICS.values() for row in captures)


def _files_and_packets(captures: Sequence[Row]) -> str:
    """The files with their packets, the bracket left open: `a.pcap (9 packets`."""
    t, files = CAPTURES, captures[0][IN_ALL]
    name = PurePosixPath(captures[0][t.path]).name if files == 1 else f"{files:,} files"
    packets, lines = (sum(row[column] for row in captures) for column in (t.packets, t.log_lines))
    held = quantity(packets, "frame" if _has_dump(captures) else "packet") + (
        f" and {quantity(lines, 'line')} of request logs" if lines else ""
    )
    return f"{name} ({held}{f' in the first {len(captures)}' if files > len(captures) else ''}"


def one_way_text(apis: Sequence[Row], connections: Sequence[Row]) -> str | None:
    """Which direction the capture lacks, and what to do; None where it has exchanges, or nothing one-sided.

    apis, connections: rows of these queries of `capture_contents`.
    """
    if apis:
        return None if any(row["answered"] for row in apis) else NO_RESPONSE
    if not any(row[CONNECTIONS.one_sided] for row in connections):
        return None
    return f"The capture shows no request; {one_sided_text(connections)}."


def one_sided_text(connections: Sequence[Row]) -> str:
    """How many connections show one side alone and are not known to be Kafka's; empty where none does."""
    alone = sum(row[CONNECTIONS.one_sided] for row in connections)
    if not alone:
        return ""
    return (
        f"of {quantity(alone, 'connection')} only one side was captured; if they are Kafka's, capture both directions, "
        "because responses are recognised by their requests"
    )
