"""The rows that the quickstart writes, published as a hash for each table: everybody who runs it gets the same.

    ./spark-submit.sh pipeline --scenario=conf/quickstart.yaml --lake=LAKE
    python -m tests.equal_rows.published LAKE

prints the tables whose rows differ from the published ones. With --write the hashes of the lake are published instead,
for a release that decodes or replays differently.
"""

from __future__ import annotations

import argparse
import json
import sys

from schemas.tables.gold import GOLD, RUNS
from schemas.tables.silver import SILVER
from tests.conftest import REPOSITORY
from tests.equal_rows.hashes import table_hash
from tests.lakes import queried

PUBLISHED = REPOSITORY / "tests/captures/rows.json"
Hashes = dict[str, list[int | str]]
"""[number of rows, their hash] by table."""


def hashes_of_quickstart(lake: str) -> Hashes:
    """The hashes of a lake's tables, for its only capture set and only run. Raises ValueError if it has several."""
    ((capture_id, run_id),) = {
        (row[RUNS.capture_id], row[RUNS.run_id]) for row in queried(lake, RUNS, RUNS.capture_id, RUNS.run_id)
    }
    hashes = {
        table.name: table_hash(lake, table, capture_id if table.layer == "silver" else run_id)
        for table in (*SILVER, *GOLD)
    }
    return {name: [*rows_and_hash] for name, rows_and_hash in hashes.items() if rows_and_hash[0]}


def main() -> int:
    """Compare a lake with the published hashes, or publish its own. Returns 1 if any differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.equal_rows.published", description=__doc__)
    parser.add_argument("lake", metavar="LAKE")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    hashes = hashes_of_quickstart(arguments.lake)
    if arguments.write:
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(of_table)}" for name, of_table in hashes.items())
        PUBLISHED.write_text(f"{{\n{lines}\n}}\n")
        return 0
    published: Hashes = json.loads(PUBLISHED.read_text())
    other = [name for name in {**published, **hashes} if hashes.get(name) != published.get(name)]
    sys.stdout.writelines(f"{name}: {hashes.get(name)}, published {published.get(name)}\n" for name in other)
    return int(bool(other))


if __name__ == "__main__":
    sys.exit(main())
