# %% [markdown]
# # Limits: whose topics would a partition limit refuse?
#
# **KIP-578 is a proposal that no release of Kafka has**: `max.broker.partitions` and `max.partitions` would limit the
# replicas on a broker and in a cluster, and refuse what exceeds them. The limits that Kafka has today, 10,000
# partitions per request and the controller mutation quota, hold in every lane.

# %%
import altair as alt

from jobs.open_lake import open_lake

_ = alt.renderers.enable("svg")

# %% tags=["parameters"]
LAKE = None  # a folder or URI; None: the environment variable REFETCH_LAKE, else the quickstart's lake

# %%
lake = open_lake(LAKE)
lanes = lake.lanes("partition_limits")

# %% [markdown]
# ## What the capture shows, and how far to trust it
#
# The changes to topics that were requested, and how often the replay of the captured settings allows and refuses the
# same as the cluster.

# %%
lake.sql("""
    SELECT metric, sum(checked) AS checked, sum(agreed) AS agreed, sum(unknown) AS unknown
    FROM fidelity WHERE algorithm = 'partition_limits' GROUP BY metric ORDER BY metric
""")

# %%
lake.sql("""
    SELECT kind, error_code, count(*) AS changes, count(DISTINCT topic) AS topics
    FROM topic_changes GROUP BY ALL ORDER BY changes DESC, kind, error_code
""")

# %% [markdown]
# ## What limits would refuse (KIP-578, a proposal)
#
# How many changes to topics would be done, and what would refuse the others?

# %%
outcome = lake.sql("""
    SELECT scenario, sum(done) AS done, sum(refused_by_broker_limit) AS `refused by max.broker.partitions`,
           sum(refused_by_cluster_limit) AS `refused by max.partitions`, sum(refused_before) AS `topic refused before`,
           sum(refused_by_kafka) AS `refused by Kafka of today`, sum(otherwise_failed) AS `failed otherwise`
    FROM partition_limits GROUP BY scenario ORDER BY scenario
""").toPandas()
changes = outcome.melt("scenario", var_name="outcome", value_name="changes")
alt.Chart(changes[changes.changes > 0], width=420, height=alt.Step(22)).mark_bar().encode(
    y=alt.Y("scenario:N", sort=lanes, title=None).axis(labelLimit=420),
    x=alt.X("changes:Q", title="changes to topics").axis(tickMinStep=1),
    color=alt.Color("outcome:N", title=None).legend(labelLimit=240),
)

# %% [markdown]
# Who is affected, by prefix of the topics? The table says whose changes are refused, whose fail because the topic was
# refused before, and whose produce requests and fetches fail because their topic does not exist.

# %%
lake.sql("""
    SELECT scenario, topic_prefix, client_id, kind, tried,
           refused_by_broker_limit + refused_by_cluster_limit AS refused, refused_before, replicas_refused,
           produces_failed, fetches_failed
    FROM partition_limits
    WHERE scenario <> 'captured' AND replicas_refused + refused_before + produces_failed + fetches_failed > 0
    ORDER BY replicas_refused DESC, produces_failed DESC, fetches_failed DESC, scenario, topic_prefix, client_id, kind
    LIMIT 12
""")

# %% [markdown]
# ## Every other limit
#
# For every value of each limit alone, the first change that would have been refused. In the first row of a limit
# nothing is refused, so the row says from which value on the limit is safe.

# %%
lake.sql("""
    SELECT refused_by, limit_from, limit_to, kind, topic, present, asked
    FROM partition_limit_curve ORDER BY refused_by, limit_from DESC LIMIT 12
""")

# %% [markdown]
# ## Remaining room
#
# How many replicas would still fit, and until when (UTC)? `breach_at` extrapolates the capture's growth, which says
# little if the capture is short.

# %%
lake.sql("""
    SELECT scenario, refused_by, broker, limit_value, partitions, headroom,
           format_number(growth_per_day, 0) AS growth_per_day,
           date_format(breach_at, 'yyyy-MM-dd HH:mm:ss') AS breach_at
    FROM partition_limit_headroom ORDER BY headroom, scenario, refused_by, broker LIMIT 12
""")

# %% [markdown]
# The replicas of each broker over time, as captured. Brokers with equally many replicas share a line.

# %%
replicas = lake.sql("""
    SELECT timestampdiff(MILLISECOND, min(at) OVER (), at) / 1000 AS seconds, cast(broker AS string) AS broker,
           partitions
    FROM partitions_per_broker WHERE scenario = 'captured' ORDER BY seconds, broker
""").toPandas()
alt.Chart(replicas, width=520, height=180).mark_line(interpolate="step-after", opacity=0.7).encode(
    x=alt.X("seconds:Q", title="seconds since the first change"),
    y=alt.Y("partitions:Q", title="replicas on the broker", scale=alt.Scale(zero=False)).axis(tickMinStep=1),
    color=alt.Color("broker:N", title="broker"),
)

# %% [markdown]
# ## Ask your own
#
#     ./spark-submit.sh replay --lake=LAKE --set=max.broker.partitions=2000,4000 --set=max.partitions=none,200000
#
# `./spark-submit.sh size --cluster=FILE` needs no capture, but a file of brokers, topics and growth.
# [docs/tables.md](../docs/tables.md) has the columns. Two questions to begin with. What would a refused client have
# read in its response? Error 44 is Kafka's POLICY_VIOLATION.

# %%
lake.sql("""
    SELECT scenario, client_id, topic, error_code, message FROM partition_limit_refusals
    ORDER BY scenario, request_time, topic LIMIT 5
""")

# %% [markdown]
# And who changes topics most?

# %%
lake.sql("""
    SELECT client_id, kind, count(*) AS changes, count_if(error_code <> 0) AS failed
    FROM topic_changes GROUP BY ALL ORDER BY changes DESC, client_id, kind LIMIT 10
""")
