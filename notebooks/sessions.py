# %% [markdown]
# # Sessions: how many fetch-session slots, and who evicts whom
#
# A broker keeps a cache of fetch sessions (KIP-227). A client that has a session names only what changed; one without
# names all its partitions in every fetch. How many `max.incremental.fetch.session.cache.slots` does this traffic need?
#
# Evictions alone mislead: a cache that is far too small mostly *refuses* sessions and evicts few.

# %%
import altair as alt

from jobs.open_lake import open_lake

_ = alt.renderers.enable("svg")

# %% tags=["parameters"]
LAKE = None  # a folder or URI; None: the environment variable REFETCH_LAKE, else the quickstart's lake

# %%
lake = open_lake(LAKE)
lanes = lake.lanes("session_cache")

# %% [markdown]
# ## What the capture shows, and how far to trust it
#
# Sessions that were open when the capture began are not known. The replay of the captured settings is compared with
# the capture in what brokers granted, refused and did not find, and in the partitions that sessions, requests and
# incremental responses name.

# %%
lake.sql("""
    SELECT connections, connections_begun_before, fetches, fetches_of_unknown_sessions, missing_bytes
    FROM capture_quality WHERE connection_id IS NULL
""")

# %%
lake.sql("""
    SELECT metric, reader, sum(checked) AS checked, sum(agreed) AS agreed, sum(unknown) AS unknown
    FROM fidelity WHERE algorithm = 'session_cache' GROUP BY ALL ORDER BY metric, reader
""")

# %% [markdown]
# The captured number of slots is what was stated (`--captured`), else Kafka's default. The capture itself allows no
# fewer than `slots_at_least` and, if a full cache was seen, no more than `slots_at_most`.

# %%
lake.sql("""
    SELECT broker, slots, shards, slots_at_least, slots_at_most
    FROM session_slots WHERE scenario = 'captured' ORDER BY broker
""")

# %% [markdown]
# ## What other slots would change
#
# In the closed loop, clients follow the responses that they would have got. From left to right: of the fetches that
# asked for a session, the share that was refused; of all fetches, the share of full ones, which name every partition or
# close a session; and of all fetches, the share that named a session that the broker did not find. No bar means none.

# %%
curve = lake.sql("""
    SELECT scenario, sum(refused) / sum(refused + created) AS `sessions refused`,
           sum(full_fetches) / sum(fetches) AS `full fetches`, sum(not_found) / sum(fetches) AS `session not found`
    FROM session_cache GROUP BY scenario ORDER BY scenario
""").toPandas()
shares = curve.melt("scenario", var_name="what", value_name="share")
alt.Chart(shares, width=150, height=alt.Step(22)).mark_bar().encode(
    x=alt.X("share:Q", title=None).axis(format="%"),
    y=alt.Y("scenario:N", sort=lanes, title=None).axis(
        labelExpr="replace(datum.label, 'broker.max.incremental.fetch.session.cache.', '')"
    ),
    column=alt.Column("what:N", title=None, sort=["sessions refused", "full fetches", "session not found"]),
)

# %%
lake.sql("""
    SELECT scenario, max(live_sessions) AS most_live, sum(created) AS created, sum(refused) AS refused,
           sum(evicted) AS evicted, sum(not_found) AS not_found, sum(full_fetches) AS full, sum(fetches) AS fetches,
           round(sum(request_bytes) / 1024, 1) AS requests_kib
    FROM session_cache GROUP BY scenario ORDER BY refused, evicted, scenario
""")

# %% [markdown]
# From how many slots per broker on is nobody refused or evicted? That depends on the number of shards: each of the
# eight shards of today's cache has its own slots and evictions, so one may be full while others have room.

# %%
lake.sql("""
    SELECT shards, max(zero_harm_slots) AS nobody_refused_from FROM session_slots GROUP BY shards ORDER BY shards
""")

# %% [markdown]
# ## Who evicts whom
#
# No rows mean that nobody does.

# %%
lake.sql("""
    SELECT scenario, evictor, victim, sum(evictions) AS evictions
    FROM session_evictions GROUP BY ALL ORDER BY evictions DESC, scenario, evictor, victim LIMIT 12
""")

# %% [markdown]
# ## Ask your own
#
#     ./spark-submit.sh replay --lake=LAKE --captured=max.incremental.fetch.session.cache.slots=1000 \
#       --set=max.incremental.fetch.session.cache.slots=500,1000,2000 \
#       --set=min.incremental.fetch.session.eviction.ms=60s
#
# `--set=kafka=3.7` replays the cache of releases before 3.8, which has no shards. [docs/tables.md](../docs/tables.md)
# has the columns. Two questions to begin with. Which clients ask for a session most often? Clients that come and go do.

# %%
lake.sql("""
    SELECT client_id, client_software_name, count(*) AS asks_for_one, count(DISTINCT connection_id) AS connections
    FROM exchanges WHERE api_name = 'FETCH' AND fetch_session_epoch = 0
    GROUP BY ALL ORDER BY asks_for_one DESC, client_id, client_software_name LIMIT 10
""")

# %% [markdown]
# And were some shards full while others had room?

# %%
lake.sql("""
    SELECT scenario, broker, max(array_max(shard_sessions)) AS fullest_shard,
           sum(refused + evicted) AS refused_or_evicted,
           sum(refused_despite_room + evicted_despite_room) AS beside_a_free_slot
    FROM session_cache GROUP BY ALL ORDER BY refused_or_evicted DESC, scenario, broker LIMIT 12
""")
