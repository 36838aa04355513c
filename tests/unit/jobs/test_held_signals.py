"""Signals that come while the set-up hands over to the job."""

from __future__ import annotations

import signal
import subprocess
import sys

HANDS_OVER = """\
import os, signal, sys
from jobs.terminal.signals import end_at_signals, hold_signals
signal.signal(signal.{name}, signal.SIG_DFL)  # under nohup, the tests ignore it
end_at_signals()
hold_signals()
os.kill(os.getpid(), signal.{name})
print(signal.{name} in signal.sigpending(), flush=True)
os.execv(sys.executable, [sys.executable, "-c", '''
import time
from jobs.terminal.signals import end_at_signals
end_at_signals()
time.sleep(60)
'''])
"""


def test_a_held_signal_waits_for_the_next_program_which_it_ends() -> None:
    """No thread of the first program takes it: it would be lost with that program."""
    for by in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        command = [sys.executable, "-c", HANDS_OVER.format(name=by.name)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (run.stdout, run.returncode) == ("True\n", 128 + by), run.stderr
