"""Calls a function of the lab's traffic.py: call.py LAB FUNCTION ARGUMENTS, with the arguments as JSON.

It runs under the Python that has the lab's clients. refetch does not need these, so this imports nothing of refetch.
The last argument has the keyword arguments.
"""

from __future__ import annotations

import json
import sys

if __name__ == "__main__":
    lab, function, arguments = sys.argv[1:]
    sys.path.insert(0, lab)
    import traffic

    *given, last = json.loads(arguments)
    getattr(traffic, function)(*given, **last)
