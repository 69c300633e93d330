"""The trainer's part in bench/feed.py: a process that turns the rows of rings into minibatches.

A Python worker starts it once, before the first row, as a training run starts its trainer
(bench/spark_overhead.py measures that start). It receives the rings one after the other.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time


class Consumer:
    """The feeder's handle of the process.

    The process ends with this object, or with the feeder's process.
    """

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            subprocess.Popen(command, pass_fds=[theirs.fileno()])
        self._answers = self._socket.makefile("r")

    def take(self, fds: tuple[int, int], epochs: int, batch_size: int) -> None:
        """Passes the reading end of a ring to the process."""
        socket.send_fds(self._socket, [f"{epochs} {batch_size}\n".encode()], fds)

    def answer(self) -> list[tuple[int, float, float]]:
        """Waits for the ring's end; returns (rows, seconds, processor seconds) for each epoch."""
        line = self._answers.readline()
        if not line:
            raise ConnectionError("the consumer process ended; see its own error")
        return json.loads(line)


_kept: Consumer | None = None


def consumer() -> Consumer:
    """This process's consumer, started on the first call."""
    global _kept
    _kept = _kept or Consumer()
    return _kept


def drain(fds: list[int], epochs: int, batch_size: int) -> list[tuple[int, float, float]]:
    """Reads the minibatches of the ring's rows for `epochs` epochs."""
    from hearth.native._core import SpoolSource

    source = SpoolSource(*fds)
    answer = []
    for _ in range(epochs):
        start, used = time.perf_counter(), time.process_time()
        rows, _ = source.drain_epoch(batch_size, "data")
        seconds = (time.perf_counter() - start, time.process_time() - used)
        answer.append((rows, *seconds))
    # The hash that the first snapshot needs. Unless it is computed along the way, this is its cost.
    used = time.process_time()
    source.digest()
    rows, wall, cpu = answer.pop()
    return [*answer, (rows, wall, cpu + time.process_time() - used)]


def main() -> None:
    """Serves the feeder at the other end of the socket whose descriptor is the first argument."""
    with socket.socket(fileno=int(sys.argv[1])) as feeder:
        while True:
            request, fds, _, _ = socket.recv_fds(feeder, 100, 2)
            if not request:
                return
            epochs, batch_size = map(int, request.split())
            feeder.sendall(json.dumps(drain(fds, epochs, batch_size)).encode() + b"\n")


if __name__ == "__main__":
    main()
