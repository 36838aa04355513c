"""The same changes of topics, requested by clients under several controller mutation quotas (KIP-599)."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.backtest.lab import BOOTSTRAP, Cluster, Lab

JAVA, LIBRDKAFKA = ("java-1", "java-2"), "librdkafka"
REQUESTS: Mapping[str, int] = {"java-1": 30, "java-2": 30, LIBRDKAFKA: 12}
GAP_MS = 500
RATE = "controller_mutation_rate"


@dataclass(frozen=True)
class Quota:
    """The quota in force. of: clients or users, each of which has this quota; retry: whether clients ask again."""

    rate: int | None = None
    of: str = "clients"
    retry: bool = False


QUOTAS: Mapping[str, Quota] = {
    "none": Quota(),
    "2": Quota(2),
    "5": Quota(5),
    "5-retried": Quota(5, retry=True),
    "5-user": Quota(5, "users"),
}


def capture(work: Path, name: str) -> Path:
    """The capture of all runs under a quota."""
    return work / f"quota-{name}.pcap"


def captures(work: Path, _: int) -> list[Path]:
    """The captures."""
    return [capture(work, name) for name in QUOTAS]


def record(lab: Lab, repeats: int) -> None:
    """Record a capture for each quota that has none, on new brokers. Its runs follow one after the other."""
    for name, quota in QUOTAS.items():
        file = capture(lab.work, name)
        if file.exists():
            continue
        with lab.cluster("quota", {"auto.create.topics.enable": "false"}) as cluster:
            if quota.rate:
                cluster.java(
                    "kafka.admin.ConfigCommand", "--bootstrap-server", BOOTSTRAP, "--alter", "--add-config",
                    f"{RATE}={quota.rate}", "--entity-type", quota.of, "--entity-default",
                )  # fmt: skip
            with cluster.captured(file):
                for again in range(repeats):
                    ask(cluster, quota, {kind: client(name, kind, again) for kind in REQUESTS})


def client(name: str, kind: str, again: int) -> str:
    """The client.id of a run."""
    return f"quota-{name}-{kind}-{again}"


def ask(cluster: Cluster, quota: Quota, clients: Mapping[str, str]) -> None:
    """Have all clients ask for their own changes, at the same time."""
    scripts = {kind: cluster.state / name for kind, name in clients.items()}
    for kind, file in scripts.items():
        file.write_text("\n".join(script(kind, clients[kind])))
    source = Path(__file__).with_name("SeededAdmin.java")
    older: list[str | Path] = [
        cluster.lab.python,
        Path(__file__).with_name("seeded_admin.py"),
        BOOTSTRAP,
        scripts[LIBRDKAFKA],
    ]
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(subprocess.run, older, check=True)
        cluster.java(source, BOOTSTRAP, str(quota.retry).lower(), *(scripts[kind] for kind in JAVA))
        done.result()


def script(kind: str, prefix: str) -> Iterator[str]:
    """What a client asks for and when (ms), the same in each run. SeededAdmin.java reads it."""
    rng = random.Random(kind)  # noqa: S311 - the same in every run
    there: dict[str, int] = {}
    made, at = 0, 0.0
    for _ in range(REQUESTS[kind]):
        at += rng.expovariate(1 / GAP_MS)
        what = rng.choices(("create", "grow", "delete"), (5, 2, 2))[0] if there else "create"
        if what == "create":
            topics = {f"{prefix}-{made + i}": rng.randint(1, 8) for i in range(rng.randint(1, 3))}
            made += len(topics)
        elif what == "grow":
            topics = {name: there[name] + rng.randint(1, 8) for name in rng.sample(sorted(there), 1)}
        else:
            topics = {name: 0 for name in rng.sample(sorted(there), min(len(there), rng.randint(1, 2)))}
        there = {name: count for name, count in (there | topics).items() if count}
        yield f"{at:.0f} {what} " + " ".join(f"{name}={count}" for name, count in topics.items())
