# %% [markdown]
# # Explore: decoded traffic in SQL, and frames of your own
#
# The silver tables hold every request with its response, every partition of every fetch and every record batch, as
# sizes, offsets and times; never a key, a value or a header. This notebook asks them what a packet capture cannot
# answer directly.

# %%
import struct

import altair as alt
from pyspark.sql import functions as F

from jobs.frame_functions import register_frame_functions
from jobs.open_lake import open_lake
from udfs.frames.spark_functions import fetch_request

_ = alt.renderers.enable("svg")

# %% tags=["parameters"]
LAKE = None  # a folder or URI; None: the environment variable REFETCH_LAKE, else the quickstart's lake

# %%
lake = open_lake(LAKE)

# %% [markdown]
# ## What was captured, and what could not be decoded
#
# Every byte of a capture is in a row, or in quarantine with a reason. If quarantine is empty, everything was decoded.

# %%
lake.sql("""
    SELECT element_at(split(path, '/'), -1) AS file, format, packets, log_lines,
           round(tcp_captured_bytes / 1048576, 1) AS captured_mib, date_diff(SECOND, first_time, last_time) AS seconds
    FROM captures ORDER BY file_no
""")

# %%
lake.sql(
    "SELECT reason, count(*) AS `rows`, sum(bytes) AS bytes FROM quarantine GROUP BY reason ORDER BY bytes DESC, reason"
)

# %%
lake.sql("""
    SELECT api_name, api_version, status, count(*) AS exchanges, count(decode_fault) AS faults,
           round(sum(request_bytes) / 1024, 1) AS requests_kib, round(sum(response_bytes) / 1024, 1) AS responses_kib
    FROM exchanges GROUP BY ALL
    ORDER BY sum(request_bytes + response_bytes) DESC, api_name, api_version, status LIMIT 12
""")

# %% [markdown]
# ## Top talkers
#
# Which clients send and get most, and with which software? Clients that do not report it, such as brokers, have none.

# %%
lake.sql("""
    SELECT client_id, client_software_name, client_software_version, count(DISTINCT connection_id) AS connections,
           count(*) AS requests, round(sum(request_bytes) / 1024, 1) AS sent_kib,
           round(sum(response_bytes) / 1024, 1) AS got_kib
    FROM exchanges GROUP BY ALL
    ORDER BY sum(request_bytes + response_bytes) DESC, client_id, client_software_version LIMIT 10
""")

# %% [markdown]
# And when? Fetches and produce requests with their responses, in each second:

# %%
rates = lake.sql("""
    WITH begin AS (SELECT min(request_time) AS first FROM exchanges)
    SELECT api_name, date_diff(SECOND, first, request_time) AS second,
           sum(request_bytes + response_bytes) / 1048576 AS mib
    FROM exchanges CROSS JOIN begin WHERE api_name IN ('FETCH', 'PRODUCE') GROUP BY ALL ORDER BY ALL
""").toPandas()
alt.Chart(rates, width=520, height=160).mark_bar().encode(
    x=alt.X("second:Q", title="seconds since the first request", scale=alt.Scale(domainMin=0)),
    y=alt.Y("mib:Q", title="MiB a second"),
    color=alt.Color("api_name:N", title=None),
)

# %% [markdown]
# ## Who fetches what
#
# A read is a partition of a fetch. A topic whose name the capture does not show appears under its id.

# %%
lake.sql("""
    SELECT client_id, topic, count(DISTINCT partition) AS partitions, count(*) AS reads,
           count_if(returned_bytes > 0) AS with_records, round(sum(returned_bytes) / 1024, 1) AS got_kib
    FROM fetch_partitions GROUP BY ALL ORDER BY got_kib DESC, client_id, topic LIMIT 10
""")

# %% [markdown]
# Are fetches small and many? The sizes of responses, and how long requests take, by API. A fetch may wait for records
# as long as its `fetch.max.wait.ms`.

# %%
lake.sql("""
    WITH answered AS (
        SELECT api_name, response_bytes, date_diff(MICROSECOND, request_time, response_time) / 1000 AS ms
        FROM exchanges WHERE status = 'answered'
    )
    SELECT api_name, count(*) AS answered, percentile_approx(response_bytes, 0.5) AS bytes_p50,
           percentile_approx(response_bytes, 0.95) AS bytes_p95, percentile_approx(response_bytes, 0.99) AS bytes_p99,
           round(percentile(ms, 0.5), 1) AS ms_p50, round(percentile(ms, 0.99), 1) AS ms_p99
    FROM answered GROUP BY api_name ORDER BY answered DESC, api_name LIMIT 12
""")

# %% [markdown]
# ## Record batches
#
# How large are they, by topic and codec? A batch counts each time that it is produced or fetched.

# %%
lake.sql("""
    SELECT topic, codec, count(*) AS batches, sum(record_count) AS records,
           percentile_approx(size_bytes, 0.5) AS bytes_p50, percentile_approx(size_bytes, 0.99) AS bytes_p99,
           max(size_bytes) AS bytes_max
    FROM record_batches GROUP BY ALL ORDER BY batches DESC, topic, codec LIMIT 10
""")

# %% [markdown]
# ## Fetch sessions (KIP-227)
#
# Who asks for sessions, and who does without? Epoch 0 asks for one; -1 asks for none, or closes the one it names.
# Both are full fetches in Kafka's words, as they are in the report; all others are incremental.

# %%
lake.sql("""
    SELECT client_id, count_if(fetch_session_epoch = 0) AS asks_for_one,
           count_if(fetch_session_epoch > 0) AS incremental,
           count_if(fetch_session_epoch < 0 AND fetch_session_id <> 0) AS closes_it,
           count_if(fetch_session_epoch < 0 AND fetch_session_id = 0) AS wants_none,
           count_if(error_code IN (70, 71, 106)) AS session_errors
    FROM exchanges WHERE api_name = 'FETCH' GROUP BY client_id
    ORDER BY asks_for_one + closes_it + wants_none DESC, client_id LIMIT 10
""")

# %% [markdown]
# ## Frames of your own
#
# A proxy, an eBPF probe or a dead-letter topic may give you a table with a column of Kafka frames: binary, as they
# were sent, with the 4 bytes of their size. `request_header(frame)` reads the header of any request. Each message has
# a function that decodes it into a struct with Kafka's own field names: `fetch_request(version, frame)`,
# `metadata_response(version, frame)` and so on. They are Arrow UDFs over the decoder that made the tables above.
# Versions may differ from row to row. Instead of record bytes you get their size. The fields of a frame that cannot be
# decoded are null, except `decode_fault`, which has the reason.

# %%
register_frame_functions(lake.spark)


def frame(api_key: int, api_version: int, body: bytes) -> bytes:
    """A request as a client named `app` would send it."""
    content = struct.pack(">hhih3s", api_key, api_version, 7, 3, b"app") + body
    return struct.pack(">i", len(content)) + content


limits = struct.pack(">iiiib", -1, 500, 1, 8 << 20, 0)
partitions = b"".join(struct.pack(">iqi", partition, 1000 + partition, 1 << 20) for partition in range(3))
fetch = frame(1, 4, limits + struct.pack(">ih6si", 1, 6, b"orders", 3) + partitions)
frames = lake.spark.createDataFrame(
    [(4, fetch), (4, fetch[:-5]), (4, frame(3, 1, struct.pack(">i", -1)))], "version int, frame binary"
)
frames.createOrReplaceTempView("frames")
lake.spark.sql(
    "SELECT header.*, bytes FROM (SELECT request_header(frame) AS header, length(frame) AS bytes FROM frames)"
)

# %% [markdown]
# A cut frame and a frame of another message have a reason in `decode_fault`:

# %%
lake.spark.sql("""
    SELECT fetch.max_bytes, fetch.min_bytes, fetch.max_wait_ms, size(fetch.topics) AS topics, fetch.decode_fault
    FROM (SELECT fetch_request(version, frame) AS fetch FROM frames)
""")

# %% [markdown]
# The same in Python, one row per partition:

# %%
decoded = frames.select(fetch_request("version", "frame").alias("fetch"))
topics = decoded.select(F.explode("fetch.topics").alias("t"))
topics.select("t.topic", F.explode("t.partitions").alias("p")).select("topic", "p.partition", "p.fetch_offset")
