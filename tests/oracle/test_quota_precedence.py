"""The replay gives a client of a user the quota and the meter that a broker's own ClientQuotaManager gives it."""

from __future__ import annotations

import random
from itertools import product

from tests.oracle.conftest import Jars, RunJava
from udfs.replay.fetch_max_bytes.quotas import EACH, QuotaOf, own_quota

KAFKA = "4.3.1"
USERS, CLIENTS = ("ann", "bob"), ("app", "job")
ANY_OF = [
    QuotaOf(user, client)
    for user, client in product((None, EACH, *USERS), (None, EACH, *CLIENTS))
    if user is not None or client is not None
]
WORDS = {None: "-", EACH: "*"}
EXAMPLES = 400


def examples() -> list[dict[QuotaOf, int]]:
    """Sets of few or many quotas. In a set, no two have the same rate."""
    draw = random.Random(55)  # noqa: S311  (not for secrets)
    chosen = (draw.sample(ANY_OF, draw.randint(0, len(ANY_OF))) for _ in range(EXAMPLES))
    return [{of: 1000 + place for place, of in enumerate(some)} for some in chosen]


def of_kernel(quotas: dict[QuotaOf, int], user: str, client: str) -> str:
    own = own_quota(quotas, user, client, "nobody else")
    return "none - -" if own is None else " ".join([str(own.rate), own.meter.user or "-", own.meter.client_id or "-"])


def test_a_client_of_a_user_has_the_quota_and_the_meter_that_the_broker_gives_it(run_java: RunJava, jars: Jars) -> None:
    lines, expected = list[str](), list[str]()
    for quotas in examples():
        lines.append("new")
        for of, rate in quotas.items():
            lines.append(f"quota {WORDS.get(of.user, of.user)} {WORDS.get(of.client_id, of.client_id)} {rate}")
        for user, client in product(USERS, CLIENTS):
            lines.append(f"of {user} {client}")
            expected.append(of_kernel(quotas, user, client))
    names = ("kafka-server", "kafka-server-common", "kafka-clients")
    found = jars(*(f"org.apache.kafka:{name}:{KAFKA}" for name in names))
    said = run_java("QuotaPrecedence.java", *found, stdin="\n".join(lines))
    assert said.splitlines() == expected
    assert len({line.split(" ", 1)[1] for line in expected}) == 2 * 2 + 2 + 2 + 1
