"""The coordinator of the ranks of an emulated network; runs until end of input.

The first line of input has its arguments as JSON; it prints its port.
"""

import json
import sys

from hearth.native import _core

coordinator = _core.Coordinator(**json.loads(sys.stdin.readline()))
print(coordinator.port(), flush=True)
sys.stdin.read()
coordinator.close()
