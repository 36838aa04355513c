"""Which quota a consumer has (KIP-55, KIP-257); tests/oracle/test_quota_precedence.py asks Kafka's own class."""

from __future__ import annotations

import pytest

from udfs.replay.fetch_max_bytes.quotas import EACH, OwnQuota, QuotaOf, own_quota, quota_of_key, quotas_of_settings
from udfs.replay.shared.lanes import Value

ANN_APP = QuotaOf("ann", "app")


@pytest.mark.parametrize(
    ("key", "whose"),
    [
        ("consumer_byte_rate", (None, EACH)),
        ("client.app.consumer_byte_rate", (None, "app")),
        ("client.my.app.consumer_byte_rate", (None, "my.app")),
        ("user.consumer_byte_rate", (EACH, None)),
        ("user.ann.consumer_byte_rate", ("ann", None)),
        ("user.ann@some.where.consumer_byte_rate", ("ann@some.where", None)),
        ("user.client.consumer_byte_rate", (EACH, EACH)),
        ("user.ann.client.consumer_byte_rate", ("ann", EACH)),
        ("user.client.app.consumer_byte_rate", (EACH, "app")),
        ("user.ann.client.my.app.consumer_byte_rate", ("ann", "my.app")),
    ],
)
def test_a_setting_says_whose_quota_it_is(key: str, whose: tuple[str | None, str | None]) -> None:
    assert quota_of_key(key) == whose


def test_the_first_quota_in_kafkas_order_is_a_consumers_own() -> None:
    order = [
        ANN_APP, QuotaOf("ann", EACH), QuotaOf("ann", None), QuotaOf(EACH, "app"), QuotaOf(EACH, EACH),
        QuotaOf(EACH, None), QuotaOf(None, "app"), QuotaOf(None, EACH),
    ]  # fmt: skip
    meters = [ANN_APP, ANN_APP, QuotaOf("ann", None)] * 2 + [QuotaOf(None, "app")] * 2
    for place in range(len(order)):
        left = {of: 100 + number for number, of in enumerate(order) if number >= place}
        assert own_quota(left, "ann", "app", "app at here") == OwnQuota(100 + place, meters[place])
    assert own_quota({}, "ann", "app", "app at here") is None
    assert own_quota({QuotaOf("bob", None): 1, QuotaOf("bob", "app"): 1}, "ann", "app", "app at here") is None


def test_a_reader_whose_user_is_not_known_is_a_user_of_its_own_and_has_no_quota_by_name() -> None:
    quotas = {QuotaOf("ann", None): 5, QuotaOf(EACH, None): 9}
    here, there = (own_quota(quotas, None, "app", f"app at {place}") for place in ("here", "there"))
    assert here
    assert there
    assert (here.rate, there.rate) == (9, 9)
    assert here.meter != there.meter


def test_none_takes_a_quota_away() -> None:
    rates: dict[str, Value] = {"user.consumer_byte_rate": 7, "user.ann.consumer_byte_rate": "none", "order": "client"}
    quotas = quotas_of_settings(rates)
    assert quotas == {QuotaOf(EACH, None): 7}
