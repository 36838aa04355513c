"""The first bytes of captures, which can be used without loading the kernels that read captures."""

from __future__ import annotations

PCAP_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 6),
    b"\xa1\xb2\xc3\xd4": (">", 6),
    b"\x4d\x3c\xb2\xa1": ("<", 9),
    b"\xa1\xb2\x3c\x4d": (">", 9),
}
"""By the first four bytes of a pcap file: byte order for `struct`, and decimal digits of a second's fraction."""
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"


def begins_capture(head: bytes) -> bool:
    """Whether a stream that begins so, uncompressed, is pcap or pcapng."""
    return head[:4] in PCAP_MAGICS or head.startswith(PCAPNG_MAGIC)
