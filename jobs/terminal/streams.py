"""Standard output and error of a command that nobody reads any more, or that were closed when the command began.

Standard library only. `pipeline | head -1` closes the pipe while the run goes on, because its tables are still wanted.
"""

from __future__ import annotations

import io
import os
import sys

_STANDARD = (0, 1, 2)


class _Pipe(io.FileIO):
    """A stream whose reader may leave. What is written after that is dropped."""

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]  # bytes of any kind
        except BrokenPipeError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())
            return super().write(data)  # type: ignore[arg-type]


def survive_closed_streams() -> None:
    """Make stdout and stderr survive: nothing fails after their reader has left, and if they were closed from the
    start, no other file gets their numbers.
    """
    for number in _STANDARD:
        _open_if_closed(number)
    sys.stdout = _reopen_stream(sys.stdout, 1)
    sys.stderr = _reopen_stream(sys.stderr, 2)


def _open_if_closed(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
        os.set_inheritable(number, True)


def _reopen_stream(stream: object, number: int) -> io.TextIOWrapper:
    if isinstance(stream, io.TextIOWrapper):
        stream.flush()
    encoding, errors = getattr(stream, "encoding", "utf-8"), getattr(stream, "errors", "backslashreplace")
    content = io.BufferedWriter(_Pipe(number, "wb", closefd=False))
    is_error = number == _STANDARD[-1]
    return io.TextIOWrapper(
        content, encoding, errors, line_buffering=is_error or os.isatty(number), write_through=is_error
    )
