"""Every word with which silver tables say what could not be read: what it means, and what to do about it."""

from __future__ import annotations

from schemas.tables.reason import FaultReasons, Reason

NOTHING = "Nothing."
WHOLE = "Capture whole packets (`-s 0`) and lose none (`-B`; tcpdump reports what the kernel dropped)."
REPORT = (
    "Nothing if the sender is not a Kafka client or broker, or is hostile. If Kafka's own clients or brokers sent it, "
    "it is a bug in refetch: open an issue."
)
COPY = "Copy or capture the file again; what comes before is decoded."
DUMP = "Check what wrote the dump: docs/frames.md has its columns. All other rows are decoded."

QUARANTINE = FaultReasons(
    "Bytes, frames and lines that could not be decoded",
    "quarantine.reason",
    {
        "before_first_frame": Reason(
            "The capture began in the middle of a frame.",
            "Nothing; a capture that begins before the clients connect has no such bytes.",
        ),
        "behind_gap": Reason("Bytes were lost, and with them the start of the next frame.", WHOLE),
        "not_a_frame": Reason("No Kafka client or broker would send a frame of this size or with this header.", REPORT),
        "cut_at_end": Reason(
            "The connection or the capture ended within the 4 bytes that hold a frame's size.", NOTHING
        ),
        "sasl_tokens": Reason(
            "SASL tokens that were sent without Kafka's header, as before KIP-152; they are skipped and never read.",
            NOTHING,
        ),
        "cut_frame": Reason("Some of the frame's bytes are not in the capture.", WHOLE),
        "unfinished_frame": Reason(
            "The sender ended the connection within the frame, with a FIN or an RST, or the other side did with an "
            "RST. The capture has all that was sent.",
            "Nothing: a client or broker that is killed leaves such frames, and a client that closes its connection "
            "before it has read a response. `exchanges.unsent_bytes` says how many bytes were not sent.",
        ),
        "undecodable": Reason(
            "The body does not have the format of its API and version; `exchanges.decode_fault` says what is wrong.",
            REPORT,
        ),
        "orphan_response": Reason(
            "A response whose request is not in the capture; without the request it cannot be decoded.",
            "Begin the capture earlier, and lose nothing: requests and responses may use different network interfaces.",
        ),
        "no_request_line": Reason("A line of a request log that is not about a request.", NOTHING),
        "line_without_time": Reason(
            "A line of a request log that does not say when the response was sent.",
            "Let each line of the log begin with the time, as Kafka's own layout does: `[%d] %p %m (%c)%n`.",
        ),
        "line_not_readable": Reason(
            "A line of a request log whose JSON is cut or is not what Kafka writes.",
            "Check whether something cuts long lines on the log's way here.",
        ),
    },
)

DECODE = FaultReasons(
    "What is wrong with a message",
    "exchanges.decode_fault",
    {
        "truncated": Reason("A field or a length runs over the end of the frame, or bytes of it are missing.", WHOLE),
        "bad_length": Reason(
            "A string, a byte array or a tagged field is longer than the rest of the frame, or a tagged field does not "
            "have the length that it declares.",
            REPORT,
        ),
        "bad_count": Reason("An array or tag section has more elements than the remaining bytes can hold.", REPORT),
        "bad_varint": Reason("A varint has more than five bytes, or is larger than 2^31-1.", REPORT),
        "bad_tag": Reason("Tags are repeated or not ascending (KIP-482).", REPORT),
        "unexpected_null": Reason("A field is null that must not be null in this version.", REPORT),
        "trailing_bytes": Reason("The message ended before the end of its frame.", REPORT),
        "unknown_version": Reason(
            "The API has a version that refetch does not know.", "Use a newer refetch; all other frames are decoded."
        ),
        "unknown_api": Reason(
            "The API is one that refetch does not know.", "Use a newer refetch; all other frames are decoded."
        ),
        "bad_frame": Reason("The frame lies outside of the bytes that were read: a bug in refetch.", "Open an issue."),
        "bad_magic": Reason("A record batch has another format than 0, 1 or 2.", REPORT),
        "bad_batch_size": Reason("A record batch is smaller than its own header.", REPORT),
        "bad_json": Reason("The messages in a line of a request log do not have the fields of their API.", REPORT),
        "other_api": Reason(
            "The request is of another API than the one that it should be read as. Only for columns of frames.",
            "Choose the frames by `request_header`: docs/frame_functions.md.",
        ),
        "other_version": Reason(
            "The request has another version than the one that it should be read as. Only for columns of frames.",
            "Choose the frames by `request_header`: docs/frame_functions.md.",
        ),
    },
)

CAPTURE = FaultReasons(
    "What could not be read of a file",
    "captures.faults",
    {
        "not_a_capture": Reason(
            "The file is in no format that refetch reads, or is a frame dump that cannot be opened. It is left out.",
            "`ingest` says on stderr how the file begins and how such a file is converted: convert it, or leave it "
            "out.",
        ),
        "file_empty": Reason("The file is empty, or empty once uncompressed.", COPY),
        "file_header_cut": Reason("The file ends within its header.", COPY),
        "packet_cut": Reason(
            "The file ends within a packet, as tcpdump or a copy was stopped.",
            "Stop tcpdump with Ctrl-C or SIGTERM, and copy files after it has ended.",
        ),
        "packet_header_implausible": Reason(
            "Bytes that cannot be the header of a packet. They are skipped up to a place where several packets follow "
            "one another again, or to the end of the file; `captures.unread_bytes` counts them.",
            "Copy or capture the file again. The packets before and after these bytes are decoded.",
        ),
        "block_malformed": Reason("Bytes that cannot be a pcapng block.", COPY),
        "too_many_interfaces": Reason(
            "A pcapng section declares more than 1,024 interfaces.", "Capture fewer interfaces into one file."
        ),
        "compression_cut": Reason("The file ends within a gzip member or zstd frame.", COPY),
        "compression_damaged": Reason("Bytes that are no gzip or zstd data, or fail its checks.", COPY),
        "compression_excessive": Reason(
            "The file expands to more than 1 GiB and more than 1,024 times its size.",
            "Uncompress it yourself if you know that it is sound.",
        ),
        "row_without_value": Reason("Rows of a frame dump that lack a value that every row needs.", DUMP),
        "direction_unknown": Reason("Rows of a frame dump that are neither `request` nor `response`.", DUMP),
        "timestamp_implausible": Reason(
            "Rows of a frame dump with a time before 2000 or after 2116, for example because it is in ms and not in "
            "ns.",
            DUMP,
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
        "unknown_codec": Reason("The batch has a codec that Kafka does not have for its format.", REPORT),
        "unreadable": Reason("The batch's bytes cannot be decompressed by its codec.", REPORT),
        "excessive": Reason(
            "The batch expands to more than 64 MiB, or to more than 1 MiB and 1,200 times its size; or the batches of "
            "its request or response expand to more than 1 GiB together. Decompression stopped there.",
            NOTHING,
        ),
        "bad_records": Reason("The bytes do not hold as many records as the batch's header says.", REPORT),
    },
)

FAULT_REASONS = (QUARANTINE, DECODE, CAPTURE, RECORDS)
