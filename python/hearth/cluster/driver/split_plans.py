"""Assigns splits of remote files to the nodes that request files."""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hearth.cluster import roles
from hearth.errors import invalid
from hearth.sources.named_formats import pin_by_names
from hearth.sources.owners import shares
from hearth.spark.token_forwarder import forward_tokens

if TYPE_CHECKING:
    from hearth.sources.file_source import FileSource

logger = logging.getLogger(__name__)

_LARGEST_SHARE = 900_000  # characters; a message of the rendezvous has at most a megabyte


class SplitPlans:
    """All file feeds of one cluster. For each start of the nodes, a thread answers their requests.

    The files of a path are pinned once, so that all nodes read the same files, also after restarts.
    `local` and `remote`: number of bytes that nodes read from their own hosts, and from others.
    """

    def __init__(self, session: Any):
        self._session = session
        self._sources: dict[str, FileSource] = {}
        self.local = self.remote = 0

    def serve(self, running: Any, nodes: Sequence[Mapping[str, Any]]) -> threading.Thread:
        """Answers the requests of a start's nodes in a thread, until the start's watch is
        closed."""
        run = self._run
        thread = threading.Thread(target=run, args=(running, nodes), name="hearth-files")
        thread.daemon = True
        thread.start()
        return thread

    def _run(self, running: Any, nodes: Sequence[Mapping[str, Any]]) -> None:
        fed = roles.fed_nodes(nodes)
        plans: dict[str, list[str]] = {}  # by path; kept, as nodes may ask at different times
        while (entry := running.watch.files.get()) is not None:
            rank, event = entry
            if event["event"] == "files_read":
                self.local += event["local"]
                self.remote += event["remote"]
                continue
            uri = event["uri"]
            answer: dict[str, Any] = {"op": "files", "to": rank, "ask": event["ask"]}
            try:
                place = _position(fed, rank)
                if uri not in plans:
                    plans[uri] = self._plan(uri, [_names(node) for node in fed])
                answer |= {"source": plans[uri][place], "host": sorted(_names(fed[place]))}
            except Exception as error:  # any error must reach the node
                answer["error"] = str(error) or type(error).__name__
            with suppress(RuntimeError):  # the cluster may have ended
                running.broadcast(answer)
        if total := self.local + self.remote:
            share = 100 * self.local / total
            logger.info("nodes read %d bytes of files, %.0f %% on their own hosts", total, share)

    def _plan(self, uri: str, hosts: Sequence[frozenset[str]]) -> list[str]:
        """For each node that takes rows, the source with only that node's splits, serialized as
        text."""
        if uri not in self._sources:
            forward_tokens(self._session)  # file systems require the tokens to list and open files
            self._sources[uri] = pin_by_names(uri, self._session)
        source = self._sources[uri]
        parts = shares(source.splits(), hosts, len(hosts))
        loads = [
            (split.bytes, bool(host & split.hosts))
            for host, share in zip(hosts, parts, strict=True)
            for split in share
        ]
        local = sum(size for size, is_near in loads if is_near)
        total = max(1, sum(size for size, _ in loads))
        logger.info(
            "%s: %s for %d nodes, %.0f %% of it on their own hosts",
            uri, source.extent, len(hosts), 100 * local / total,
        )  # fmt: skip
        return [_packed(source.only(share)) for share in parts]


def _packed(source: FileSource) -> str:
    """The source, serialized as text. Raises ValueError if it is too large for one message."""
    from pyspark import cloudpickle

    text = base64.b64encode(cloudpickle.dumps(source)).decode()
    if len(text) > _LARGEST_SHARE:
        raise invalid(
            f"{source.uri} has {len(source.pinned.files)} files for one node, which exceeds the "
            "limit of a message: use more nodes, or write fewer and larger files"
        )
    return text


def _names(node: Mapping[str, Any]) -> frozenset[str]:
    return frozenset((node["host"], node["host_name"]))


def _position(fed: Sequence[Mapping[str, Any]], rank: int) -> int:
    for place, node in enumerate(fed):
        if node["executor_id"] == rank:
            return place
    raise invalid("a node of this role takes no rows, so no files are assigned to it")
