"""The gold table of recommendations: what to change, what to keep, and what is withheld."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID
from schemas.tables.table import Spec as C
from schemas.tables.table import table

RECOMMENDATIONS = table(
    "recommendations", "gold",
    "What to change and what to keep: one row per setting, and per client, topic, broker or cluster that has it. The "
    "screen and the report begin with these rows; docs/advice.md has the rules.",
    ("run_id", "algorithm", "scope_kind", "scope", "setting"), "run_id",
    run_id=RUN_ID,
    place=C("int", "Position among the rows of the run, from 1: changes come first, those that gain most before the "
                   "others"),
    algorithm=C("string", "The replay on which the advice is based, as in runs"),
    scope_kind=C("string", "What has the setting: client, broker, topic, cluster, or limit (all topics with the same "
                           "max.message.bytes)"),
    scope=C("string", "client.id, the broker's node id, the topic's name, or the limit in bytes; empty for the "
                      "cluster, and for clients without client.id"),
    setting=C("string", "The setting, as --set spells it"),
    verdict=C("string", "change, keep, or withheld if the replay is not good enough for a verdict; reason says why"),
    value_now=C("string", "The value in force, as Kafka's configuration files spell it; several are separated by "
                          "commas; `none` if there is no bound. Null if it is not known", nullable=True),
    source=C("string", "How the value in force is known: captured, inferred, stated or default"),
    recommended=C("string", "The value to set, as Kafka's configuration files spell it; the same as value_now if it "
                            "should be kept; null if the replay finds none", nullable=True),
    enough=C("string", "The smallest value that would have been enough in this capture, if the replay shows it",
             nullable=True),
    gain=C("string", "What the change gains, as a sentence; empty if nothing is to be changed"),
    gain_metric=C("string", "Metric by which the gain is measured, such as longest_wait_ms", nullable=True),
    gain_before=C("double", "gain_metric in the captured lane", nullable=True),
    gain_before_low=C("double", "Lower end of the range of gain_before when pace is drawn anew, as in fetch_ranges and "
                                "batch_split_ranges; null if pace is not drawn anew", nullable=True),
    gain_before_high=C("double", "Upper end of the range of gain_before; null also for a backlog that is not read at a "
                                 "slow pace", nullable=True),
    gain_after=C("double", "gain_metric with the recommended value", nullable=True),
    gain_after_low=C("double", "Lower end of the range of gain_after, as for gain_before_low", nullable=True),
    gain_after_high=C("double", "Upper end of the range of gain_after, as for gain_before_high", nullable=True),
    cost=C("string", "What the change costs, as a sentence; empty if nothing is to be changed"),
    cost_metric=C("string", "Metric by which the cost is measured, such as held_bytes", nullable=True),
    cost_before=C("double", "cost_metric in the captured lane", nullable=True),
    cost_after=C("double", "cost_metric with the recommended value", nullable=True),
    checked=C("bigint", "Results of the captured lane that could be checked against the capture; those of this client "
                        "if the advice is about one; 0 if none of those could be on which the advice rests"),
    agreed=C("bigint", "How many of the checked results agree"),
    unknown=C("bigint", "Results of the captured lane that could not be checked"),
    reason=C("string", "Reason for the verdict, as a sentence"),
    is_proposal=C("boolean", "The setting exists only in a proposal and in no release of Kafka"),
)  # fmt: skip
