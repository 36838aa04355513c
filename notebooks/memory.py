# %% [markdown]
# # Memory: what consumers, brokers and producers hold
#
# How much memory do fetch responses take until their records are taken over, with what bound would nobody wait, and
# what would a smaller one cost? **KIP-81, a `buffer.memory` for consumers, is a proposal that no release of Kafka
# has.** Brokers' `queued.max.request.bytes` (KIP-72) and producers' `buffer.memory` exist.

# %%
import altair as alt

from jobs.open_lake import open_lake

alt.renderers.enable("svg")

# %% tags=["parameters"]
LAKE = None  # a folder or URI; None: the environment variable REFETCH_LAKE, else the quickstart's lake

# %%
lake = open_lake(LAKE)
lanes = lake.lanes("consumer_memory")

# %% [markdown]
# ## What the capture shows, and how far to trust it
#
# A response is taken to release its memory when its partitions are fetched again. `drained_partitions` says how often
# the offset of that next fetch is where the response ended; `batches_without_wait` says how often a producer's batch
# waits for memory in the replay no longer than it can have waited in the capture.

# %%
lake.sql("""
    SELECT metric, reader, sum(checked) AS checked, sum(agreed) AS agreed, sum(unknown) AS unknown
    FROM fidelity WHERE algorithm = 'consumer_memory' GROUP BY ALL ORDER BY metric, reader
""")

# %%
lake.sql("""
    SELECT client_id, connections, brokers, partitions, responses, round(response_bytes / 1048576, 1) AS responses_mib,
           pinned_responses, left_out
    FROM consumer_memory WHERE scenario = 'captured' ORDER BY response_bytes DESC, client_id LIMIT 10
""")

# %% [markdown]
# ## How much memory, for how long
#
# The share of the time in which a consumer would hold more than a number of bytes, without a bound. A line meets the
# axis at the most that the consumer ever held; KIP-74 alone promises no more than `memory_bound_mib` in the table
# below.

# %%
exceedance = lake.sql("""
    SELECT client_id, bytes / 1048576 AS mib, share_above FROM consumer_memory_exceedance
    WHERE scenario = 'captured' ORDER BY client_id, client_address, mib
""").toPandas()
alt.Chart(exceedance, width=520, height=220).mark_line(interpolate="step-after").encode(
    x=alt.X("mib:Q", title="held, MiB"),
    y=alt.Y("share_above:Q", title="share of the time with more").axis(format="%"),
    color=alt.Color("client_id:N", title=None),
)

# %% [markdown]
# ## What a bound would cost (KIP-81, a proposal)
#
# `no_wait_from_mib` is the smallest pool in which nobody waits, given only if nobody does; `throughput` is relative
# to the captured lane. The proposal's prototype would refuse to start with a pool not above `fetch.max.bytes`.

# %%
lake.sql("""
    SELECT scenario, client_id, round(used_bytes_p99 / 1048576, 2) AS used_p99_mib,
           round(used_bytes_max / 1048576, 2) AS used_max_mib,
           CASE WHEN waits + stuck_connections + larger_than_pool = 0
                THEN round(smallest_pool_bytes / 1048576, 2) END AS no_wait_from_mib,
           round(memory_bound_bytes / 1048576, 1) AS memory_bound_mib, waits, round(wait_ms_p99, 1) AS wait_ms_p99,
           round(100 * depleted_share, 1) AS depleted_percent, round(throughput_ratio, 3) AS throughput, deadlock
    FROM consumer_memory ORDER BY used_bytes_max DESC, client_id, scenario LIMIT 12
""")

# %%
waits = lake.sql("""
    SELECT scenario, client_id, 100 * depleted_share AS depleted_percent FROM consumer_memory WHERE responses > 1
    ORDER BY client_id, client_address, scenario
""").toPandas()
alt.Chart(waits, width=360, height=alt.Step(9)).mark_bar().encode(
    y=alt.Y("client_id:N", title=None),
    x=alt.X("depleted_percent:Q", title="time in which the pool had refused somebody, %"),
    yOffset=alt.YOffset("scenario:N", sort=lanes),
    color=alt.Color("scenario:N", title=None, sort=lanes).legend(labelLimit=300),
)

# %% [markdown]
# ## Brokers and producers
#
# Requests that brokers hold from their last byte on, and batches that producers hold from their first record on,
# under the captured settings.

# %%
lake.sql("""
    SELECT 'broker' AS of, broker AS name, int(used_bytes_max / 1024) AS used_max_kib, waits
    FROM broker_memory WHERE scenario = 'captured'
    UNION ALL
    SELECT 'producer', client_id, int(used_bytes_max / 1024), waits FROM producer_memory WHERE scenario = 'captured'
    ORDER BY used_max_kib DESC, name LIMIT 12
""")

# %% [markdown]
# ## Ask your own
#
#     ./spark-submit.sh replay --lake=LAKE --set=consumer.buffer.memory=16MiB,64MiB --set=memory.pool=strict,non_strict
#
# [conf/settings.yaml](../conf/settings.yaml) has the settings with `consumer_memory` among their algorithms,
# [docs/tables.md](../docs/tables.md) the columns. Two questions that the report does not ask: how much larger are the
# records once decompressed (null if a compressed batch was not measured), and when was most
# held?

# %%
lake.sql("""
    SELECT client_id, records, round(record_bytes / 1048576, 2) AS record_mib,
           round(decompressed_bytes / 1048576, 2) AS decompressed_mib
    FROM consumer_memory WHERE scenario = 'captured' ORDER BY record_bytes DESC, client_id LIMIT 10
""")

# %%
lake.sql("""
    SELECT client_id, max_by(slot_start, used_bytes_max) AS most_held_at,
           round(max(used_bytes_max) / 1048576, 2) AS used_max_mib
    FROM consumer_memory_timeline WHERE scenario = 'captured' GROUP BY client_id ORDER BY used_max_mib DESC, client_id
    LIMIT 10
""")
