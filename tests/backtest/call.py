"""Call a function of the lab's traffic.py: call.py LAB FUNCTION ARGUMENTS, the arguments as JSON.

It runs under the Python that has the lab's clients, which refetch does not need, and so imports nothing of refetch.
The last argument has the named ones.
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
