"""How the ranks of a cluster find each other: PyTorch's environment, and the store where they meet.

The store listens on a port that the node has kept since before the others heard of it, so no other
process can take that port first. It belongs to rank 0's process and lives as long.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hearth.torch.context import TorchContext

# A rank that loses a peer waits so long for the news of what ended that one.
CAUSE_WAIT_S = 20.0
_LOST_PEER = ("gloo", "nccl", "connection closed by peer", "connection reset", "broken pipe")
_BACKLOG = 1024
_store: Any = None


def prepare(ctx: TorchContext) -> None:
    """Sets the environment of this process, makes the backend "hearth" known and, on rank 0, opens
    the store."""
    from hearth.torch import backend, stores

    backend.register(ctx.collective_key)
    port, ctx.port = ctx.port, None
    if ctx.rank is not None:
        os.environ.update(environment(ctx))
        # The store outlives destroy_process_group(): what the last group left would be found.
        stores.number_the_groups()
        if ctx.rank == 0 and port is not None:
            _open_store(ctx, port)
            return
    if port is not None:
        port.close()


def environment(ctx: TorchContext) -> dict[str, str]:
    """What torchrun would set, and the network interface by which the hosts reach each other."""
    host, port = ctx.master
    values = {
        "RANK": str(ctx.rank),
        "WORLD_SIZE": str(ctx.world_size),
        "LOCAL_RANK": str(ctx.local_rank),
        "LOCAL_WORLD_SIZE": str(ctx.local_world_size),
        "GROUP_RANK": str(ctx.group_rank),
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
    }
    own = ctx.cluster_spec[ctx.role][ctx.index].rpartition(":")[0]
    name = _interface_of(own)
    # Left to themselves, they take the address of the host's name, which may be 127.0.1.1.
    for key in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        if name and key not in os.environ:
            values[key] = name
    return values


def _interface_of(address: str) -> str | None:
    """The name of the interface that has an IPv4 address; None where that is not known."""
    import fcntl
    import struct

    if address.startswith("127."):
        return "lo"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            asked = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, asked)
            except OSError:  # it has no such address
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


_SIOCGIFADDR = 0x8915


def _open_store(ctx: TorchContext, port: socket.socket) -> None:
    from torch.distributed import TCPStore

    global _store
    port.listen(_BACKLOG)
    host, number = ctx.master
    # init_process_group() opens one for this port, too, and gets this one (multi_tenant).
    _store = TCPStore(
        host,
        number,
        None,
        is_master=True,
        wait_for_workers=False,
        multi_tenant=True,
        master_listen_fd=port.detach(),
    )


def may_follow(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, may be the echo of a rank that went away."""
    from torch.distributed import DistError

    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        text = str(error).lower()
        if isinstance(error, DistError | ConnectionError) or any(w in text for w in _LOST_PEER):
            return True
        error = error.__cause__ or error.__context__
    return False
