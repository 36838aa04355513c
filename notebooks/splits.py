# %% [markdown]
# # Splits: which batch.size is safe?
#
# A producer fills a batch by an *estimate* of how it will compress (KIP-126). If the estimate is wrong and
# `batch.size` is near the topic's `max.message.bytes`, the broker refuses the batch (MESSAGE_TOO_LARGE), and the
# client splits it and sends it again.
#
# The limit applies to compressed bytes; `batch.size` applies to the estimate of them.

# %%
import altair as alt

from jobs.open_lake import open_lake

_ = alt.renderers.enable("svg")

# %% tags=["parameters"]
LAKE = None  # a folder or URI; None: the environment variable REFETCH_LAKE, else the quickstart's lake

# %%
lake = open_lake(LAKE)
lanes = lake.lanes("batch_split")

# %% [markdown]
# ## What the capture shows, and how far to trust it
#
# The replay needs the sizes of records, so batches have to be decompressed when they are ingested. The sizes of batches
# that end elsewhere than captured ones come from recompressed parts; `fidelity` compares them with the batches that
# splits made in the capture, and `size_error_percent` below is by how much they differ on average.

# %%
lake.sql("""
    SELECT metric, sum(checked) AS checked, sum(agreed) AS agreed, sum(unknown) AS unknown
    FROM fidelity WHERE algorithm = 'batch_split' GROUP BY metric ORDER BY metric
""")

# %%
lake.sql("""
    SELECT client_id, topic, records, batches, splits, split_batches, failed_batches,
           round(compression_ratio, 3) AS ratio, round(final_estimate, 3) AS final_estimate,
           round(100 * size_error, 2) AS size_error_percent
    FROM batch_split WHERE scenario = 'captured' ORDER BY batches DESC, client_id, topic LIMIT 10
""")

# %% [markdown]
# ## What another batch.size would do
#
# From left to right: the share of batches that are split, for the worst producer and topic; the share of bytes that are
# sent again; and how much of `batch.size` batches fill. Small batches are safe but cost requests.

# %%
curve = lake.sql("""
    SELECT scenario, max(split_rate) AS `batches split`, avg(fill) AS `fill of a batch`,
           sum(bytes_resent) / sum(bytes_sent) AS `bytes sent again`
    FROM batch_split GROUP BY scenario ORDER BY scenario
""").toPandas()
alt.Chart(
    curve.melt("scenario", var_name="what", value_name="share"), width=150, height=alt.Step(22)
).mark_bar().encode(
    x=alt.X("share:Q", title=None).axis(format="%"),
    y=alt.Y("scenario:N", sort=lanes, title=None),
    column=alt.Column("what:N", title=None, sort=["batches split", "bytes sent again", "fill of a batch"]),
)

# %%
lake.sql("""
    SELECT scenario, sum(batches) AS batches, sum(over_limit) AS over_limit, sum(splits) AS splits,
           round(100 * max(split_rate), 2) AS worst_split_percent, sum(failed_batches) AS failed,
           round(sum(bytes_sent) / 1048576, 2) AS sent_mib, round(sum(bytes_resent) / 1048576, 2) AS resent_mib,
           round(100 * avg(fill), 1) AS fill_percent
    FROM batch_split GROUP BY scenario ORDER BY batches DESC, scenario
""")

# %% [markdown]
# ## The estimate and the batches' actual ratio
#
# Is the estimate right? The plot is for the producer with the most batches, under the captured settings. Each point is
# the mean over the batches up to the next point. A batch can become too large only if the estimate is below its actual
# ratio. Each split raises the estimate, which then comes down in small steps.

# %%
ratios = lake.sql("""
    WITH busiest AS (
        SELECT client_id, client_address, topic FROM batch_split WHERE scenario = 'captured'
        ORDER BY batches DESC, client_id, topic LIMIT 1
    )
    SELECT first_batch, estimated_ratio AS estimated, observed_ratio AS observed
    FROM batch_split_timeline JOIN busiest USING (client_id, client_address, topic)
    WHERE scenario = 'captured' ORDER BY first_batch
""").toPandas()
alt.Chart(ratios.melt("first_batch", var_name="ratio", value_name="value"), width=520, height=220).mark_line(
    point=True
).encode(
    x=alt.X("first_batch:Q", title="batches before"),
    y=alt.Y("value:Q", title="compressed / uncompressed bytes"),
    color=alt.Color("ratio:N", title=None),
)

# %% [markdown]
# ## Ask your own
#
#     ./spark-submit.sh pipeline --captures=CAPTURES --lake=LAKE --captured=batch.size=1MB --captured=linger.ms=20 \
#       --captured=max.message.bytes=1MiB --set=producer.batch.size=256KiB,512KiB --set=split.profile=today,kip
#
# [conf/settings.yaml](../conf/settings.yaml) has the settings with `batch_split` among their algorithms. Two
# questions to begin with. Which topics share a producer and compress differently, so that it matters to have one
# estimate per topic and codec?

# %%
lake.sql("""
    SELECT client_id, topic, codec, count(*) AS batches, sum(record_count) AS records,
           round(sum(size_bytes) / sum(uncompressed_bytes), 3) AS ratio, max(size_bytes) AS largest_batch
    FROM record_batches WHERE source = 'produce' GROUP BY ALL ORDER BY batches DESC, client_id, topic, codec LIMIT 10
""")

# %% [markdown]
# And how long does the estimate take to recover from a split?

# %%
lake.sql("""
    SELECT scenario, client_id, topic, recoveries, int(round(recovery_ms_mean)) AS recovery_ms_mean,
           int(round(recovery_ms_max)) AS recovery_ms_max, is_recovering
    FROM batch_split WHERE splits > 0 ORDER BY recovery_ms_max DESC NULLS LAST, scenario, client_id, topic LIMIT 10
""")
