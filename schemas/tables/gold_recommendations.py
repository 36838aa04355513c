"""The gold table of recommendations: what to change, what to keep, and what is withheld."""

from __future__ import annotations

from schemas.tables.gold_columns import RUN_ID
from schemas.tables.table import Spec as C
from schemas.tables.table import table

RECOMMENDATIONS = table(
    "recommendations", "gold",
    "What to change and what to keep, a row for each setting and each client, topic or cluster that it is of. Screen "
    "and page begin with these rows; docs/advice.md has the rules.",
    ("run_id", "algorithm", "scope_kind", "scope", "setting"), "run_id",
    run_id=RUN_ID,
    place=C("int", "Its place among the rows of the run, from 1: changes first, those that gain most before others"),
    algorithm=C("string", "The replay that it rests on, as in runs"),
    scope_kind=C("string", "What the setting is of: client, broker, topic, cluster, or limit for all topics of one "
                           "max.message.bytes"),
    scope=C("string", "client.id, the broker's node id or the topic's name; empty for the cluster, and for clients "
                      "without client.id"),
    setting=C("string", "The setting, as --set has it"),
    verdict=C("string", "change; keep; withheld: the replay does not carry the change that its lanes support"),
    value_now=C("string", "The value in force, as Kafka's files have it; several with commas between; none for no "
                          "bound; null if it is not known", nullable=True),
    source=C("string", "Where that is known from: captured, inferred, stated or default"),
    recommended=C("string", "The value to set, as Kafka's files have it; value_now if it is to be kept", nullable=True),
    enough=C("string", "The smallest value that would have done in this capture, if the replay tells it",
             nullable=True),
    gain=C("string", "What the change gains, as a sentence; empty if nothing is to be changed"),
    gain_metric=C("string", "What the gain is measured by, such as longest_wait_ms", nullable=True),
    gain_before=C("double", "... replayed as captured", nullable=True),
    gain_before_low=C("double", "... at least, with pace drawn anew, as in fetch_ranges and batch_split_ranges; null "
                                "where it is not", nullable=True),
    gain_before_high=C("double", "... at most; null for a backlog that a slow pace leaves, too", nullable=True),
    gain_after=C("double", "... with the recommended value", nullable=True),
    gain_after_low=C("double", "... at least, as before", nullable=True),
    gain_after_high=C("double", "... at most, as before", nullable=True),
    cost=C("string", "What the change costs, as a sentence; empty if nothing is to be changed"),
    cost_metric=C("string", "What the cost is measured by, such as held_bytes", nullable=True),
    cost_before=C("double", "... replayed as captured", nullable=True),
    cost_after=C("double", "... with the recommended value", nullable=True),
    checked=C("bigint", "Results of the replay as captured that could be checked against the capture: of this client, "
                        "if it is about one"),
    agreed=C("bigint", "... that agree"),
    unknown=C("bigint", "Results that could not be checked"),
    reason=C("string", "Why it is so, as a sentence"),
    is_proposal=C("boolean", "The setting exists in a proposal only, and in no release of Kafka"),
)  # fmt: skip
