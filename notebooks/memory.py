# %% [markdown]
# # Memory: what consumers, brokers and producers hold
#
# How much memory do fetch responses take until the application has their records? With which bound would nobody wait,
# and what would a smaller one cost? **KIP-81, a `buffer.memory` for consumers, is a proposal that no release of Kafka
# has.** Brokers' `queued.max.request.bytes` (KIP-72) and producers' `buffer.memory` exist.

# %%
import altair as alt

from jobs.open_lake import open_lake

_ = alt.renderers.enable("svg")

# %% tags=["parameters"]
LAKE = None  # a folder or URI; None: the environment variable REFETCH_LAKE, else the quickstart's lake

# %%
lake = open_lake(LAKE)
lanes = lake.lanes("consumer_memory")

# %% [markdown]
# ## What the capture shows, and how far to trust it
#
# The replay assumes that a response releases its memory when its partitions are fetched again. `drained_partitions`
# says how often the offset of that next fetch is where the response ended; `batches_without_wait` says how often a
# producer's batch waits for memory in the replay no longer than it can have waited in the capture.

# %%
lake.sql("""
    SELECT metric, reader, sum(checked) AS checked, sum(agreed) AS agreed, sum(unknown) AS unknown
    FROM fidelity WHERE algorithm = 'consumer_memory' GROUP BY ALL ORDER BY metric, reader
""")

# %% [markdown]
# The responses of these clients are replayed. `pinned_responses` are never released, because one of their partitions
# was not fetched again.

# %%
lake.sql("""
    SELECT client_id, connections, brokers, partitions, responses, round(response_bytes / 1024, 1) AS responses_kib,
           pinned_responses
    FROM consumer_memory WHERE scenario = 'captured' ORDER BY response_bytes DESC, client_id LIMIT 10
""")

# %% [markdown]
# ## How much memory, for how long
#
# For which share of the time would a consumer without a bound hold more than a number of bytes? A line meets the axis
# at the most that the consumer ever held. KIP-74 alone guarantees only the bound `bound_kib` in the table below.

# %%
exceedance = lake.sql("""
    SELECT client_id, bytes / 1024 AS kib, share_above FROM consumer_memory_exceedance
    WHERE scenario = 'captured' ORDER BY client_id, client_address, kib
""").toPandas()
alt.Chart(exceedance, width=520, height=220).mark_line(interpolate="step-after").encode(
    x=alt.X("kib:Q", title="held, KiB"),
    y=alt.Y("share_above:Q", title="share of the time with more").axis(format="%"),
    color=alt.Color("client_id:N", title=None),
)

# %% [markdown]
# ## What a bound would cost (KIP-81, a proposal)
#
# `no_wait_from_kib` is the smallest pool in which nobody waits; only lanes in which nobody waits have it. `stuck`
# counts connections for which nothing will free memory, or that are closed because a response is larger than the pool.
# The proposal's prototype would refuse to start with a pool that is not larger than `fetch.max.bytes`.

# %%
lake.sql("""
    SELECT replace(replace(scenario, 'consumer.'), ',', ' ') AS lane, client_id,
           round(used_bytes_max / 1024, 1) AS max_kib, round(memory_bound_bytes / 1024, 1) AS bound_kib,
           CASE WHEN waits + stuck_connections + larger_than_pool = 0
                THEN round(smallest_pool_bytes / 1024, 1) END AS no_wait_from_kib,
           waits, int(round(wait_ms_max)) AS longest_wait_ms, stuck_connections AS stuck
    FROM consumer_memory ORDER BY used_bytes_max DESC, client_id, scenario LIMIT 12
""")

# %% [markdown]
# How much of its captured throughput does a consumer keep with each pool? For the four that hold most:

# %%
throughput = lake.sql("""
    WITH hungry AS (
        SELECT client_id, client_address FROM consumer_memory WHERE scenario = 'captured'
        ORDER BY used_bytes_max DESC, client_id, client_address LIMIT 4
    )
    SELECT scenario, client_id, throughput_ratio FROM consumer_memory JOIN hungry USING (client_id, client_address)
    ORDER BY client_id, client_address, scenario
""").toPandas()
alt.Chart(throughput, width=360, height=alt.Step(9)).mark_bar().encode(
    y=alt.Y("client_id:N", title=None),
    x=alt.X("throughput_ratio:Q", title="throughput, as a share of the captured one").axis(format="%"),
    yOffset=alt.YOffset("scenario:N", sort=lanes),
    color=alt.Color("scenario:N", title=None, sort=lanes).legend(
        labelLimit=460, labelExpr="replace(replace(datum.label, /consumer[.]/g, ''), /,/g, '  ')"
    ),
)

# %% [markdown]
# ## Brokers and producers
#
# How much do they hold under the captured settings? Brokers hold a request from its last byte on, producers a batch
# from its first record on.

# %%
lake.sql("""
    SELECT 'broker' AS of, broker AS name, round(used_bytes_max / 1024, 1) AS max_kib, waits
    FROM broker_memory WHERE scenario = 'captured'
    UNION ALL
    SELECT 'producer', client_id, round(used_bytes_max / 1024, 1), waits
    FROM producer_memory WHERE scenario = 'captured'
    ORDER BY max_kib DESC, name LIMIT 12
""")

# %% [markdown]
# ## Ask your own
#
#     ./spark-submit.sh replay --lake=LAKE --set=consumer.buffer.memory=16MiB,64MiB --set=memory.pool=strict,non_strict
#
# [conf/settings.yaml](../conf/settings.yaml) has the settings with `consumer_memory` among their algorithms,
# [docs/tables.md](../docs/tables.md) the columns. Two questions to begin with. How much larger are the records once
# decompressed? Null means that a compressed batch was not measured; `pipeline` measures them if you also name a setting
# of `batch_split`.

# %%
lake.sql("""
    SELECT client_id, records, round(record_bytes / 1024, 1) AS record_kib,
           round(decompressed_bytes / 1024, 1) AS decompressed_kib
    FROM consumer_memory WHERE scenario = 'captured' ORDER BY record_bytes DESC, client_id LIMIT 10
""")

# %% [markdown]
# And when was most held? The times are UTC.

# %%
lake.sql("""
    SELECT client_id, date_format(max_by(slot_start, used_bytes_max), 'yyyy-MM-dd HH:mm:ss.SSS') AS most_held_at,
           round(max(used_bytes_max) / 1024, 1) AS max_kib
    FROM consumer_memory_timeline WHERE scenario = 'captured' GROUP BY client_id ORDER BY max_kib DESC, client_id
    LIMIT 10
""")
