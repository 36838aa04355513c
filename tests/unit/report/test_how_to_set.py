"""Advice says where a value is set, and when it takes effect."""

from __future__ import annotations

import pytest

from jobs.find.scopes import Scope
from jobs.report_page.advice.how_to_set import ALTER, how_to_set
from jobs.report_page.advice.recommendation import Confidence, InForce, Recommendation
from jobs.scenarios.settings import settings
from schemas.tables.values import CHANGE

APP, CLUSTER = Scope("client", "app"), Scope()
AT_ONCE = "; it takes effect at once"


def change(setting: str, value: str, scope: Scope = CLUSTER, *, is_proposal: bool = False) -> Recommendation:
    now = InForce("1", "captured")
    sure = Confidence()
    return Recommendation("", scope, setting, CHANGE, now, value, sure, "", is_proposal=is_proposal)


@pytest.mark.parametrize(
    ("setting", "scope", "owners", "how"),
    [
        ("consumer.fetch.max.bytes", APP, 1, "fetch.max.bytes=7 in the configuration of this consumer, read when it "
         "starts"),
        ("producer.batch.size", APP, 2, "batch.size=7 in the configuration of these producers, read when they start"),
        ("producer.batch.size", Scope("limit", "40000"), 1, "batch.size=7 in the configuration of the producers of "
         "these topics, read when they start"),
        ("consumer.fetch.max.bytes", CLUSTER, 1, "fetch.max.bytes=7 in the configuration of all consumers, read when "
         "they start"),
        ("broker.fetch.max.bytes", CLUSTER, 1, "fetch.max.bytes=7 in each broker's server.properties, read when it "
         "starts"),
        ("replica.fetch.max.bytes", CLUSTER, 1, "replica.fetch.max.bytes=7 in each broker's server.properties, read "
         "when it starts"),
        ("num.replica.fetchers", CLUSTER, 1, f"{ALTER} --entity-type brokers --entity-default "
         f"--add-config num.replica.fetchers=7{AT_ONCE}"),
        ("topic.max.message.bytes", Scope("topic", "orders"), 1, f"{ALTER} --entity-type topics --entity-name orders "
         f"--add-config max.message.bytes=7{AT_ONCE}"),
        ("topic.max.message.bytes", Scope("topic", "orders"), 2, f"{ALTER} --entity-type topics --entity-name TOPIC "
         f"--add-config max.message.bytes=7{AT_ONCE}"),
        ("consumer_byte_rate", CLUSTER, 1, f"{ALTER} --entity-type clients --entity-default "
         f"--add-config consumer_byte_rate=7{AT_ONCE}"),
        ("client.app(2).consumer_byte_rate", CLUSTER, 1, f"{ALTER} --entity-type clients --entity-name 'app(2)' "
         f"--add-config consumer_byte_rate=7{AT_ONCE}"),
        ("client.app{2}.consumer_byte_rate", CLUSTER, 1, f"{ALTER} --entity-type clients --entity-name 'app{{2}}' "
         f"--add-config consumer_byte_rate=7{AT_ONCE}"),
        ("user.ann.producer_byte_rate", CLUSTER, 1, f"{ALTER} --entity-type users --entity-name ann "
         f"--add-config producer_byte_rate=7{AT_ONCE}"),
    ],
)  # fmt: skip
def test_a_value_is_set_where_kafka_reads_it(setting: str, scope: Scope, owners: int, how: str) -> None:
    assert how_to_set([change(setting, "7", scope)], owners) == how


def test_values_of_one_place_are_set_together() -> None:
    both = [change("consumer.fetch.max.bytes", "8", APP), change("consumer.max.partition.fetch.bytes", "7", APP)]
    assert how_to_set(both) == (
        "fetch.max.bytes=8 and max.partition.fetch.bytes=7 in the configuration of this consumer, read when it starts"
    )
    apart = [change("consumer.fetch.max.bytes", "8"), change("broker.fetch.max.bytes", "9")]
    assert how_to_set(apart) == "; ".join(how_to_set([one]) for one in apart)


def test_no_bound_is_set_by_leaving_the_setting_out() -> None:
    assert how_to_set([change("queued.max.request.bytes", "none")]).startswith("no queued.max.request.bytes in each")
    assert "--alter --entity-type clients --entity-default --delete-config consumer_byte_rate" in how_to_set(
        [change("consumer_byte_rate", "none")]
    )


def test_a_proposal_cannot_be_set() -> None:
    assert how_to_set([change("max.broker.partitions", "4000", is_proposal=True)]) == ""


def test_every_setting_that_can_be_advised_has_a_place() -> None:
    advised = [of for of in settings().values() if of.exists_as == "setting" and of.algorithms]
    places = {of.key: how_to_set([change(of.key, "7")]) for of in advised}
    assert {key: how for key, how in places.items() if f"{settings()[key].name}=7" not in how} == {}
