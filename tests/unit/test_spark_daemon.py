from __future__ import annotations

from udfs.kernels.spark_daemon import without_copies

INSTALLED = "/venv/lib/python3.11/site-packages"
COPIES = [f"{INSTALLED}/pyspark/python/lib/{name}" for name in ("pyspark.zip", "py4j-0.10.9.9-src.zip")]


def test_an_installed_pyspark_is_imported_and_not_its_archives() -> None:
    assert without_copies([*COPIES, "/clone", INSTALLED]) == ["/clone", INSTALLED]


def test_archives_of_a_pyspark_that_is_not_on_the_path_are_imported() -> None:
    of_a_cluster = ["/opt/spark/python/lib/pyspark.zip", "", "/clone", INSTALLED]
    assert without_copies(of_a_cluster) == of_a_cluster
    assert without_copies([*COPIES, "/clone"]) == [*COPIES, "/clone"]
