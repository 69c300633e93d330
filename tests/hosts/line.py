"""A long line between two network devices: packets from the first device reach the second one late,
and some are lost; packets from the second one pass at once.

`line.py SECONDS LOSS FIRST=SECOND...`. It does what the kernel's netem does, which some kernels
lack.
"""

from __future__ import annotations

import random
import selectors
import socket
import sys
import time
from collections import deque

# From linux/if_packet.h and asm/socket.h. The options: frames carry a header that tells which
# checksum is missing; frames that this program sent are not received; buffers may exceed the
# system's limit.
_SOL_PACKET = 263
_PACKET_VNET_HDR = 15
_PACKET_IGNORE_OUTGOING = 23
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_ALL_PROTOCOLS = 3
_FRAME = 1 << 17
_BUFFER = 1 << 25


def _open(device: str) -> socket.socket:
    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    line.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    line.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    line.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
    line.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
    line.bind((device, _ALL_PROTOCOLS))
    line.setblocking(False)
    return line


class Way:
    """One direction: sends frames of `source` to `target` after `delay_s`, and drops the fraction
    `loss`.
    """

    def __init__(
        self, source: socket.socket, target: socket.socket, delay_s: float, loss: float
    ) -> None:
        self.source = source
        self._target = target
        self._delay_s = delay_s
        self._loss = loss
        self._waiting: deque[tuple[float, bytes]] = deque()

    def take(self) -> None:
        """Receives all frames that are available."""
        while True:
            try:
                frame = self.source.recv(_FRAME)
            except OSError:  # no more packets, or the device is down, which is reported once
                return
            if self._loss == 0 or random.random() >= self._loss:
                self._waiting.append((time.monotonic() + self._delay_s, frame))

    def give(self) -> float | None:
        """Sends the frames that are due; returns the seconds until the next one, or None if none
        waits.
        """
        while self._waiting:
            left = self._waiting[0][0] - time.monotonic()
            if left > 0:
                return left
            try:
                self._target.send(self._waiting.popleft()[1])
            except OSError:
                continue  # a device that is down or busy drops the frame, like hardware
        return None


def main() -> None:
    """Runs until it is killed."""
    delay_s, loss = float(sys.argv[1]), float(sys.argv[2])
    ways = []
    with selectors.DefaultSelector() as selector:
        for pair in sys.argv[3:]:
            first, second = map(_open, pair.split("="))
            ways += [Way(first, second, delay_s, loss), Way(second, first, 0, 0)]
        for way in ways:
            selector.register(way.source, selectors.EVENT_READ, way)
        print("ready", flush=True)
        while True:
            due = [left for left in map(Way.give, ways) if left is not None]
            for key, _ in selector.select(min(due, default=None)):
                key.data.take()


if __name__ == "__main__":
    main()
