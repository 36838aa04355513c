"""What the page reads from a lake of an older release."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from jobs.report_page.findings import OF_SHARE_GROUPS, KnownRun, own_rows_of
from schemas.tables.gold import RUNS
from schemas.tables.silver import QUARANTINE
from udfs.errors import LakeError


def test_a_lake_of_before_has_no_rows_of_share_groups_and_lacks_no_other_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    row = Row(**{RUNS.run_id: "run", RUNS.capture_id: "set", RUNS.cluster_id: None, RUNS.scenario_json: "{}"})
    own_rows = own_rows_of(spark, str(tmp_path), KnownRun((row,), ()))
    assert [own_rows(table).count() for table in OF_SHARE_GROUPS] == [0, 0, 0, 0]
    with pytest.raises(LakeError, match="silver/quarantine: no such table"):
        own_rows(QUARANTINE)
