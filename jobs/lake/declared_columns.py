"""The declared columns of tables as Spark types, and how the columns of a stored table differ from them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from schemas.tables.table import Column, Table
from udfs.errors import LakeError

MIGRATE_IT = "`migrate` with this --lake adds what an older release did not have"
"""What to do where a lake lacks columns or tables that this release has."""
# Written out, because Spark's own parser of types must not be called from several threads.
TYPES: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "tinyint": ByteType(),
    "smallint": ShortType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "timestamp": TimestampType(),
    "array<int>": ArrayType(IntegerType()),
    "array<bigint>": ArrayType(LongType()),
    "array<string>": ArrayType(StringType()),
    "map<string,bigint>": MapType(StringType(), LongType()),
    "map<string,double>": MapType(StringType(), DoubleType()),
    "map<string,string>": MapType(StringType(), StringType()),
}


def spark_schema(table: Table) -> StructType:
    """The table's columns as Spark types."""
    return StructType([StructField(str(column), TYPES[column.type]) for column in table.columns])


def described_schema(table: Table) -> StructType:
    """The table's columns as Spark types, each with what it means."""
    return StructType(
        [StructField(str(c), TYPES[c.type], metadata={"comment": column_comment(c)}) for c in table.columns]
    )


def column_comment(column: Column) -> str:
    """What a column means, with its unit."""
    return f"{column.doc} [{column.unit}]" if column.unit else column.doc


def check_declared_columns(schema: StructType, table: Table, where: str) -> None:
    """Raises LakeError, which lists every difference, if the columns are not those that are declared."""
    faults = column_faults(schema, table)
    if faults:
        is_older = not column_faults(StructType([*schema, *columns_to_add(schema, table)]), table)
        to_do = MIGRATE_IT if is_older else "Use another --lake"
        raise LakeError(f"{where} is not the table this version writes: {'; '.join(faults)}. {to_do}")


def columns_to_add(schema: StructType, table: Table) -> StructType:
    """The declared columns that a table lacks, each with what it means."""
    return StructType([column for column in described_schema(table) if column.name not in schema.names])


def column_faults(schema: StructType, table: Table) -> list[str]:
    """How columns differ from the declared ones, regardless of their order; one text for each difference."""
    columns = {f.name: f.dataType.simpleString() for f in schema}
    wanted = {f.name: f.dataType.simpleString() for f in spark_schema(table)}
    faults = [f"no column `{name}`" for name in wanted if name not in columns]
    faults += [f"unknown column `{name}`" for name in columns if name not in wanted]
    faults += [
        f"column `{name}` is {columns[name]}, expected {kind}"
        for name, kind in wanted.items()
        if columns.get(name, kind) != kind
    ]
    return faults
