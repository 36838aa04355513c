"""The first bytes of captures. This module does not load the kernels that read captures."""

from __future__ import annotations

PCAP_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 6),
    b"\xa1\xb2\xc3\xd4": (">", 6),
    b"\x4d\x3c\xb2\xa1": ("<", 9),
    b"\xa1\xb2\x3c\x4d": (">", 9),
}
"""Byte order for `struct`, and decimal digits of a second's fraction, by the first four bytes of a pcap file."""
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"


def begins_capture(head: bytes) -> bool:
    """Whether an uncompressed stream that begins with these bytes is pcap or pcapng."""
    return head[:4] in PCAP_MAGICS or head.startswith(PCAPNG_MAGIC)
