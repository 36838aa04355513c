"""Captures that answer nothing: those without any Kafka traffic, as on another port or with TLS, and those with only
one
direction: requests without responses, or responses that cannot be recognised.
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
    """What the captures hold instead of Kafka traffic, and what to check; None if they have Kafka traffic.

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
    """Whether there are frame dumps; then there are no packets."""
    return any(row[CAPTURES.format] in MAGICS.values() for row in captures)


def _files_and_packets(captures: Sequence[Row]) -> str:
    """The files with their packets, without the closing bracket: `a.pcap (9 packets`."""
    t, files = CAPTURES, captures[0][IN_ALL]
    name = PurePosixPath(captures[0][t.path]).name if files == 1 else f"{files:,} files"
    packets, lines = (sum(row[column] for row in captures) for column in (t.packets, t.log_lines))
    held = quantity(packets, "frame" if _has_dump(captures) else "packet") + (
        f" and {quantity(lines, 'line')} of request logs" if lines else ""
    )
    return f"{name} ({held}{f' in the first {len(captures)}' if files > len(captures) else ''}"


def one_way_text(apis: Sequence[Row], connections: Sequence[Row]) -> str | None:
    """Which direction the capture lacks, and what to do; None if it has exchanges, or no one-sided connection.

    apis, connections: rows of these queries of `capture_contents`.
    """
    if apis:
        return None if any(row["answered"] for row in apis) else NO_RESPONSE
    if not any(row[CONNECTIONS.one_sided] for row in connections):
        return None
    return f"The capture shows no request; {one_sided_text(connections)}."


def one_sided_text(connections: Sequence[Row]) -> str:
    """How many connections show only one direction and are not known to be Kafka's; empty if there are none."""
    alone = sum(row[CONNECTIONS.one_sided] for row in connections)
    if not alone:
        return ""
    return (
        f"of {quantity(alone, 'connection')} only one side was captured; if they are Kafka's, capture both directions, "
        "because responses are recognised by their requests"
    )
