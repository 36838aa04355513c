"""The names of the five replays, as in packages of code, keys of scenarios, `algorithm` in tables and pages of docs."""

from __future__ import annotations

FETCH_MAX_BYTES = "fetch_max_bytes"
CONSUMER_MEMORY = "consumer_memory"
SESSION_CACHE = "session_cache"
BATCH_SPLIT = "batch_split"
PARTITION_LIMITS = "partition_limits"
