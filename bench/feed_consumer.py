"""The trainer's part in bench/feed.py: a process that turns the rows of rings into minibatches.

It starts once per Python worker and is kept, as a trainer starts once per training run, before the
first row (bench/spark_overhead.py measures that start). Rings come to it one after the other.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time


class Consumer:
    """The process as its feeder sees it; it ends when this object or its process does."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            subprocess.Popen(command, pass_fds=[theirs.fileno()])
        self._answers = self._socket.makefile("r")

    def take(self, fds: tuple[int, int], epochs: int, batch_size: int) -> None:
        """Hands over the reading side of a ring."""
        socket.send_fds(self._socket, [f"{epochs} {batch_size}\n".encode()], fds)

    def answer(self) -> list[tuple[int, float, float]]:
        """Waits for the ring's end; (rows, seconds, processor seconds of it) of each epoch."""
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
    """Takes the minibatches of the ring's rows, `epochs` times."""
    from hearth.native._core import SpoolSource

    source = SpoolSource(*fds)
    answer = []
    for _ in range(epochs):
        start, used = time.perf_counter(), time.process_time()
        rows, _ = source.drain_epoch(batch_size, "data")
        seconds = (time.perf_counter() - start, time.process_time() - used)
        answer.append((rows, *seconds))
    # The hash that the first snapshot needs; where it is not made on the way, this is its price.
    used = time.process_time()
    source.digest()
    rows, wall, cpu = answer.pop()
    return [*answer, (rows, wall, cpu + time.process_time() - used)]


def main() -> None:
    """Serves the feeder at the other end of the socket that is the first argument."""
    with socket.socket(fileno=int(sys.argv[1])) as feeder:
        while True:
            request, fds, _, _ = socket.recv_fds(feeder, 100, 2)
            if not request:
                return
            epochs, batch_size = map(int, request.split())
            feeder.sendall(json.dumps(drain(fds, epochs, batch_size)).encode() + b"\n")


if __name__ == "__main__":
    main()
