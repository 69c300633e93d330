"""The coordinator of ranks in an emulated network; runs until its input ends.

The first input line has its arguments as JSON. It prints its port.
"""

import json
import sys

from hearth.native import _core

coordinator = _core.Coordinator(**json.loads(sys.stdin.readline()))
print(coordinator.port(), flush=True)
sys.stdin.read()
coordinator.close()
