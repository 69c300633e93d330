"""Connects the ranks of a cluster: sets PyTorch's environment and opens its store on rank 0.

The store listens on a port that the node bound before it announced the port, so no other process
can take the port. The store belongs to rank 0's process and ends with it.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hearth.torch.context import TorchContext

# How long a rank that loses a peer waits for the report of that peer's error.
CAUSE_WAIT_S = 20.0
# Texts that occur in errors of the process group, and in errors of any connection.
_LOST_PEER = ("gloo", "nccl", "connection closed by peer")
_LOST_CONNECTION = ("connection reset", "broken pipe")
_BACKLOG = 1024
_store: Any = None


def prepare(ctx: TorchContext) -> None:
    """Sets the environment of this process, registers the backend "hearth" and, on rank 0, opens
    the store."""
    from hearth.torch import backend, stores

    backend.register(ctx.collective_key)
    port, ctx.port = ctx.port, None
    if ctx.rank is not None:
        os.environ.update(environment(ctx))
        # The store outlives destroy_process_group(), so keys contain the group's number: otherwise
        # a new group would find the keys of an old one.
        stores.number_the_groups()
        if ctx.rank == 0 and port is not None:
            _open_store(ctx, port)
            return
    if port is not None:
        port.close()


def environment(ctx: TorchContext) -> dict[str, str]:
    """torchrun's variables, and the network interface through which the hosts reach each other."""
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
    # By default Gloo and NCCL use the address of the host's name, which may be 127.0.1.1.
    for key in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        if name and key not in os.environ:
            values[key] = name
    return values


def _interface_of(address: str) -> str | None:
    """The name of the interface with an IPv4 address; None if unknown."""
    import fcntl
    import struct

    if address.startswith("127."):
        return "lo"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            asked = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, asked)
            except OSError:  # the interface has no IPv4 address
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
    # init_process_group() also opens a store on this port, and gets this store (multi_tenant).
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
    """Whether an error, or its cause, may be a consequence of a lost rank. Also returns True for
    other lost connections, such as one to an MLflow server."""
    return is_group_error(error) or _any(error, ConnectionError, _LOST_CONNECTION)


def is_group_error(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, came from the process group."""
    from torch.distributed import DistError

    return _any(error, DistError, _LOST_PEER)


def _any(error: BaseException | None, kind: type[Exception], texts: tuple[str, ...]) -> bool:
    """Whether an error, or one of its causes, is of this kind or has one of the texts."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        text = str(error).lower()
        if isinstance(error, kind) or any(part in text for part in texts):
            return True
        error = error.__cause__ or error.__context__
    return False
