"""Which bandwidth quota a client has, and which clients share it at a broker (KIP-13, KIP-55, KIP-257).

The order in which quotas are looked up, and the meter that counts, follow DefaultQuotaCallback in
org.apache.kafka.server.quota.ClientQuotaManager (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from udfs.replay.shared.lanes import NO_LIMIT, Value

CONSUMER_QUOTA, PRODUCER_QUOTA = "consumer_byte_rate", "producer_byte_rate"
EACH = "<default>"
"""Stands for a name: everybody who has no quota of their own, as Kafka's tools call it."""
USER, CLIENT = "user", "client"


class QuotaOf(NamedTuple):
    """Whose quota it is: a user's, a client.id's, or that of a user's client.id; each is a name or EACH."""

    user: str | None
    client_id: str | None


class OwnQuota(NamedTuple):
    """How many bytes/s a client may fetch from a broker or send to it, and which meter counts them: the meter of a
    user, of a client.id, or of both.
    """

    rate: int
    meter: QuotaOf


def quotas_of_settings(values: Mapping[str, Value], quota: str = CONSUMER_QUOTA) -> dict[QuotaOf, int]:
    """The quotas of consumers, or of producers, among settings, in bytes/s. A setting of `none` is no quota.

    >>> quotas_of_settings({"consumer_byte_rate": 5, "user.ann.consumer_byte_rate": 7, "fetch.max.bytes": 1})
    {QuotaOf(user=None, client_id='<default>'): 5, QuotaOf(user='ann', client_id=None): 7}
    """
    return {
        quota_of_key(key): int(value)
        for key, value in values.items()
        if is_quota(key, quota) and value not in (None, NO_LIMIT)
    }


def is_quota(key: str, quota: str = CONSUMER_QUOTA) -> bool:
    """Whether a setting is a quota of consumers, or of producers."""
    return key == quota or key.endswith(f".{quota}")


def has_quota(keys: Iterable[str], quota: str = CONSUMER_QUOTA) -> bool:
    """Whether any of these settings is a quota of consumers, or of producers."""
    return any(is_quota(key, quota) for key in keys)


def quota_of_key(key: str) -> QuotaOf:
    """Whose quota a setting is, by its key. Without user and client it is the quota of each client.id.

    >>> quota_of_key("user.client.app.consumer_byte_rate"), quota_of_key("user.ann.client.consumer_byte_rate")
    (QuotaOf(user='<default>', client_id='app'), QuotaOf(user='ann', client_id='<default>'))
    """
    whose = f".{key.rpartition('.')[0]}."
    if not whose.startswith(f".{USER}."):
        return QuotaOf(None, whose.removeprefix(f".{CLIENT}.").strip(".") or EACH)
    user, of_client, client = whose.removeprefix(f".{USER}").partition(f".{CLIENT}.")
    return QuotaOf(user.strip(".") or EACH, (client.strip(".") or EACH) if of_client else None)


def own_quota(quotas: Mapping[QuotaOf, int], user: str | None, client_id: str, reader: str) -> OwnQuota | None:
    """The quota of a client; None if it has none.

    user: None if it is not known. The client then counts as a user of its own that no quota names. reader: a name that
    nobody else has.
    """
    name = reader if user is None else user
    named = [] if user is None else [QuotaOf(user, client_id), QuotaOf(user, EACH), QuotaOf(user, None)]
    of_each = [QuotaOf(EACH, client_id), QuotaOf(EACH, EACH), QuotaOf(EACH, None)]
    for of in (*named, *of_each, QuotaOf(None, client_id), QuotaOf(None, EACH)):
        if of in quotas:
            meter = QuotaOf(None if of.user is None else name, None if of.client_id is None else client_id)
            return OwnQuota(quotas[of], meter)
    return None
