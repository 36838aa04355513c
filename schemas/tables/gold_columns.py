"""Columns that gold tables share."""

from __future__ import annotations

from schemas.tables.table import Spec as C

RUN_ID = C("string", "Id of the run: a hash of what was replayed and of the resolved scenario")
SCENARIO = C("string", "The lane: `captured`, or the settings that it changes as KEY=VALUE,...")
MODE = C(
    "string",
    "open: each captured request is answered under the lane's settings. closed: the reader goes on from what "
    "it received in the lane, until it has read everything that the capture shows",
)
RANGE = {
    "value": C("double", "Result at the captured pace"),
    "p10": C("double", "One in ten replications does not exceed this"),
    "p50": C("double", "Half of the replications do not exceed this"),
    "p90": C("double", "Nine in ten replications do not exceed this"),
    "is_exact": C("boolean", "p10 and p90 are the same, so pace does not matter"),
}
CLIENT_ADDRESS = C(
    "string",
    "The client's IP address; with the port of its first connection for each of several processes that share "
    "client.id and address",
)
OF_READER = {
    "client_id": C("string", "client.id of the reader; empty for none"),
    "client_address": CLIENT_ADDRESS,
    "reader": C("string", "consumer or follower"),
}
