"""consumer_memory: the memory that consumers (KIP-81, a proposal), brokers (KIP-72) and producers use or need."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.captures.packets_needed import check_packets
from jobs.lake.packed_tables import unpack_table
from jobs.replays.algorithm import Algorithm, Source
from jobs.replays.client_processes import client_addresses
from jobs.replays.consumer_memory.answers import QUERIES, TITLE, answer_lines
from jobs.replays.consumer_memory.fetch_limits import distinct_fetch_limits, limits_of_consumers
from jobs.replays.fetch_max_bytes.reads import dealt_reads, with_connections
from jobs.replays.fetch_max_bytes.users import with_users
from jobs.replays.lane_settings import lane_settings
from jobs.replays.silver import Read, client_software, dealt_silver, mapped_silver, may_have_rows, read_small_table
from jobs.scenarios.scenario import Scenario
from jobs.scenarios.settings import setting_of
from jobs.session.one_shuffle import deal_again, replay_shards, shard_count
from schemas.tables import algorithms
from schemas.tables.silver import CONNECTIONS, EXCHANGES, FETCH_PARTITIONS, RECORD_BATCHES
from schemas.tables.steps_memory import MEMORY_EVENTS
from udfs.replay.consumer_memory.controllers import (
    ASKED,
    ASKED_COLUMNS,
    OF_CONTROLLER,
    connections_asking_controllers,
    connections_to_controllers,
)
from udfs.replay.consumer_memory.group_takeovers import (
    FETCH_COLUMNS,
    GROUPS,
    MEMBER_COLUMNS,
    MEMBERS,
    group_fetches,
    groups_of_processes,
    joins_of,
    member_rows,
    takeover_rows,
)
from udfs.replay.consumer_memory.replay import replay_memory
from udfs.replay.consumer_memory.request_releases import LOG_COLUMNS, PARTITIONS, first_fetches, log_batches
from udfs.replay.consumer_memory.settings import MAX_KBYTES, MemoryLanes, memory_lanes
from udfs.replay.consumer_memory.silver_events import (
    BATCH_COLUMNS,
    EXCHANGE_COLUMNS,
    PARTITION_COLUMNS,
    UNITS,
    batch_events,
    exchange_events,
    partition_events,
)
from udfs.replay.fetch_max_bytes.replay import replay_responses
from udfs.replay.fetch_max_bytes.settings import FetchLanes
from udfs.replay.fetch_max_bytes.silver_events import READERS
from udfs.replay.shared.client_software import java_clients, librdkafka_clients, release_code_of_text
from udfs.replay.shared.dealing import deal
from udfs.replay.shared.dealt_rows import DEALT
from udfs.replay.shared.silver_columns import ByConnection


def lanes_and_fetch_limits(scenario: Scenario) -> tuple[MemoryLanes, FetchLanes]:
    """(the lanes as the replay takes them, the fetch limits under which it needs consumers' responses). Settings that a
    lane does not change are as captured, or Kafka's defaults.
    """
    numbers, limits = distinct_fetch_limits(scenario.lanes(algorithms.CONSUMER_MEMORY), scenario.captured)
    settings = lane_settings(scenario, algorithms.CONSUMER_MEMORY, scenario.captured)
    lanes = memory_lanes(settings, limits_of_consumers(limits), numbers, scenario.assumed)
    kbytes = setting_of(MAX_KBYTES)
    older = sorted((release_code_of_text(release), int(value)) for release, value in kbytes.default_before.items())
    lanes = replace(lanes, default_kbytes=int(kbytes.default_value or 0), older_kbytes=tuple(older))
    return replace(lanes, window=scenario.window), replace(limits, window=scenario.window)


def packed(source: Source) -> DataFrame:
    """The memory of all clients and brokers in the capture set. Raises CaptureError if message sizes are not known."""
    check_packets(source.spark, source.run.lake, source.capture_id, algorithms.CONSUMER_MEMORY)
    lanes, limits = lanes_and_fetch_limits(source.run.scenario)
    shards = shard_count(source.spark)
    parts = [
        dealt_silver(source, UNITS, message_reads(source), shards),
        dealt_handling_times(source, shards),
        dealt_takeovers(source, shards),
        dealt_responses(source, limits, shards) if lanes.fetch_number.any() else None,
    ]
    dealt = reduce(DataFrame.unionByName, (part for part in parts if part is not None))
    return replay_shards(dealt, UNITS, shards, partial(replay_memory, lanes=lanes, run_id=source.run_id))


def message_reads(source: Source) -> list[Read]:
    """The exchanges of clients and brokers, the partitions that consumers fetch, and the batches of both."""
    clients = client_software(source)
    java, librdkafka, processes = java_clients(clients), librdkafka_clients(clients), client_addresses(source)
    of_exchanges = partial(
        exchange_events, librdkafka=librdkafka, controllers=controllers(source), processes=processes
    )  # fmt: skip
    return [
        Read(EXCHANGES, EXCHANGE_COLUMNS, of_exchanges),
        Read(FETCH_PARTITIONS, PARTITION_COLUMNS, partial(partition_events, processes=processes)),
        Read(RECORD_BATCHES, BATCH_COLUMNS, partial(batch_events, java=java, processes=processes)),
    ]


def controllers(source: Source) -> ByConnection:
    """The connections whose server is a controller."""
    least, asked = min(OF_CONTROLLER), ASKED.empty_table()
    if may_have_rows(source, EXCHANGES, str(EXCHANGES.api_key), least):
        asked = mapped_silver(source, [Read(EXCHANGES, ASKED_COLUMNS, connections_asking_controllers)], ASKED).toArrow()
    c = CONNECTIONS
    return connections_to_controllers(asked, read_small_table(source, c, (c.connection_id, c.server)))


def dealt_handling_times(source: Source, shards: int) -> DataFrame:
    """Rows of DEALT that say when fetches had returned what produce requests brought, with one shuffle by partition."""
    logs = dealt_silver(source, PARTITIONS, [Read(RECORD_BATCHES, LOG_COLUMNS, log_batches)], shards)
    return deal_again(logs, PARTITIONS, UNITS, shards, first_fetches)


def dealt_takeovers(source: Source, shards: int) -> DataFrame | None:
    """Rows of DEALT for partitions that pass from one member of a group to another, with one shuffle by partition. None
    if no group has several processes.
    """
    processes = client_addresses(source)
    of_members = Read(EXCHANGES, MEMBER_COLUMNS, partial(member_rows, processes=processes))
    members = mapped_silver(source, [of_members], MEMBERS).toArrow()
    groups = groups_of_processes(members)
    if not groups:
        return None
    fetches = Read(FETCH_PARTITIONS, FETCH_COLUMNS, partial(group_fetches, groups=groups, processes=processes))
    dealt = dealt_silver(source, GROUPS, [fetches], shards)
    return deal_again(dealt, GROUPS, UNITS, shards, partial(takeover_rows, joins=joins_of(members)))


def dealt_responses(source: Source, limits: FetchLanes, shards: int) -> DataFrame:
    """Rows of DEALT for the responses that consumers get under other fetch limits. The replay of fetches passes them on
    if it ran before; otherwise the reads of consumers are replayed for them.
    """
    if algorithms.FETCH_MAX_BYTES in source.before:
        rows = unpack_table(source.before[algorithms.FETCH_MAX_BYTES], MEMORY_EVENTS)
        return rows.mapInArrow(partial(deal, step=UNITS, shards=shards), from_arrow_schema(DEALT))
    limits, groups = with_users(source, with_connections(source, limits))
    reads = dealt_reads(source, shards, groups)
    return deal_again(reads, READERS, UNITS, shards, partial(replay_responses, limits=limits))


CONSUMER_MEMORY = Algorithm(algorithms.CONSUMER_MEMORY, TITLE, packed, QUERIES, answer_lines)
