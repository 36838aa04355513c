"""Where captures are stored: paths on this machine, and URIs that pyarrow's file systems open (file, s3, gs, ...)."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote

from pyarrow import ArrowInvalid
from pyarrow.fs import FileSystem

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# Hadoop's names for Arrow's s3.
_HADOOP_S3 = re.compile(r"s3[an]:", re.IGNORECASE)
_IN_URI = "/:@%+~!$&'(),;="
_QUERY = re.compile(r"\?[^?/]+=[^?]*$")
_PASSWORD = re.compile(r"(?<=//)([^/:@]*):[^/]*@")
_LOCAL = re.compile(r"file:(//)?/", re.IGNORECASE)
_SECRET = re.compile(r"secret|token|password|account_key|access_key|sig=", re.IGNORECASE)

NO_SECRETS = (
    "a URI with a password or key in it, which every table and message would show; put the credentials where the "
    "cloud's own tools look for them (environment, profile, role)"
)
TO_CHECK = (
    "Check the name, the credentials (environment, profile, role), the network and, for a store that is not the "
    "cloud's own, its endpoint (AWS_ENDPOINT_URL)"
)
"""What to do if a URI cannot be reached."""


def is_uri(path: str) -> bool:
    """Whether a path is a URI (s3://..., hdfs://...). URIs must not be changed like local paths."""
    return _URI.match(path) is not None


def without_file_scheme(path: str) -> str:
    """The local path of a `file:` URI; anything else unchanged.

    >>> without_file_scheme("file:///a%20lake"), without_file_scheme("file:/lake"), without_file_scheme("s3a://b/lake")
    ('/a lake', '/lake', 's3a://b/lake')
    """
    match = _LOCAL.match(path)
    return unquote(path[match.end() - 1 :]) if match else path


def has_secret(uri: str) -> bool:
    """Whether a URI contains credentials, which would be shown with the URI."""
    query = uri_options(uri)
    return _PASSWORD.search(uri.removesuffix(query)) is not None or _SECRET.search(query) is not None


def without_secret(uri: str) -> str:
    """A URI as it may be shown: without a password, and without its options if one of them is a secret."""
    shown = _PASSWORD.sub(r"\1:***@", uri)
    query = uri_options(shown)
    return f"{shown.removesuffix(query)}?***" if _SECRET.search(query) else shown


def uri_options(uri: str) -> str:
    """The options at the end of a URI, `?region=...&endpoint_override=...`. A `?` without `=` is part of a pattern."""
    match = _QUERY.search(uri)
    return match[0] if match else ""


def quote_path(path: str) -> str:
    """A path, quoted for a URI; what is already quoted is not quoted again."""
    return quote(path, safe=_IN_URI)


@lru_cache(maxsize=4096)
def file_system_and_path(uri: str) -> tuple[FileSystem, str]:
    """(the file system of a URI, the path on it). Raises OSError if there is no such file system, or if it cannot be
    reached.

    Credentials come from where each cloud's own tools look for them (environment, profile, role).
    """
    query = uri_options(uri)
    path = _HADOOP_S3.sub("s3:", uri.removesuffix(query), count=1)
    try:
        return FileSystem.from_uri(quote_path(path) + query)
    except ArrowInvalid as error:
        raise OSError(0, f"{error}; expected file://, s3://, gs://, abfss:// or hdfs://") from error
