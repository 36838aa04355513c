"""The Dockerfile and the examples for platforms name files that exist, and jobs accept the arguments they give."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self

import pytest
import yaml

from jobs.cli import parse_arguments
from jobs.resolve import resolve_run
from jobs.session.spark_properties import DELTA_JARS
from jobs.version import VERSION
from tests.conftest import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
IN_IMAGE = "/opt/refetch/"


class Instruction(NamedTuple):
    """An instruction of the Dockerfile, such as COPY, and what follows it."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


def dockerfile() -> list[Instruction]:
    text = re.sub(r"^\s*#.*\n", "", (REPOSITORY / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [Instruction(*line.split(maxsplit=1)) for line in lines if line.strip()]


def of_image(name: str) -> list[Instruction]:
    return [instruction for instruction in dockerfile() if instruction.name == name]


def example(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text())


def airflow_tasks(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The commands of the DAG by the task's id, as Airflow gets them."""
    tasks: dict[str, str] = {}

    class Task:
        def __init__(self, task_id: str, bash_command: str) -> None:
            tasks[task_id] = bash_command

        def __rshift__(self, other: Self) -> Self:
            return other

    class Dag:
        def __init__(self, **_: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    names = ("airflow", "airflow.sdk", "airflow.providers", "airflow.providers.standard")
    for name in (*names, "airflow.providers.standard.operators", "airflow.providers.standard.operators.bash"):
        module = ModuleType(name)
        module.__dict__.update(DAG=Dag, BashOperator=Task)
        monkeypatch.setitem(sys.modules, name, module)
    runpy.run_path(str(EXAMPLES / "airflow_dag.py"))
    return tasks


def on_yarn(folder: Path, *arguments: str) -> list[str]:
    """The arguments that the script gives to spark-submit."""
    submit = folder / "spark-submit"
    submit.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    submit.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    script = [str(EXAMPLES / "yarn.sh"), *arguments]
    answer = subprocess.run(script, env={"PATH": path}, cwd=folder, capture_output=True, text=True, check=True)
    given: list[str] = json.loads(answer.stdout)
    return given


def resolved(arguments: list[str], folder: Path) -> str:
    """The job of a command, checked as before Spark starts. folder: where its lake and its page are."""
    capture = REPOSITORY / "tests" / "captures" / "starve.pcap.zst"
    places = {"captures": capture, "lake": folder / "lake", "out": folder / "report.html"}
    run = resolve_run(parse_arguments([
        f"--{flag}={places[flag]}" if (flag := of.partition("=")[0].lstrip("-")) in places else of for of in arguments
    ]))  # fmt: skip
    assert run.lake == str(folder / "lake")
    return run.job


def test_a_databricks_job_runs_the_entry_point_of_the_wheel(tmp_path: Path) -> None:
    bundle = example("databricks.yml")
    (task,) = bundle["resources"]["jobs"]["refetch"]["tasks"]
    wheel, text = task["python_wheel_task"], (EXAMPLES / "databricks.yml").read_text()
    assert resolved(wheel["parameters"], tmp_path) == "pipeline"
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert wheel["package_name"] == project["name"]
    assert wheel["entry_point"] in project["scripts"]
    assert set(re.findall(r"\$\{var\.(\w+)\}", text)) == set(bundle["variables"])
    clusters = {one["job_cluster_key"] for one in bundle["resources"]["jobs"]["refetch"]["job_clusters"]}
    assert task["job_cluster_key"] in clusters


def test_airflow_runs_commands_that_jobs_accept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jobs = []
    for command in airflow_tasks(monkeypatch).values():
        program, *arguments = shlex.split(re.sub(r"\{\{.*?\}\}", "2026-01-31", command))
        assert program == f"{IN_IMAGE}spark-submit.sh"
        jobs.append(resolved(arguments, tmp_path))
    assert jobs == ["pipeline", "prune"]


def test_kubernetes_runs_files_that_the_image_has(tmp_path: Path) -> None:
    application = example("kubernetes.yaml")["spec"]
    assert resolved(application["arguments"], tmp_path) == "pipeline"
    main = application["mainApplicationFile"].removeprefix("local://")
    assert (REPOSITORY / main.removeprefix(IN_IMAGE)).is_file()
    jars = [variable for one in of_image("ENV") for variable in one.words if variable.startswith("REFETCH_JARS=")]
    folder = jars[0].partition("=")[2]
    assert application["deps"]["jars"] == [f"local://{folder}/{name}" for name in DELTA_JARS]
    assert application["sparkVersion"] == version("pyspark")
    assert application["image"] == f"refetch:{VERSION}"
    mounts = [mount["name"] for pod in ("driver", "executor") for mount in application[pod]["volumeMounts"]]
    assert mounts == [application["volumes"][0]["name"]] * 2
    users = {application[pod]["podSecurityContext"]["fsGroup"] for pod in ("driver", "executor")}
    assert [f"useradd --uid {user} " in run.text for user in users for run in of_image("RUN")].count(True) == 1


def test_yarn_gets_files_that_exist_and_flags_that_the_job_accepts(tmp_path: Path) -> None:
    given = on_yarn(tmp_path, "hdfs:///captures", "hdfs:///lake", "--set=consumer.fetch.max.bytes=1MiB")
    main = given.index("jobs/__main__.py")
    assert (REPOSITORY / given[main]).is_file()
    assert resolved(given[main + 1 :], tmp_path) == "pipeline"
    assert (REPOSITORY / given[given.index("--properties-file") + 1]).is_file()
    assert given[main + 2 : main + 4] == ["--captures=hdfs:///captures", "--lake=hdfs:///lake"]


def test_the_image_is_made_of_files_that_exist_and_are_sent_to_the_builder() -> None:
    sent = [line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [one.words[:-1] for one in of_image("COPY") if not one.text.startswith("--from")]
    sources = [source for words in copied for source in words]
    assert [source for source in sources if not [*REPOSITORY.glob(source)]] == []
    assert [source for source in sources if not any(f"{source}/".startswith(f"{of}/") for of in sent)] == []
    assert {"requirements.txt", "jobs", "udfs", "schemas", "conf"} <= {*sources}


def test_the_image_installs_the_lock_file_and_runs_the_quickstart(tmp_path: Path) -> None:
    commands = [one.text for one in of_image("RUN")]
    for command in commands:
        subprocess.run(["bash", "-n", "-c", command], check=True)
    installed = re.findall(r"pip install (.*?-r \S+)", " && ".join(commands))
    assert [one.rpartition(" ")[2] for one in installed] == ["requirements-build.txt", "requirements.txt"]
    assert all("--require-hashes" in one for one in installed)
    (tried,) = [found[1] for one in commands if (found := re.search(r"\./spark-submit\.sh (.+?) &&", one))]
    assert resolved(shlex.split(tried), tmp_path) == "pipeline"
    (default,) = [json.loads(one.text) for one in of_image("CMD")]
    assert resolved([of.replace(IN_IMAGE, f"{REPOSITORY}/") for of in default], tmp_path) == "pipeline"
    assert of_image("FROM")[0].text == f"apache/spark:{version('pyspark')} AS spark"
