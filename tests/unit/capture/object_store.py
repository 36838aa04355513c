"""The part of Amazon S3's HTTP that reading needs, served on this machine: the bucket `bucket` has a folder's files."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

BUCKET = "bucket"


class ObjectStore(ThreadingHTTPServer):
    """A store of the files below a folder.

    sent: the bytes of each answer to a read, by key. opened: how often each key was opened. refuses: whether it answers
    all requests as if the credentials were wrong.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.folder = folder
        self.sent: dict[str, list[int]] = {}
        self.opened: Counter[str] = Counter()
        self.refuses = False

    def uri(self, key: str) -> str:
        """The URI of a key, folder or pattern."""
        return f"s3://{BUCKET}/{key}?endpoint_override=127.0.0.1:{self.server_port}&scheme=http&region=us-east-1"


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectStore

    def do_HEAD(self) -> None:
        if self.server.refuses:
            self.answer(403, b"")
        else:
            self.answer_object()

    def do_GET(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if "list-type" in query:
            found = listing(self.server.folder, query.get("prefix", ""), query.get("delimiter", ""))
            self.answer(200, found.encode())
        else:
            self.answer_object()

    def answer_object(self) -> None:
        key = unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").lstrip("/")
        path = self.server.folder / key
        if not path.is_file():
            self.answer(404 if key else 200, b"")
            return
        content, status, headers = path.read_bytes(), 200, {}
        if wanted := self.headers.get("Range"):
            first, last = wanted.removeprefix("bytes=").split("-")
            headers = {"Content-Range": f"bytes {first}-{last}/{len(content)}"}
            content, status = content[int(first) : int(last) + 1], 206
        self.server.opened[key] += self.command == "HEAD"
        if self.command == "GET":
            self.server.sent.setdefault(key, []).append(len(content))
        self.answer(status, content, **headers)

    def answer(self, status: int, content: bytes, **headers: str) -> None:
        about = {"Content-Length": str(len(content)), "Last-Modified": "Sat, 31 Jan 2026 12:00:00 GMT", "ETag": '"1"'}
        self.send_response(status)
        for name, value in (about | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def object_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """A running store of the files below a folder; the environment has credentials for it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    with ObjectStore(folder) as store:
        thread = threading.Thread(target=store.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield store
        finally:
            store.shutdown()
            thread.join()


def listing(folder: Path, prefix: str, delimiter: str) -> str:
    """The response to ListObjectsV2."""
    keys = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    objects, folders = [], set()
    for key in (key for key in keys if key.startswith(prefix)):
        below, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        if found:
            folders.add(f"{prefix}{below}/")
        else:
            objects.append(key)
    contents = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{(folder / key).stat().st_size}</Size>"
        "<LastModified>2026-01-31T12:00:00.000Z</LastModified></Contents>"
        for key in objects
    )
    prefixes = "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(folders))
    count = len(objects) + len(folders)
    return (
        f"<ListBucketResult><Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{count}</KeyCount>"
        f"<IsTruncated>false</IsTruncated>{contents}{prefixes}</ListBucketResult>"
    )
