"""Every night: replay the captures of the day before, say on the page what changed, and prune the lake.

For Airflow 3. With Airflow 2, DAG is in `airflow`, BashOperator in `airflow.operators.bash`, and `ds` is the day before
already. The workers have a clone in /opt/refetch, with its .venv; with an installed wheel, put `refetch` in place of
the script.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

# Paths are absolute, for a command runs in a folder of its own.
REFETCH = "/opt/refetch/spark-submit.sh"
CAPTURES = "/data/captures/{{ macros.ds_add(ds, -1) }}"
LAKE = "--lake=/data/lake"

with DAG(
    dag_id="refetch",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # one writer of the lake at a time
    default_args={
        "retries": 2,  # the same command again leaves the same tables
        "retry_delay": timedelta(minutes=5),
        "skip_on_exit_code": 3,  # a gate refused: downstream tasks are skipped, and nothing is retried
    },
):
    replay = BashOperator(
        task_id="replay",
        bash_command=f"{REFETCH} pipeline --captures={CAPTURES} {LAKE} --compare-with=previous --strict",
    )
    prune = BashOperator(task_id="prune", bash_command=f"{REFETCH} prune --older-than=90d {LAKE}")

    replay >> prune
