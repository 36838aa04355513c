"""kafka-clients, as the oracle tests fetch it."""

from __future__ import annotations

import os

from tests.oracle.conftest import KAFKA_NEWEST, SLF4J, find_jar


def kafka_clients() -> str:
    """The class path of the newest kafka-clients."""
    return os.pathsep.join(str(find_jar(name)) for name in (f"org.apache.kafka:kafka-clients:{KAFKA_NEWEST}", SLF4J))
