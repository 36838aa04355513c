#!/usr/bin/env bash
# What the image runs: Spark's driver or executor where Kubernetes asks for one, else a job of refetch.
set -euo pipefail
case "${1:-}" in
  driver | executor) exec /opt/entrypoint.sh "$@" ;;
  *) exec /opt/refetch/spark-submit.sh "$@" ;;
esac
