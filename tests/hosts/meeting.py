"""Where the ranks of an emulated network meet: a coordinator that lasts until its input ends.

Its first line of input has the coordinator's arguments; its first of output is the port.
"""

import json
import sys

from hearth.native import _core

coordinator = _core.Coordinator(**json.loads(sys.stdin.readline()))
print(coordinator.port(), flush=True)
sys.stdin.read()
coordinator.close()
