"""What the capture shows without a replay: how clients fetch, what producers sent, and what brokers refused."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.captures.broker_fetches import is_answered_by_broker, partitions_of_brokers
from jobs.replays.algorithm import OwnRows
from jobs.report_page.row_caps import first_rows
from schemas.tables.silver import EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.values import CONSUMER, FOLLOWER, FROM_PRODUCE, FULL
from schemas.wire.errors import FETCH_SESSION_ID_NOT_FOUND, MESSAGE_TOO_LARGE
from schemas.wire.fetch_sessions import FINAL_EPOCH, NO_SESSION
from udfs.replay.fetch_max_bytes.read_from_log import FIRST_WITH_MAX_BYTES

FETCH, PRODUCE = "FETCH", "PRODUCE"
MOST_ROWS = 50
BINS_PER_DOUBLING = 2


def fetch_exchanges(own_rows: OwnRows) -> DataFrame:
    """The exchanges of Fetch requests to brokers."""
    x = EXCHANGES
    return own_rows(x).where((F.col(x.api_name) == FETCH) & is_answered_by_broker())


def fetch_sums() -> list[Column]:
    """Sums over fetch exchanges. The sum `full` is over fetches that name every partition: those outside any session,
    and those that begin one.
    """
    x = EXCHANGES
    return [
        F.count("*").alias("fetches"),
        F.count_if(F.col(x.fetch_session_epoch) <= 0).alias("full"),
        F.count_if(F.col(x.error_code) == FETCH_SESSION_ID_NOT_FOUND).alias("not_found"),
        F.sum(x.request_bytes).alias("request_bytes"),
        F.sum(x.response_bytes).alias("response_bytes"),
        F.min(x.api_version).alias("oldest"),
        F.max(x.api_version).alias("newest"),
        F.min(x.request_time).alias("first"),
        F.max(x.request_time).alias("last"),
    ]


def fetching_clients(own_rows: OwnRows) -> DataFrame:
    """The clients that fetch: those with most lost sessions and full fetches first."""
    x = EXCHANGES
    by_client = fetch_exchanges(own_rows).groupBy(x.client_id).agg(*fetch_sums())
    return first_rows(by_client, MOST_ROWS, F.desc("not_found"), F.desc("full"), x.client_id)


def fetching_software(own_rows: OwnRows) -> DataFrame:
    """A row for each software that fetches, as ApiVersions requests name it; followers' requests do not.

    The column `sessions` counts the sessions in which it fetched, and `sessionless` its fetches that want none.
    """
    x = EXCHANGES
    session = F.when(F.col(x.fetch_session_id) > 0, F.struct(x.broker, x.fetch_session_id))
    by_software = fetch_exchanges(own_rows).groupBy(x.client_software_name, x.client_software_version).agg(
        F.count_distinct(session).alias("sessions"),
        F.count_if(F.col(x.fetch_session_epoch) == FINAL_EPOCH).alias("sessionless"),
        *fetch_sums(),
    )  # fmt: skip
    order = (F.desc("fetches"), x.client_software_name, x.client_software_version)
    return first_rows(by_software, MOST_ROWS, *order)


def fetch_requests(own_rows: OwnRows) -> DataFrame:
    """For each fetch that was answered and named a partition, the row of the partition that is read first."""
    f = FETCH_PARTITIONS
    named_first = (F.col(f.read_position) == 0) & F.col(f.response_record_bytes).isNotNull()
    return partitions_of_brokers(own_rows(f)).where(named_first)


def fetches_by_reader(own_rows: OwnRows) -> DataFrame:
    """(reader, fetches, empty, beyond, bytes, sessions, oldest, cut): a row for consumers and one for followers.

    Only answered fetches count. A fetch counts whether or not a partition of it is known; one that closes a session
    does not. `beyond` counts empty fetches of consumers that asked for records beyond a high watermark. If the capture
    has only a part of a response, which could not be read, the fetch counts in `cut` alone.
    """
    x, f = EXCHANGES, FETCH_PARTITIONS
    closes = (F.col(x.fetch_session_epoch) == FINAL_EPOCH) & (F.col(x.fetch_session_id) > NO_SESSION)
    answered = fetch_exchanges(own_rows).where(
        F.col(x.fetch_replica_id).isNotNull() & F.col(x.response_time).isNotNull()
    )
    reader = F.when(F.col(x.fetch_replica_id) >= 0, FOLLOWER).otherwise(CONSUMER).alias(f.reader)
    is_cut = (F.col(x.missing_bytes) > 0) & F.col(x.error_code).isNull()
    sent = answered.where(~closes).groupBy(reader).agg(
        F.count_if(~is_cut).alias("fetches"), F.count_if(is_cut).alias("cut"), F.min(x.api_version).alias("oldest")
    )  # fmt: skip
    served = served_fetches(partitions_of_brokers(own_rows(f)))
    of_reader = served.groupBy(f.reader).agg(
        F.sum("bytes").alias("bytes"), F.count_if("has_records").alias("served"), F.count_if("opens").alias("sessions"),
        F.count_if(F.col("beyond") & ~F.col("has_records")).alias("beyond"),
    )  # fmt: skip
    columns = sent.join(F.broadcast(of_reader), [str(f.reader)], "left")
    of = {name: F.coalesce(F.col(name), F.lit(0)).alias(name) for name in ("beyond", "bytes", "sessions")}
    empty = (F.col("fetches") - F.coalesce("served", F.lit(0))).alias("empty")
    return columns.select(f.reader, "fetches", empty, *of.values(), "oldest", "cut").orderBy(f.reader)


def served_fetches(rows: DataFrame) -> DataFrame:
    """(reader, bytes, has_records, opens, beyond): a row for each fetch that got records, opened a session, or asked as
    a consumer for records beyond a high watermark. Others, which are most, are left out before rows are grouped.
    """
    f = FETCH_PARTITIONS
    has_records = F.coalesce(F.col(f.returned_bytes) > 0, F.lit(False))
    opens = F.coalesce((F.col(f.kind) == FULL) & (F.col(f.response_session_id) > 0), F.lit(False))
    is_ahead = (F.col(f.reader) == CONSUMER) & (F.col(f.fetch_offset) > F.col(f.high_watermark))
    beyond = F.coalesce(is_ahead, F.lit(False))
    return rows.where(has_records | opens | beyond).groupBy(f.reader, f.connection_id, f.exchange_no).agg(
        F.sum(f.returned_bytes).alias("bytes"), F.max(has_records).alias("has_records"), F.max(opens).alias("opens"),
        F.max(beyond).alias("beyond"),
    )  # fmt: skip


def response_sizes(own_rows: OwnRows) -> DataFrame:
    """(reader, bin, fetches): responses with records by size, two bins a doubling."""
    f = FETCH_PARTITIONS
    with_records = fetch_requests(own_rows).where(F.col(f.response_record_bytes) > 0)
    return with_records.groupBy(f.reader, size_bin(f.response_record_bytes)).agg(F.count("*").alias("fetches")).orderBy(
        f.reader, "bin"
    )  # fmt: skip


def fetching_consumers(own_rows: OwnRows) -> DataFrame:
    """What consumers ask for and get in a fetch, those with most fetches first. Old versions of Fetch have no
    max_bytes.
    """
    f = FETCH_PARTITIONS
    max_bytes = F.when(F.col(f.api_version) >= FIRST_WITH_MAX_BYTES, F.col(f.max_bytes))
    size = F.when(F.col(f.response_record_bytes) > 0, F.col(f.response_record_bytes))
    of_consumers = fetch_requests(own_rows).where(F.col(f.reader) == CONSUMER).groupBy(f.client_id).agg(
        F.count("*").alias("fetches"), F.count_if(F.col(f.response_record_bytes) == 0).alias("empty"),
        F.sum(f.response_record_bytes).alias("bytes"), F.percentile(size, 0.5).cast("bigint").alias("median"),
        F.max(max_bytes).alias(f.max_bytes), F.max(f.min_bytes).alias(f.min_bytes),
        F.max(f.max_wait_ms).alias(f.max_wait_ms),
    )  # fmt: skip
    return first_rows(of_consumers, MOST_ROWS, F.desc("fetches"), f.client_id)


def batches_of_producers(own_rows: OwnRows) -> DataFrame:
    """The batches that producers sent, without those of which the capture has only a part."""
    b = RECORD_BATCHES
    return own_rows(b).where((F.col(b.source) == FROM_PRODUCE) & F.col(b.size_bytes).isNotNull())


def cut_produce_requests(own_rows: OwnRows) -> DataFrame:
    """(cut,): one row, the number of produce requests of which, or of whose responses, the capture lacks bytes."""
    x = EXCHANGES
    is_cut = (F.col(x.api_name) == PRODUCE) & (F.col(x.missing_bytes) > 0)
    return own_rows(x).agg(F.count_if(is_cut).alias("cut"))


def batch_sums() -> list[Column]:
    """Sums over produced batches. `answered` are those with a response, whatever its error; `refused` those with the
    error MESSAGE_TOO_LARGE.
    """
    b = RECORD_BATCHES
    is_refused = F.col(b.error_code) == MESSAGE_TOO_LARGE
    is_taken = F.col(b.error_code) == 0
    return [
        F.count("*").alias("batches"),
        F.count(b.error_code).alias("answered"),
        F.count_if(is_refused).alias("refused"),
        F.max(F.when(is_taken, F.col(b.size_bytes))).alias("largest_taken"),
        F.min(F.when(is_refused, F.col(b.size_bytes))).alias("smallest_refused"),
        F.max(F.when(is_taken, F.col(b.uncompressed_bytes))).alias("largest_taken_uncompressed"),
        F.sum(b.size_bytes).alias("bytes"),
        F.sum(b.uncompressed_bytes).alias("uncompressed"),
    ]


def produced_topics(own_rows: OwnRows) -> DataFrame:
    """By topic and producer what was sent, those with most refused batches first."""
    b = RECORD_BATCHES
    by_topic = batches_of_producers(own_rows).groupBy(b.topic, b.client_id).agg(*batch_sums())
    return first_rows(by_topic, MOST_ROWS, F.desc("refused"), F.desc("batches"), b.topic, b.client_id)


def produced_codecs(own_rows: OwnRows) -> DataFrame:
    """By codec what was sent, over all producers."""
    b = RECORD_BATCHES
    return batches_of_producers(own_rows).groupBy(b.codec).agg(*batch_sums()).orderBy(F.desc("batches"), b.codec)


def produced_batch_sizes(own_rows: OwnRows) -> DataFrame:
    """(refused, bin, batches): produced batches by size, two bins a doubling."""
    b = RECORD_BATCHES
    is_refused = (F.coalesce(b.error_code, F.lit(0)) == MESSAGE_TOO_LARGE).alias("refused")
    by_size = batches_of_producers(own_rows).groupBy(is_refused, size_bin(b.size_bytes))
    return by_size.agg(F.count("*").alias("batches")).orderBy("refused", "bin")


def size_bin(size: str) -> Column:
    """The number of the bin that a size above 0 is in."""
    return F.floor(F.log2(F.col(size)) * BINS_PER_DOUBLING).cast("int").alias("bin")


def bin_start(number: int) -> float:
    """The size at which a bin begins."""
    return float(2 ** (number / BINS_PER_DOUBLING))
