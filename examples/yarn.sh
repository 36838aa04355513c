#!/usr/bin/env bash
# A night's captures on YARN: examples/yarn.sh CAPTURES LAKE [flag ...], from a clone on a machine of the cluster.
#
# docs/cluster.md says how env.tar.gz (what executors run in) and refetch.zip (what they run) are made; both are looked for
# in the clone. CAPTURES and LAKE are paths that every node sees, or URIs.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
captures=${1:?CAPTURES is missing: examples/yarn.sh CAPTURES LAKE}
lake=${2:?LAKE is missing: examples/yarn.sh CAPTURES LAKE}

export PYSPARK_DRIVER_PYTHON=$PWD/env/bin/python
# The executors' Python, below the folder that YARN unpacks the archive to.
export PYSPARK_PYTHON=./environment/bin/python

# The driver stays in the clone (--deploy-mode client): it reads conf and writes the report.
# Python workers need room beside Java's heap, and YARN kills what takes more than it is given.
exec spark-submit --master yarn --deploy-mode client \
  --load-spark-defaults --properties-file conf/spark-defaults.conf \
  --archives env.tar.gz#environment --py-files refetch.zip \
  --num-executors 4 --executor-cores 2 --executor-memory 2g --conf spark.executor.memoryOverhead=2g \
  jobs/__main__.py pipeline --captures="$captures" --lake="$lake" --out=report.html --strict "${@:3}"
