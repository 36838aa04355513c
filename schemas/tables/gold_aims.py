"""The gold tables of aims: the setting that meets one, and what other settings trade for it."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

_OF_AIM = {
    "algorithm": C("string", "The replay whose outcomes the aim names, as in runs"),
    "scope_kind": C(
        "string",
        "Whom the setting is for: client, topic, limit (all topics with the same max.message.bytes), or cluster "
        "(all clients and topics together)",
    ),
    "scope": C(
        "string",
        "client.id, the topic's name or the limit in bytes; empty for the cluster, and for clients without client.id",
    ),
}
_KEY = ("run_id", "algorithm", "scope_kind", "scope")

AIM_SETTINGS = table(
    "aim_settings", "gold",
    "The settings that meet an aim (`--find`): one row for each setting that the aim varies. The clients and topics "
    "that gain most from a value of their own have a row for each setting whose value differs for them. docs/find.md "
    "says how the search works.",
    (*_KEY, "setting"), "run_id",
    run_id=RUN_ID,
    **_OF_AIM,
    setting=C("string", "The setting, as --set spells it"),
    aim=C("string", "The aim, as --find takes it"),
    scenario=C("string", "The chosen lane: these settings, or `captured`. If no lane meets the aim, the one that comes "
                         "nearest"),
    is_met=C("boolean", "The lane meets every constraint of the aim. A constraint on an outcome with a range must hold "
                        "for its p90, or for its p10 with >="),
    value=C("string", "The setting's value in that lane, as --set takes it; null if it stays as captured",
            nullable=True),
    value_from=C("string", "Smallest replayed value from which all values up to `value` are as good, if the other "
                           "settings are as in the lane", nullable=True),
    value_to=C("string", "Largest replayed value up to which all values from `value` on are as good, if the other "
                         "settings are as in the lane", nullable=True),
    binds=C("array<string>", "The constraints that bind: without them the outcome would be better"),
    relax=C("array<string>", "If the aim is not met, the constraints as they would have to be for some lane to meet it",
            ),
    outcomes=C("map<string,double>", "Results of the chosen lane, by outcome. The p90 of an outcome NAME with a range "
                                     "is NAME_p90; a time that never ends is infinite"),
    captured=C("map<string,double>", "Results of the captured lane, by outcome, as in outcomes"),
    for_all=C("map<string,double>", "For a client or topic: its results in the lane that is chosen for all, or in the "
                                    "captured lane if no lane meets the aim for all. Empty for the cluster"),
    lanes_replayed=C("int", "How many lanes the search replayed"),
    rounds=C("int", "In how many rounds they were replayed"),
)  # fmt: skip

TRADE_OFF = table(
    "trade_off", "gold",
    "What one outcome costs in others: a row for each lane that no other lane beats in the aim and in the outcomes of "
    "all its constraints at once, and for the captured and the chosen lane.",
    (*_KEY, "scenario"), "run_id",
    run_id=RUN_ID,
    **_OF_AIM,
    scenario=SCENARIO,
    place=C("int", "Position on the trade-off curve, from 1; the lane that is best in the aim comes first"),
    is_chosen=C("boolean", "The lane is the one that is recommended"),
    is_met=C("boolean", "The lane meets every constraint of the aim"),
    is_dominated=C("boolean", "Another lane beats it in all of these outcomes, which is possible for `captured`"),
    aim=C("double", "The lane's result in the outcome that the aim optimises; null for a time that never ends, and if "
                    "it is not known", nullable=True),
    outcomes=C("map<string,double>", "The lane's results in all outcomes, as in aim_settings"),
)  # fmt: skip

AIM_TABLES = (AIM_SETTINGS, TRADE_OFF)
