"""What is printed if Java ends while it talks to pyspark."""

from __future__ import annotations

import socket
from pathlib import Path
from socketserver import StreamRequestHandler, UnixStreamServer
from threading import Thread

import pytest
from pyspark.accumulators import UpdateRequestHandler

from jobs.session.gateway import keep_quiet_at_its_end


class Broken(StreamRequestHandler):
    """Fails for a reason that has nothing to do with Java's end."""

    def handle(self) -> None:
        raise ValueError("wrong token")


@pytest.mark.parametrize(("handler", "printed"), [(UpdateRequestHandler, ""), (Broken, "ValueError: wrong token\n")])
def test_only_a_failure_that_is_not_the_end_of_java_is_printed(
    handler: type[StreamRequestHandler], printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with UnixStreamServer(str(tmp_path / "s"), handler) as updates:
        updates.auth_token = updates.server_shutdown = None  # type: ignore[attr-defined]  # as pyspark's have them
        keep_quiet_at_its_end(updates)
        answering = Thread(target=updates.handle_request)
        answering.start()
        with socket.socket(socket.AF_UNIX) as java:
            java.connect(str(tmp_path / "s"))
        answering.join()
    words = capsys.readouterr().err
    assert printed in words if printed else not words
