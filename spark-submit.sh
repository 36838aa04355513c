#!/usr/bin/env bash
# The one way in.
#   ./spark-submit.sh                        set up what is missing, then run conf/quickstart.yaml
#   ./spark-submit.sh JOB --flag=value ...   one job: pipeline, report, compare, ...; --help lists them all
#   ./spark-submit.sh test [pytest args]     set up what the tests need too, then run them
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)

# Python 3.11 is what the code is written for; the pinned numba and pyarrow have wheels up to 3.14.
runs() {
  command -v -- "$1" > /dev/null &&
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2> /dev/null
}

python=''
for candidate in "${REFETCH_PYTHON:-}" python3 python3.1{1,2,3,4} "$root/.venv/bin/python"; do
  if [[ -n $candidate ]] && runs "$candidate"; then
    python=$candidate
    break
  fi
done
if [[ -z $python ]]; then
  echo "refetch: No Python 3.11 to 3.14 found on PATH. Install one (Debian, Ubuntu: apt install python3 python3-venv;" \
    "macOS: brew install python@3.13; with uv: uv python install 3.13), or set REFETCH_PYTHON to one that has requirements.txt." >&2
  exit 1
fi

export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
# -P: a folder named jobs in the working directory must not stand in for ours.
exec "$python" -P -m jobs.bootstrap "$@"
