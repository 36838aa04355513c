"""Whether refetch makes Spark's log quiet under a plain spark-submit."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from jobs.session.spark import quiet_properties

QUIET = {"spark.log.level": "WARN"}


def java(kind: str, location: str | None) -> Any:
    """A Java whose Log4j has a configuration of this class, read from this place."""
    jvm = MagicMock()
    configuration = jvm.org.apache.logging.log4j.LogManager.getContext.return_value.getConfiguration.return_value
    configuration.getClass.return_value.getSimpleName.return_value = kind
    configuration.getConfigurationSource.return_value.getLocation.return_value = location
    return jvm


@pytest.mark.parametrize(
    ("kind", "location", "properties"),
    [
        ("PropertiesConfiguration", "jar:file:/spark.jar!/org/apache/spark/log4j2-defaults.properties", QUIET),
        ("DefaultConfiguration", None, QUIET),
        ("PropertiesConfiguration", "/etc/spark/log4j2.properties", {}),
        ("BuiltConfiguration", None, {}),
    ],
)
def test_a_log_that_nobody_has_configured_is_made_quiet(
    kind: str, location: str | None, properties: dict[str, str]
) -> None:
    assert quiet_properties(java(kind, location)) == properties
