"""A rank on an emulated host. Its first input line has the rendezvous, its peers and its work.

It prints JSON lines: which transports the ranks use, that the work has begun, and finally {"done":
...} or {"error": class, "message": ..., "ended": time, "cause": the rendezvous' failure}.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from hearth.native import _core

# Numbers of elements for direct exchange, for halving and doubling, and for the ring.
_COUNTS = (1_000, 50_000, 1_000_000)


def say(**what: object) -> None:
    """Prints a line for the test."""
    print(json.dumps(what), flush=True)


def _operations(group: _core.Group, timeout_s: float) -> dict[str, object]:
    """Runs every algorithm over tcp with known results; raises if one is wrong."""
    world, rank = group.world, group.rank
    for count in _COUNTS:
        base = np.arange(count, dtype=np.float32) % 1000
        array = base + rank
        group.all_reduce(array, timeout_s=timeout_s)
        assert np.array_equal(array, base * world + world * (world - 1) / 2), count
    shares = np.zeros(world * 1000, dtype=np.int64)
    shares[rank * 1000 : (rank + 1) * 1000] = rank
    group.run(_core.Request("all_gather", output=shares), timeout_s=timeout_s)
    assert np.array_equal(shares, np.repeat(np.arange(world), 1000))
    blocks = np.zeros(world, dtype=np.int32)
    request = _core.Request("all_to_all", output=blocks, input=np.full(world, rank, dtype=np.int32))
    group.run(request, timeout_s=timeout_s)
    assert np.array_equal(blocks, np.arange(world))
    array = np.full(300_000, rank, dtype=np.float32)
    group.broadcast(array, root=world - 1, timeout_s=timeout_s)
    assert np.all(array == world - 1)
    # Read before the barrier, because other ranks may leave after it.
    counts = {"sent_again": _packets_sent_again(), "over_ipv6": _connections_over_ipv6()}
    begun = time.monotonic()
    group.barrier(timeout_s=timeout_s)
    return {"barrier_s": time.monotonic() - begun, **counts}


def _connections_over_ipv6() -> int:
    """The number of established connections of this host."""
    with open("/proc/net/tcp6", encoding="ascii") as table:
        return sum(line.split()[3] == "01" for line in table)


def _packets_sent_again() -> int:
    """Number of TCP segments that this host has sent again."""
    with open("/proc/net/snmp", encoding="ascii") as counters:
        names, values = (line.split() for line in counters if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def _steps(group: _core.Group, timeout_s: float) -> dict[str, object]:
    """Steps of 1 MB until 20 steps after rank 0 received a line. longest_s: the longest step."""
    array = np.zeros(1 << 18, dtype=np.float32)
    left, longest, steps = None, 0.0, 0
    while True:
        if left is None and group.rank == 0 and select.select([sys.stdin], [], [], 0)[0]:
            left = 20
        array[:] = 1
        array[0] = 1 if left == 0 else 0
        begun = time.monotonic()
        group.all_reduce(array, timeout_s=timeout_s)
        longest = max(longest, time.monotonic() - begun)
        assert np.all(array[1:] == group.world)
        steps += 1
        if steps == 1:
            say(begun=True)
        if array[0] > 0:
            return {"steps": steps, "longest_s": longest}
        left = None if left is None else left - 1


Work = Callable[[_core.Group, float], dict[str, object]]
_WORK: dict[str, Work] = {"operations": _operations, "steps": _steps}


def _cause(member: _core.Member | None) -> str:
    """The first failure of any rank. An operation may have failed before it, when a rank left."""
    with suppress(ConnectionError):
        message = json.loads(member.next_message(2) or "{}") if member else {}
        return message.get("failure", {}).get("message", "")
    return ""


def main(works: dict[str, Work]) -> None:
    """Joins the group, does the requested work, and prints its result."""
    job = json.loads(sys.stdin.readline())
    member = None
    try:
        member = _core.Member(**job["rendezvous"], host_name=socket.gethostname())
        member.reserve("{}")
        connecting = time.monotonic()
        group = _core.Group.connect(member, listen_host=job["address"])
        say(talks=group.description, connect_s=time.monotonic() - connecting)
        result = works[job["work"]](group, job["timeout_s"])
        member.done()
    except Exception as error:
        ended = time.monotonic()  # all hosts of the machine share this clock
        words = {"message": str(error), "cause": _cause(member)}
        say(error=type(error).__name__, ended=ended, **words)
    else:
        say(done=result)


if __name__ == "__main__":
    main(_WORK)
