"""conf/settings.yaml says of each broker's setting, as Kafka does, whether it can be changed while brokers run."""

from __future__ import annotations

from jobs.scenarios.settings import settings
from tests.oracle.conftest import Jars, RunJava

PARTS = (
    "kafka-server", "kafka-server-common", "kafka-clients", "kafka-storage", "kafka-storage-api",
    "kafka-group-coordinator", "kafka-group-coordinator-api", "kafka-raft", "kafka-transaction-coordinator",
    "kafka-share-coordinator", "kafka-metadata",
)  # fmt: skip


def test_a_brokers_setting_has_the_update_mode_of_kafkas_own_list(run_java: RunJava, jars: Jars) -> None:
    of_brokers = [of for of in settings().values() if of.set_on in ("broker", "replica") and of.exists_as == "setting"]
    names = [of.name for of in of_brokers]
    found = jars(*(f"org.apache.kafka:{part}:4.3.1" for part in PARTS))
    said = run_java("UpdateModes.java", *found, arguments=names).split()
    assert dict(zip(names, said, strict=True)) == {of.name: of.update_mode for of in of_brokers}
    assert {"read-only", "cluster-wide"} == set(said)
