"""Every word with which silver tables say what could not be read: what it means, and what to do about it."""

from __future__ import annotations

from schemas.tables.reason import FaultReasons, Reason

NOTHING = "Nothing."
WHOLE = "Capture whole packets (`-s 0`) and lose none (`-B`; tcpdump reports what the kernel dropped)."
REPORT = (
    "Nothing, if the peer is not Kafka's or is hostile. If Kafka's own clients or brokers sent it, it is a bug in "
    "refetch: open an issue."
)
COPY = "Copy or capture the file again; what comes before is decoded."
DUMP = "Check what wrote the dump: docs/frames.md has its columns. All other rows are decoded."

QUARANTINE = FaultReasons(
    "Bytes, frames and lines that could not be decoded",
    "quarantine.reason",
    {
        "before_first_frame": Reason(
            "The capture began in the middle of a frame.",
            "Nothing; a capture that begins before clients connect has none.",
        ),
        "behind_gap": Reason("Bytes were lost, and with them the start of the next frame.", WHOLE),
        "not_a_frame": Reason("No Kafka peer would send this size or header.", REPORT),
        "cut_at_end": Reason("The connection or the capture ended within a frame's size.", NOTHING),
        "sasl_tokens": Reason("Authentication as before KIP-152: skipped, and never read.", NOTHING),
        "cut_frame": Reason("Some of the frame's bytes are not in the capture.", WHOLE),
        "unfinished_frame": Reason(
            "The sender ended the connection within the frame, with a FIN or an RST: what was sent is in the capture, "
            "whole.",
            "Nothing: a client or broker that is killed leaves such frames. `exchanges.unsent_bytes` has how much was "
            "not sent.",
        ),
        "undecodable": Reason(
            "The body is not what its API and version say; `exchanges.decode_fault` says what is wrong.", REPORT
        ),
        "orphan_response": Reason(
            "A response without its request, without which it cannot be identified.",
            "Begin the capture earlier, and lose nothing: requests and responses may use different interfaces.",
        ),
        "no_request_line": Reason("A line of a request log that is not about a request.", NOTHING),
        "line_without_time": Reason(
            "A line of a request log that does not say when the response was sent.",
            "Have the log's layout begin with the time, as Kafka's does: `[%d] %p %m (%c)%n`.",
        ),
        "line_not_readable": Reason(
            "A line of a request log whose JSON is cut or not what Kafka writes.",
            "Check whether something cuts long lines on the log's way here.",
        ),
    },
)

DECODE = FaultReasons(
    "What is wrong with a message",
    "exchanges.decode_fault",
    {
        "truncated": Reason("A field or a length runs over the end of the frame, or bytes of it are missing.", WHOLE),
        "bad_length": Reason("A string, bytes or a tagged field is longer than what remains, or not as said.", REPORT),
        "bad_count": Reason("An array or tag section has more elements than the remaining bytes can hold.", REPORT),
        "bad_varint": Reason("A varint of more than five bytes, or beyond 2^31-1.", REPORT),
        "bad_tag": Reason("Tags are repeated or not ascending (KIP-482).", REPORT),
        "unexpected_null": Reason("Null where this version allows none.", REPORT),
        "trailing_bytes": Reason("The message ended before its frame.", REPORT),
        "unknown_version": Reason(
            "A version of the API that refetch does not know.", "Use a newer refetch; all other frames are decoded."
        ),
        "unknown_api": Reason(
            "An API that refetch does not know.", "Use a newer refetch; all other frames are decoded."
        ),
        "bad_frame": Reason("The frame's place is outside of what was read: a bug in refetch.", "Open an issue."),
        "bad_magic": Reason("A record batch of another format than 0, 1 or 2.", REPORT),
        "bad_batch_size": Reason("A record batch smaller than its own header.", REPORT),
        "bad_json": Reason("The messages in a request log's line are not what their API has.", REPORT),
        "other_api": Reason(
            "A request of another API than the one it was to be read as; columns of frames only.",
            "Choose the frames by `request_header`: docs/frame_functions.md.",
        ),
        "other_version": Reason(
            "A request of another version than the one it was to be read in; columns of frames only.",
            "Choose the frames by `request_header`: docs/frame_functions.md.",
        ),
    },
)

CAPTURE = FaultReasons(
    "What could not be read of a file",
    "captures.faults",
    {
        "not_a_capture": Reason(
            "The file is none that refetch reads, or a frame dump that cannot be opened: it is left out.",
            "`ingest` says on stderr how it begins, and how such a file is converted: do that, or leave it out.",
        ),
        "file_empty": Reason("The file is empty, or empty once uncompressed.", COPY),
        "file_header_cut": Reason("The file ends within its header.", COPY),
        "packet_cut": Reason(
            "The file ends within a packet: tcpdump or a copy was stopped.",
            "Stop tcpdump with Ctrl-C or SIGTERM, and copy files after it has ended.",
        ),
        "packet_header_implausible": Reason(
            "Bytes that cannot be the header of a packet. They are skipped up to where several packets follow one "
            "another again, or to the end of the file; `captures.unread_bytes` has how many they are.",
            "Copy or capture the file again. The packets before and behind are decoded.",
        ),
        "block_malformed": Reason("Bytes that cannot be a pcapng block.", COPY),
        "too_many_interfaces": Reason(
            "A pcapng section declares more than 1,024 interfaces.", "Capture fewer interfaces to a file."
        ),
        "compression_cut": Reason("The file ends within a gzip member or zstd frame.", COPY),
        "compression_damaged": Reason("Bytes that are no gzip or zstd data, or fail its checks.", COPY),
        "compression_excessive": Reason(
            "The file expands more than 1,024 times, beyond the first GiB.",
            "Uncompress it yourself if you know that it is sound.",
        ),
        "row_without_value": Reason("Rows of a frame dump without a value that every row needs.", DUMP),
        "direction_unknown": Reason("Rows of a frame dump that are neither `request` nor `response`.", DUMP),
        "timestamp_implausible": Reason(
            "Rows of a frame dump from before 2000 or after 2116, as a time in ms is where ns are expected.", DUMP
        ),
        "address_malformed": Reason("Rows of a frame dump with an address that is no IP address and port.", DUMP),
        "rows_damaged": Reason("Rows of a frame dump that cannot be read.", COPY),
    },
)

RECORDS = FaultReasons(
    "Why the sizes of a batch's records are not known",
    "record_batches.records_fault",
    {
        "old_format": Reason("The batch is a message set, the format before Kafka 0.11.", NOTHING),
        "cut": Reason("Bytes of the batch are missing.", WHOLE),
        "corrupt": Reason("The batch does not match its checksum.", REPORT),
        "unknown_codec": Reason("A codec that Kafka does not have for this format.", REPORT),
        "unreadable": Reason("The codec cannot read the bytes.", REPORT),
        "excessive": Reason(
            "The batch expands beyond 64 MiB, or beyond 1,200 times its size and a MiB. Or it does so beyond 1 GiB "
            "with others of the same request or response. It was not expanded farther.",
            NOTHING,
        ),
        "bad_records": Reason("The bytes do not hold as many records as the batch's header says.", REPORT),
    },
)

FAULT_REASONS = (QUARANTINE, DECODE, CAPTURE, RECORDS)
