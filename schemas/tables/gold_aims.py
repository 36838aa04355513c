"""The gold tables of aims: the setting that meets one, and what other settings trade for it."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID, SCENARIO
from schemas.tables.table import Spec as C
from schemas.tables.table import table

_OF_AIM = {
    "algorithm": C("string", "The replay whose outcomes the aim names, as in runs"),
    "scope_kind": C(
        "string",
        "Whom the setting is for: client, topic, limit for all topics of one max.message.bytes, "
        "or cluster for all of them together",
    ),
    "scope": C(
        "string",
        "client.id, the topic's name or the limit in bytes; empty for the cluster, and for clients without client.id",
    ),
}
_KEY = ("run_id", "algorithm", "scope_kind", "scope")

AIM_SETTINGS = table(
    "aim_settings", "gold",
    "The setting that meets an aim (`--find`), a row for each setting that the aim is over. The clients and topics "
    "that gain most from a value of their own have a row for each setting that is another for them. docs/find.md "
    "says how it is looked for.",
    (*_KEY, "setting"), "run_id",
    run_id=RUN_ID,
    **_OF_AIM,
    setting=C("string", "The setting, as --set has it"),
    aim=C("string", "The aim, as --find has it"),
    scenario=C("string", "The lane that is chosen: of these settings, or `captured`; if no setting meets the "
                         "aim, the one that fails it least"),
    is_met=C("boolean", "The lane meets every constraint of the aim, those on ranges with their p90"),
    value=C("string", "The setting's value in that lane, as --set has it; null if it is left as captured",
            nullable=True),
    value_from=C("string", "The smallest replayed value from which all up to `value` do as well, the other settings "
                           "being as in the lane", nullable=True),
    value_to=C("string", "... the largest up to which all do", nullable=True),
    binds=C("array<string>", "The constraints without which the result in the aim would be better"),
    relax=C("array<string>", "If the aim is not met: relaxed constraints that a setting would meet"),
    outcomes=C("map<string,double>", "The lane's outcomes by name; p90 of those with ranges is NAME_p90; "
                                     "infinite for what never ends"),
    captured=C("map<string,double>", "... the captured lane"),
    for_all=C("map<string,double>", "For a client or topic: its outcomes in the lane that is chosen for all. That is "
                                    "the captured one if no setting meets the aim for all; empty for the cluster"),
    lanes_replayed=C("int", "Lanes that were replayed to look for it"),
    rounds=C("int", "Rounds in which they were"),
)  # fmt: skip

TRADE_OFF = table(
    "trade_off", "gold",
    "The trade-off: a row for each lane that no other lane beats in the aim and all its constraints' outcomes "
    "together. The captured and the chosen lane have rows, too.",
    (*_KEY, "scenario"), "run_id",
    run_id=RUN_ID,
    **_OF_AIM,
    scenario=SCENARIO,
    place=C("int", "Its place on the curve, from 1; the lane that is best in the aim is first"),
    is_chosen=C("boolean", "It is the lane that is recommended"),
    is_met=C("boolean", "It meets every constraint of the aim"),
    is_dominated=C("boolean", "Another lane beats it, as may be for `captured`"),
    aim=C("double", "Its result in the aim; null for what never ends, or is not known", nullable=True),
    outcomes=C("map<string,double>", "All its outcomes, as in aim_settings"),
)  # fmt: skip

AIM_TABLES = (AIM_SETTINGS, TRADE_OFF)
