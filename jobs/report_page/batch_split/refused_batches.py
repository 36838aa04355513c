"""Which batches brokers refuse, and which bytes they check (KIP-126): questions 2 and 5."""

from __future__ import annotations

from jobs.replays.batch_split.answers import lanes
from jobs.report_page.batch_split.splits import (
    BATCHES,
    NO_PRODUCER,
    captured_limits,
    producer_and_topic,
    worst_estimates,
)
from jobs.report_page.mark_titles import WHOSE
from jobs.report_page.question import Axis, Findings, Plot, Question, Unanswered, rows_to_plot
from jobs.report_page.row_caps import left_out_note
from jobs.report_page.traffic import (
    bin_start,
    cut_produce_requests,
    produced_batch_sizes,
    produced_codecs,
    produced_topics,
)
from jobs.terminal.lane_rows import BETWEEN
from jobs.terminal.screen import Grid, size_text
from jobs.terminal.wording import capitalized, client_name, quantity
from schemas.tables import algorithms
from schemas.tables.gold_splits import BATCH_SPLIT, BATCH_SPLIT_TIMELINE
from schemas.tables.silver import RECORD_BATCHES

NO_ANSWER = (
    "The capture shows produced batches, but no response to any: capture both directions, and producers with acks "
    "other than 0, which gets no response."
)

ALL_CUT = "The capture cuts all produce requests: capture whole packets (`tcpdump -s 0`)."


def refused_batches_answer(findings: Findings) -> str:
    """Question 2: how many batches were refused, whose, and what the client had estimated."""
    b, rows = RECORD_BATCHES, findings.of(produced_codecs)
    cut = sum(row["cut"] for row in findings.of(cut_produce_requests))
    if not rows:
        raise Unanswered(ALL_CUT if cut else NO_PRODUCER)
    batches, answered, count = (sum(row[name] for row in rows) for name in ("batches", "answered", "refused"))
    if not answered:
        raise Unanswered(NO_ANSWER)
    if not count:
        largest = max((row["largest_taken"] or 0 for row in rows), default=0)
        sent = quantity(batches, "produced batch", "produced batches")
        sent += f", {answered:,} of them answered" if answered < batches else ""
        none = f"of {sent}, up to {size_text(largest)} large, none was refused as too large."
        if not cut:
            return f"It does not happen here: {none}"
        more = quantity(cut, "more produce request", "more produce requests")
        return f"{capitalized(none)} The capture cuts {more}, whose batches do not count."
    smallest = min(row["smallest_refused"] for row in rows if row["refused"])
    worst = findings.of(produced_topics)[0]
    sentence = (
        f"Brokers refused {count:,} of {batches:,} produced batches, of {size_text(smallest)} or more. Most are "
        f"from {client_name(worst[b.client_id])} to {worst[b.topic]} ({worst['refused']:,} of {worst['batches']:,}). "
        "The limit counts the compressed batch, not a record"
    )
    return f"{sentence}{misjudged_span_text(findings)}."


def misjudged_span_text(findings: Findings) -> str:
    """How wrong the estimate was in the worst span of batches with splits, if producers were replayed."""
    t = BATCH_SPLIT_TIMELINE
    split = [
        row for row in findings.of(worst_estimates) if row[t.splits] and row[t.observed_ratio] > row[t.estimated_ratio]
    ]
    if not split:
        return ""
    worst = max(split, key=lambda row: row[t.observed_ratio] - row[t.estimated_ratio])
    return (
        f", and the client fills it by an estimate: a compression ratio of {worst[t.estimated_ratio]:.2f} where "
        f"batches had {worst[t.observed_ratio]:.2f}"
    )


def batch_size_histogram(findings: Findings) -> Plot:
    """Produced batches by size."""
    rows = [
        {"bytes": bin_start(row["bin"]), "until": bin_start(row["bin"] + 1), "batches": row["batches"],
         "answer": "MESSAGE_TOO_LARGE" if row["refused"] else "another, or none"}
        for row in findings.of(produced_batch_sizes)
    ]  # fmt: skip
    limits = [float(row[BATCH_SPLIT.max_message_bytes]) for row in findings.of(captured_limits)]
    return Plot(
        says="Produced batches by their bytes on the wire",
        mark="bar",
        rows=rows_to_plot(rows, "no produced batch is whole"),
        x=Axis("bytes", "bytes of a batch", "bytes", log=True),
        y=Axis("batches", "batches", "count"),
        colour=Axis("answer", "answer", "name"),
        rule=(limits[0], "max.message.bytes") if len(limits) == 1 else None,
    )


def estimates_beside_ratios(findings: Findings) -> Plot:
    """A point for each span of batches: the compression ratio that the client estimated, and the one that they had."""
    t = BATCH_SPLIT_TIMELINE
    rows = [
        {"estimated": row[t.estimated_ratio], "had": row[t.observed_ratio], "batches": SPLIT[row[t.splits] > 0],
         WHOSE: producer_and_topic(row)}
        for row in findings.of(worst_estimates)
    ]  # fmt: skip
    why = "the estimates of producers were not replayed: --set=producer.batch.size=16KiB,64KiB does that"
    return Plot(
        "Compression ratio as the client estimated it and as its batches had it: above the line they turned out "
        "larger than estimated",
        "point", rows_to_plot(rows, why), Axis("estimated", "estimated", "ratio"), Axis("had", "had", "ratio"),
        Axis("batches", "batches", "name"), diagonal="as estimated",
    )  # fmt: skip


SPLIT = ("all taken", "some split")


def topics_table(findings: Findings) -> Grid:
    """A row for each producer and topic."""
    b = RECORD_BATCHES
    cells = [
        [
            row[b.topic], client_name(row[b.client_id]), f"{row['batches']:,}", f"{row['refused']:,}",
            size_text(row["largest_taken"]), size_text(row["smallest_refused"]), size_text(row["bytes"]),
            size_text(row["uncompressed"]),
        ]
        for row in findings.of(produced_topics)
    ]  # fmt: skip
    head = ("topic", "producer", "batches", "too large", "largest taken", "smallest refused", "bytes", "uncompressed")
    columns = {
        "too large": "batches that brokers refused as too large",
        "uncompressed": "- if the capture was ingested without batch_split",
    }
    return Grid(head, cells, ("topic", "producer"), left_out_note(findings.of(produced_topics), b), columns)


CHECKS = (
    (f"fetch.max.bytes{BETWEEN}max.partition.fetch.bytes", "broker, as it reads", "compressed, as in the log"),
    ("max.message.bytes", "broker, as it appends", "compressed, the whole batch with its header"),
    ("batch.size", "producer, as it fills", "compressed, as the producer estimates it"),
    ("max.request.size", "producer, as it takes a record", "uncompressed, one record"),
    ("max.request.size", "producer, as it fills a request", "compressed, the batches of the request"),
    ("buffer.memory", "producer, as it fills", "at least batch.size, or the record if that is larger"),
)
"""(setting, who checks it and when, which bytes count), by Kafka 4.3's UnifiedLog, RecordAccumulator, KafkaProducer."""


def compressed_or_not_answer(findings: Findings) -> str:
    """Question 5: what the capture shows on both sides of the check of max.message.bytes."""
    rows = findings.of(produced_codecs)
    if not rows:
        raise Unanswered(NO_PRODUCER)
    sentence = "Brokers count compressed bytes, producers' batch.size an estimate of them"
    compressed = [row for row in rows if row[RECORD_BATCHES.codec] != "none"]
    batches = sum(row["batches"] for row in compressed)
    everything = quantity(sum(row["batches"] for row in rows), "produced batch", "produced batches")
    verb = "is" if 1 in (batches, sum(row["batches"] for row in rows)) else "are"
    sentence += f". {batches:,} of {everything} here {verb} compressed"
    return f"{sentence}{both_sides_text(findings)}."


def both_sides_text(findings: Findings) -> str:
    """Says that a topic accepted a batch that is larger, uncompressed, than one that it refused. It compares within a
    topic, because each topic may have its own limit.
    """
    b, rows = RECORD_BATCHES, findings.of(produced_topics)
    for topic in dict.fromkeys(row[b.topic] for row in rows):
        same = [row for row in rows if row[b.topic] == topic]
        refused_from = min((row["smallest_refused"] for row in same if row["refused"]), default=None)
        taken = max(row["largest_taken_uncompressed"] or 0 for row in same)
        if refused_from is not None and taken > refused_from:
            return (
                f". Of those to {topic} one with {size_text(taken)} uncompressed was accepted. One of "
                f"{size_text(refused_from)} on the wire was refused"
            )
    return ""


def sizes_by_codec(findings: Findings) -> Plot:
    """Bytes on the wire and bytes without compression, by codec."""
    rows = [
        {"codec": row[RECORD_BATCHES.codec] or "unknown", "bytes": count, "of": of}
        for row in findings.of(produced_codecs)
        for of, count in (("on the wire", row["bytes"]), ("uncompressed", row["uncompressed"]))
        if count is not None
    ]
    return Plot(
        "Bytes of produced batches by codec",
        "grouped", rows_to_plot(rows if len(rows) != 1 else [], "only the size of one codec on the wire is known"),
        Axis("bytes", "bytes", "bytes"), Axis("codec", "codec", "name"), Axis("of", "bytes", "name"),
    )  # fmt: skip


def checks_table(findings: Findings) -> Grid:
    """Which setting is checked where, and what the capture shows of it."""
    rows = findings.of(produced_codecs)
    answered, count = (sum(row[name] for row in rows) for name in ("answered", "refused"))
    replayed = findings.by_lane(lanes, algorithms.BATCH_SPLIT)
    in_capture = {
        "max.message.bytes": f"{answered - count:,} batches within, {count:,} above",
        "batch.size": f"{quantity(replayed[0]['splits'], 'split')} in the captured lane"
        if replayed
        else "not replayed",
    }
    cells = [[*check, in_capture.get(check[0], "-")] for check in CHECKS]
    return Grid(
        ("setting", "checked by", "against", "in this capture"),
        cells,
        ("setting", "checked by", "against", "in this capture"),
    )


REFUSED = Question(
    number=2,
    text="Why MESSAGE_TOO_LARGE when every record is small, or when compression is on?",
    about="KIP-126",
    algorithms=(),
    queries=(produced_codecs, produced_topics, produced_batch_sizes, cut_produce_requests),
    sentence=refused_batches_answer,
    plots=(batch_size_histogram, estimates_beside_ratios),
    table=topics_table,
    trust=BATCHES,
    beside={algorithms.BATCH_SPLIT: (worst_estimates, captured_limits)},
)


COMPRESSED = Question(
    number=5,
    text="Does the limit apply to compressed or uncompressed bytes?",
    about="KIP-74, KIP-126",
    algorithms=(),
    queries=(produced_codecs, produced_topics),
    sentence=compressed_or_not_answer,
    plots=(sizes_by_codec,),
    table=checks_table,
    trust=(),
    beside={algorithms.BATCH_SPLIT: (lanes,)},
)
