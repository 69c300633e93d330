"""Authenticated connections to a node's listener, from Spark tasks and the node's readers."""

from __future__ import annotations

import socket
from typing import Any

from hearth.cluster.channel import Channel, Message, feed_terms
from hearth.cluster.errors import NodeError

_CONNECT_TIMEOUT_S = 10.0


def name_of(node: Message) -> str:
    """A node's name in messages: "worker:0 on host h"."""
    return f"{node['job_name']}:{node['task_index']} on host {node['host_name']}"


def is_remote(node: Message) -> bool:
    """Whether the node is on another host than this process."""
    return node["host_name"] != socket.gethostname()


def connect(node: Message, token: str, greeting: Message) -> Channel:
    """Connects to the node's listener, authenticated by the cluster's token; sends `greeting`.

    Uses a unix socket if the node is on this host, else TCP.

    Raises:
        NodeError: the node does not listen, or the handshake failed.
    """
    if is_remote(node):
        sock = socket.socket(socket.AF_INET6 if ":" in node["host"] else socket.AF_INET)
        address: Any = (node["host"], node["feed_port"])
    else:
        sock = socket.socket(socket.AF_UNIX)
        address = "\0" + node["addr"]
    opened: Any = sock
    try:
        sock.settimeout(_CONNECT_TIMEOUT_S)
        sock.connect(address)
        channel = opened = Channel(sock, "its listener")
        channel.offer_handshake(feed_terms(token, node["executor_id"]))
        channel.send(greeting)
        return channel
    except ConnectionRefusedError as error:  # nothing listens on the address
        opened.close()
        raise NodeError(
            f"{name_of(node)} has ended and takes no more rows: its executor was lost, its "
            "cluster was shut down, or release_devices() was called. Spark computes the rows of "
            "inference() and predict() on demand: collect or write them before the node ends, "
            "or call predict() again"
        ) from error
    except OSError as error:
        opened.close()
        raise NodeError(f"the feed cannot connect to {name_of(node)}: {error}") from error
