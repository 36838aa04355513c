"""SeededAdmin.java for librdkafka, which uses older request versions: seeded_admin.py BOOTSTRAP SCRIPT."""

from __future__ import annotations

import sys
import time
from concurrent.futures import wait
from pathlib import Path

if __name__ == "__main__":
    from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

    bootstrap, script = sys.argv[1], Path(sys.argv[2])
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": script.name, "socket.timeout.ms": 300_000})
    admin.list_topics(timeout=30)
    start, answers = time.monotonic(), []
    for line in script.read_text().splitlines():
        at, kind, *words = line.split()
        topics = {name: int(count) for name, count in (word.split("=") for word in words)}
        time.sleep(max(0.0, start + int(at) / 1000 - time.monotonic()))
        if kind == "create":
            new = [NewTopic(name, count, 1) for name, count in topics.items()]
            answers += admin.create_topics(new, request_timeout=300).values()
        elif kind == "grow":
            grown = [NewPartitions(name, count) for name, count in topics.items()]
            answers += admin.create_partitions(grown, request_timeout=300).values()
        else:
            answers += admin.delete_topics(list(topics), request_timeout=300).values()
    wait(answers)
