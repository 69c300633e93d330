"""Runs work in a background thread on each rank."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any

from hearth.checkpoints.background import in_background
from hearth.torch.peers import Peers

if TYPE_CHECKING:
    from torch import Tensor

# Time limit for the last rank to join an exchange, because writing may take long.
_TIMEOUT_S = 3600.0
_CONNECT_TIMEOUT_S = 120.0


class ThreadPeers(Peers):
    """The ranks of the program's process group over dedicated connections, so that a thread's
    exchanges do not mix with the program's operations, and continue after destroy_process_group().
    For use by one thread."""

    def __init__(self, ranks: Any):
        """`ranks`: a hearth.ranks Ranks."""
        self.rank, self.world = ranks.rank, ranks.world
        self._ranks = ranks

    def _gather(self, data: bytes, size: int) -> list[Tensor]:
        import torch

        from hearth.torch.exchange import request

        own = torch.frombuffer(bytearray(data.ljust(size, b"\0")), dtype=torch.uint8)
        every = torch.empty(self.world * size, dtype=torch.uint8)
        self._ranks.submit(request("all_gather", every, own))(_TIMEOUT_S)
        return list(every.split(size))


def on_all_ranks(peers: Peers, act: Callable[[Peers], None]) -> Future[None]:
    """Runs `act` in a thread on each rank, with peers for that thread. This is a collective call,
    which returns before the threads are connected. If they cannot connect, each rank's future
    fails."""
    if peers.world == 1:
        return in_background(lambda: act(peers))
    shown: Future[str] = Future()
    running: Future[None] | None = None
    if peers.rank == 0:
        running = in_background(lambda: _connected(peers, shown, act))
        either: list[Future[Any]] = [shown, running]
        wait(either, return_when=FIRST_COMPLETED)
    address = peers.share(shown.result() if shown.done() else "")
    if running is None:
        shown.set_result(address)
        running = in_background(lambda: _connected(peers, shown, act))
    return running


def _connected(peers: Peers, shown: Future[str], act: Callable[[Peers], None]) -> None:
    """`shown`: the address that rank 0 publishes."""
    from hearth.ranks.group import Ranks
    from hearth.torch.rendezvous import at_master

    rendezvous = at_master(shown.set_result, shown.result, lambda: None)
    ranks = Ranks(rendezvous, peers.rank, peers.world, _TIMEOUT_S, _CONNECT_TIMEOUT_S)
    try:
        act(ThreadPeers(ranks))
    finally:
        ranks.close()
