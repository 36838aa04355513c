# %% [markdown]
# # Fairness: who is served, and who waits
#
# A fetch asks for many partitions, but what it may bring back is limited: by `fetch.max.bytes` for the response and by
# `max.partition.fetch.bytes` for each partition (KIP-74). Partitions that come first in the request take the room. This
# notebook asks a capture which partitions wait, and what other limits would change.
#
# Every number below comes from the lake by the query above it: change the query and run it again.

# %%
import altair as alt

from jobs.open_lake import open_lake

_ = alt.renderers.enable("svg")

# %% tags=["parameters"]
LAKE = None  # a folder or URI; None: the environment variable REFETCH_LAKE, else the quickstart's lake

# %%
lake = open_lake(LAKE)
lanes = lake.lanes("fetch_max_bytes")

# %% [markdown]
# ## What the capture shows, and how far to trust it
#
# What was read, what is missing from it, and how often the replay of the settings that *were* in force equals the
# capture. If `agreed` is well below `checked`, or `unknown` is large, the rest shows no more than a direction.

# %%
lake.sql("""
    SELECT element_at(split(path, '/'), -1) AS file, packets, round(tcp_captured_bytes / 1048576, 1) AS captured_mib,
           date_diff(SECOND, first_time, last_time) AS seconds, size(faults) AS faults
    FROM captures ORDER BY file_no
""")

# %%
lake.sql("""
    SELECT connections, exchanges, fetches, fetches_of_unknown_sessions, unanswered_requests, orphan_responses,
           missing_bytes, quarantined_bytes
    FROM capture_quality WHERE connection_id IS NULL
""")

# %%
lake.sql("""
    SELECT metric, reader, sum(checked) AS checked, sum(agreed) AS agreed, sum(unknown) AS unknown
    FROM fidelity WHERE algorithm = 'fetch_max_bytes' GROUP BY ALL ORDER BY metric, reader
""")

# %% [markdown]
# ## What other limits would change
#
# In the closed loop, every reader goes on from what it received in *that lane*, until it has read everything that the
# capture shows. From left to right: how long the partition that waited longest had records and got none; how long the
# slowest catch-up took; and how much came as tails of cut batches, which are fetched again. No bar means zero. A larger
# `fetch.max.bytes` is not always fairer, so look at every lane, not only at the two ends.

# %%
closed = lake.sql("""
    SELECT scenario, max(longest_wait_ms) AS longest_wait_ms, max(catch_up_ms) AS catch_up_ms,
           sum(cut_tail_bytes) / 1048576 AS cut_tails_mib
    FROM fetch_fairness WHERE mode = 'closed' AND reader = 'consumer' GROUP BY ALL ORDER BY scenario
""").toPandas()

# %%
lane = alt.Y("scenario:N", sort=lanes, title=None).axis(
    labelExpr="replace(replace(datum.label, /consumer[.]/g, ''), /,/g, '  ')", labelLimit=420
)
bars = alt.Chart(closed, width=170, height=alt.Step(18)).mark_bar().encode(y=lane)
alt.hconcat(
    bars.encode(x=alt.X("longest_wait_ms:Q", title="longest wait of a partition, ms")),
    bars.encode(
        x=alt.X("catch_up_ms:Q", title="slowest catch-up, ms"),
        y=alt.Y("scenario:N", sort=lanes, title=None).axis(labels=False),
    ),
    bars.encode(
        x=alt.X("cut_tails_mib:Q", title="fetched again, MiB"),
        y=alt.Y("scenario:N", sort=lanes, title=None).axis(labels=False),
    ),
)

# %% [markdown]
# The same as a table, beginning with the lane whose longest wait is shortest. `waiting` counts partitions that got
# nothing from some fetch although they had records.

# %%
lake.sql("""
    SELECT scenario, int(round(max(longest_wait_ms))) AS longest_wait_ms, int(round(max(catch_up_ms))) AS catch_up_ms,
           count_if(empty_though_available > 0) AS waiting, count(*) AS partitions,
           round(sum(cut_tail_bytes) / 1024, 1) AS cut_tails_kib
    FROM fetch_fairness WHERE mode = 'closed' AND reader = 'consumer' GROUP BY scenario
    ORDER BY longest_wait_ms, catch_up_ms, scenario
""")

# %% [markdown]
# ## The backlog over time
#
# Who waits for whom? The plot shows what is left to read under the captured settings, for the partitions of one client
# that wait longest, at most eight. A line that stays flat while others fall is a partition that waits for its turn.

# %%
backlog = lake.sql("""
    WITH partitions AS (
        SELECT client_id, client_address, topic, partition, longest_wait_ms, catch_up_ms FROM fetch_fairness
        WHERE mode = 'closed' AND reader = 'consumer' AND scenario = 'captured'
    ), worst AS (
        SELECT client_id, client_address FROM partitions
        ORDER BY longest_wait_ms DESC, client_id, client_address LIMIT 1
    ), shown AS (
        SELECT partitions.* FROM partitions JOIN worst USING (client_id, client_address)
        ORDER BY longest_wait_ms DESC, catch_up_ms DESC, topic, partition LIMIT 8
    )
    SELECT concat(topic, '-', partition) AS name, bucket * bucket_ms AS ms, lag_bytes / 1024 AS lag_kib
    FROM fetch_timeline JOIN shown USING (client_id, client_address, topic, partition)
    WHERE scenario = 'captured' AND reader = 'consumer' ORDER BY topic, partition, ms
""").toPandas()

# %%
alt.Chart(backlog, width=520, height=220).mark_line(interpolate="step-after").encode(
    x=alt.X("ms:Q", title="ms since its first fetch, long breaks left out", scale=alt.Scale(zero=False)),
    y=alt.Y("lag_kib:Q", title="to be read, KiB"),
    color=alt.Color("name:N", title=None),
)

# %% [markdown]
# ## Ask your own
#
# Lanes can vary every setting of [conf/settings.yaml](../conf/settings.yaml) that has `fetch_max_bytes` among its
# algorithms:
#
#     ./spark-submit.sh replay --lake=LAKE --set=consumer.fetch.max.bytes=1MiB,8MiB --set=order=client,fixed
#
# Then run this notebook again: it shows the newest run. [docs/tables.md](../docs/tables.md) has every column of
# `fetch_fairness`, `fetch_consumers`, `fetch_timeline` and `fetch_memory`.
#
# Two questions to begin with. Are the limits the cause, or does one partition simply have most of the data? If a
# partition's share of the returned bytes is far below its share of the available bytes, it is kept waiting. If both
# shares are large, the data is skewed, and no fetch limit helps.

# %%
lake.sql("""
    SELECT client_id, topic, partition, round(100 * share_of_available, 1) AS percent_of_available,
           round(100 * share_of_bytes, 1) AS percent_of_bytes, longest_wait_requests,
           int(round(longest_wait_ms)) AS longest_wait_ms
    FROM fetch_fairness WHERE mode = 'open' AND scenario = 'captured' AND reader = 'consumer'
    ORDER BY share_of_bytes - share_of_available, client_id, topic, partition LIMIT 10
""")

# %% [markdown]
# And is a batch that is larger than a partition's limit delivered? Yes, as a whole, if it comes first (KIP-74). How
# often that happens in each lane of the open loop:

# %%
lake.sql("""
    SELECT scenario, sum(first_batch_overrides) AS first_batch_overrides,
           round(max(response_bytes_max) / 1024, 1) AS largest_response_kib
    FROM fetch_consumers WHERE mode = 'open' AND reader = 'consumer' GROUP BY scenario
    ORDER BY first_batch_overrides DESC, largest_response_kib DESC, scenario
""")
