"""Finds this process's rank and the rendezvous with the other ranks: in a node of a cluster, as a
process of hearth.horovod.run(), or from torchrun's environment."""

from __future__ import annotations

import os
import socket
import threading
from functools import partial
from typing import Any

from hearth.cluster.channel import Channel
from hearth.cluster.node.key_value_store import KeyValueStore
from hearth.ranks.group import Rendezvous
from hearth.ranks.place import Place, alone, by_store, here

# The descriptor of a socket to hearth.horovod.run(), if it started this process.
LAUNCHER = "HEARTH_HOROVOD_LAUNCHER"

_launched: Launched | None = None


def find() -> Place:
    """This process's Place: its rank and its rendezvous. It is the only rank if nothing indicates
    other ranks."""
    if (launcher := launched()) is not None:
        return launcher.place
    if (place := here()) is not None:
        return place
    if all(key in os.environ for key in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")):
        return _of_torchrun()
    return alone()


def identity() -> str:
    """A string that is equal for ranks which share a host and see the same GPUs.

    A node of a cluster sees only its own GPUs. Nodes with different GPUs count as different hosts,
    so that a program which selects a GPU by local rank selects the first one.
    """
    host = socket.gethostname()
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES") if here() is not None else ""
    return f"{host}/{gpus}" if gpus else host


def launched() -> Launched | None:
    """The connection to the launcher, if hearth.horovod.run() started this process."""
    global _launched
    if _launched is None and LAUNCHER in os.environ:
        _launched = Launched(int(os.environ.pop(LAUNCHER)))
    return _launched


class Launched:
    """The connection of a started process to the launcher.

    Attributes:
        place: this process's place. program: the pickled function to run; empty: none.
    """

    def __init__(self, descriptor: int):
        self._channel = Channel(socket.socket(fileno=descriptor), "the launcher")
        self._store = KeyValueStore(self.send)
        given, _ = self._channel.receive()
        self.program = self._channel.receive_data(given["bytes"])
        rendezvous_of = partial(by_store, self._store, key=given["key"])
        self.place = Place(given["rank"], given["world"], rendezvous_of)
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, message: dict[str, Any], data: bytes = b"") -> None:
        """Sends a message, followed by bytes. Raises OSError if the launcher has ended."""
        self._channel.send(message, (), data)

    def _listen(self) -> None:
        try:
            while True:
                self._store.note(self._channel.receive()[0])
        except (OSError, EOFError):
            self._store.fail("the process that started the ranks has ended")


def _of_torchrun() -> Place:
    from datetime import timedelta

    from torch.distributed import PrefixStore, TCPStore

    from hearth.torch import stores

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    serves = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    limit = timedelta(seconds=600)
    whole = TCPStore(host, port, world, is_master=serves, timeout=limit, wait_for_workers=False)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = PrefixStore(f"hearth.horovod/{attempt}", whole)

    def rendezvous_of(name: str) -> Rendezvous:
        return Rendezvous(
            publish=lambda text: store.set(name, text),
            read=lambda: stores.read(store, name, limit.total_seconds()),
            withdraw=lambda: None,
        )

    return Place(rank, world, rendezvous_of)
