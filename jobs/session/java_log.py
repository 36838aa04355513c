"""Spark's log under a plain spark-submit: as quiet as that of a Spark started here, unless somebody has chosen it."""

from __future__ import annotations

from collections.abc import Mapping

from py4j.java_gateway import JVMView

_OF_SPARK = "org/apache/spark/log4j2-defaults.properties"
"""What Spark takes where its class path has no log4j2.properties and Java is told of none: lines for each task."""
_OF_LOG4J = "DefaultConfiguration"
"""What Log4j has in such a Spark until that logs for the first time."""
_QUIET = {"spark.log.level": "WARN"}
"""The level of conf/log4j2.properties."""


def quiet_properties(jvm: JVMView) -> Mapping[str, str]:
    """The property that has a new Spark log no more than warnings; none where somebody has told Java what to log."""
    configuration = jvm.org.apache.logging.log4j.LogManager.getContext(False).getConfiguration()
    location = configuration.getConfigurationSource().getLocation() or ""
    is_default = location.endswith(_OF_SPARK) or configuration.getClass().getSimpleName() == _OF_LOG4J
    return _QUIET if is_default else {}
