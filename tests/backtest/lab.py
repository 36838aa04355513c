"""A live cluster in the lab: its brokers can be started, started again with other settings, and captured."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

PORTS = "tcp portrange 29092-29094"
BROKERS = (1, 2, 3)
BOOTSTRAP = "127.0.0.1:29092,127.0.0.1:29093"
Settings = Mapping[str, object]


@dataclass(frozen=True)
class Lab:
    """Where the lab is: its scripts, Kafka's jars, the Python with its clients, and the folder for captures."""

    scripts: Path
    jars: Path
    python: Path
    work: Path

    def missing(self) -> list[str]:
        """What a run needs and is missing, one sentence for each."""
        needed = {
            self.scripts / "cluster.sh": "the lab's scripts: --lab=FOLDER names them",
            self.jars / "kafka-clients-4.3.1.jar": "Kafka's jars: `cluster.sh jars FOLDER` fetches them, --jars=FOLDER",
        }
        found = [f"{path} is not there, {what}." for path, what in needed.items() if not path.exists()]
        found += [f"{tool} is not on PATH." for tool in ("java", "tcpdump", "kcat") if not shutil.which(tool)]
        if os.geteuid():
            found.append("tcpdump records the loopback as root only.")
        clients = [str(self.python), "-c", "import confluent_kafka, kafka, aiokafka"]
        if not shutil.which(clients[0]) or subprocess.run(clients, capture_output=True).returncode:
            found.append(f"{self.python} lacks the lab's clients (its README has them): --python=FILE names one.")
        return found

    @contextmanager
    def cluster(self, name: str, settings: Settings, log_config: Path | None = None) -> Iterator[Cluster]:
        """Three new brokers. They are removed afterwards. log_config: a file for log4j2 with what they log, too."""
        state, script = self.work / f"{name}.state", str(self.scripts / "cluster.sh")
        shutil.rmtree(state, ignore_errors=True)
        try:
            configs = f"{self.scripts}/log4j2.yaml,{log_config}"
            options = {"LAB_JAVA_OPTS": f"-Dlog4j2.configurationFile={configs}"} if log_config else {}
            up: list[str | Path] = [script, "up", self.jars, state, *_lines(settings)]
            subprocess.run(up, check=True, env={**os.environ, **options})
            yield Cluster(self, state)
        finally:
            subprocess.run([script, "down", state], check=True)
            shutil.rmtree(state)


@dataclass(frozen=True)
class Cluster:
    """Three running brokers. state: their folder."""

    lab: Lab
    state: Path

    def restart(self, settings: Settings, by_broker: Mapping[int, Settings] | None = None) -> None:
        """Start all brokers again with their data, and with these settings in addition to their own."""
        subprocess.run([self.lab.scripts / "cluster.sh", "down", self.state], check=True)
        pids = [self._start(n, {**settings, **(by_broker or {}).get(n, {})}) for n in BROKERS]
        (self.state / "pids").write_text("".join(f"{pid}\n" for pid in pids))
        for _ in range(120):
            if all(self._is_up(n) for n in BROKERS):
                return
            time.sleep(1)
        raise TimeoutError(f"brokers did not start again; {self.state}/broker-*/out.log have the reason")

    def stop(self, broker: int) -> None:
        """Stop one broker and wait until it is gone."""
        pid = self.pids()[broker]
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), 60, f"broker {broker} has ended")

    def start(self, broker: int, settings: Settings) -> None:
        """Start a stopped broker, with these settings in addition to its own. It may not be up yet afterwards."""
        pids = {**self.pids(), broker: self._start(broker, settings)}
        (self.state / "pids").write_text("".join(f"{pids[n]}\n" for n in BROKERS))

    def pids(self) -> dict[int, int]:
        """The process of each broker."""
        return dict(zip(BROKERS, map(int, (self.state / "pids").read_text().split()), strict=True))

    def _start(self, n: int, settings: Settings) -> int:
        folder = self.state / f"broker-{n}"
        with (folder / "server.properties").open("a") as properties:
            properties.writelines(f"{line}\n" for line in _lines(settings))
        java = ["java", "-Xmx768m", "-cp", f"{self.lab.jars}/*", f"-Dlab.requestlog={self.state}/requests-{n}.log"]
        java += [f"-Dlog4j2.configurationFile={self.lab.scripts}/log4j2.yaml", "kafka.Kafka"]
        with (folder / "out.log").open("ab") as out:
            started = subprocess.Popen([*java, folder / "server.properties"], stdout=out, stderr=out,
                                       stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        # A process that has ended still exists for `down` until somebody waits for it.
        Thread(target=started.wait, daemon=True).start()
        return started.pid

    def _is_up(self, n: int) -> bool:
        asked = ["kcat", "-b", f"127.0.0.1:{29091 + n}", "-L", "-m", "3"]
        told = subprocess.run(asked, capture_output=True, text=True).stdout
        return any(line.startswith(" 3 brokers") for line in told.splitlines())

    @contextmanager
    def captured(self, file: Path) -> Iterator[None]:
        """Record what brokers receive and send during the block. The file is complete when it exists."""
        part = file.with_suffix(".part")
        command: list[str | Path] = ["tcpdump", "-i", "lo", "-U", "-B", "262144", "-s", "0", "-w", part, PORTS]
        tcpdump = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            time.sleep(1)
            yield
            time.sleep(1)
        finally:
            tcpdump.send_signal(signal.SIGINT)
            told = tcpdump.communicate()[1]
        if " 0 packets dropped by kernel" not in f" {told.replace(chr(10), ' ')}":
            sys.stderr.write(f"tcpdump of {file.name}: {told.splitlines()[-1]}\n")
        part.rename(file)

    def drive(self, function: str, *given: object, **named: object) -> str:
        """Run a function of the lab's traffic.py; returns its output. Raises CalledProcessError if it fails."""
        arguments = json.dumps([*given, named])
        command: list[str | Path] = [
            self.lab.python,
            Path(__file__).with_name("call.py"),
            self.lab.scripts,
            function,
            arguments,
        ]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def traffic(self, scenario: str, seed: int, scale: float) -> None:
        """Run a whole scenario of the lab's traffic."""
        script, jars = self.lab.scripts / "traffic.py", self.lab.jars
        command: list[str | Path] = [
            self.lab.python,
            script,
            scenario,
            jars,
            "--seed",
            str(seed),
            "--scale",
            str(scale),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def java(self, *command: object) -> str:
        """Run a class or a source file of Java with Kafka's jars; returns its output."""
        java = ["java", "-Xmx512m", "-cp", f"{self.lab.jars}/*", "-Dlab.requestlog=/dev/null"]
        java += [f"-Dlog4j2.configurationFile={self.lab.scripts}/log4j2.yaml", *map(str, command)]
        done = subprocess.run(java, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {done.stdout[-1500:]}{done.stderr[-1500:]}")
        return done.stdout


def _lines(settings: Settings) -> Sequence[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def wait_until(is_so: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until a condition holds. Raises TimeoutError, which says what was awaited."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"not so after {seconds:.0f} s: {what}")
        time.sleep(0.2)
