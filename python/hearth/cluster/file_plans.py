"""The driver's answers to nodes that ask which parts of files, which lie elsewhere, they read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from hearth.cluster import roles
from hearth.rows.far_listing import list_stored
from hearth.rows.far_reader import reads_whole
from hearth.rows.file_parts import StoredFile, packed, shares

logger = logging.getLogger(__name__)

_SCHEMA_FILES = 4  # that are looked at for the schema of TFRecords


class FilePlans:
    """All file feeds of one cluster. One thread for each start of its nodes answers them.

    What a path holds is looked up once and then stays, so that all nodes, and those of a later
    start, share the same files. `near` and `far` are bytes that nodes read from their own hosts
    and from others.
    """

    def __init__(self, session: Any):
        self._session = session
        self._listings: dict[str, list[StoredFile]] = {}
        self.near = self.far = 0

    def serve(self, running: Any, nodes: Sequence[Mapping[str, Any]]) -> threading.Thread:
        """Answers what the nodes of a start ask until its watch is closed, in a thread."""
        run = self._run
        thread = threading.Thread(target=run, args=(running, nodes), name="hearth-files")
        thread.daemon = True
        thread.start()
        return thread

    def _run(self, running: Any, nodes: Sequence[Mapping[str, Any]]) -> None:
        plans: dict[str, list[str]] = {}  # one for each path: nodes may ask at different times
        while (entry := running.watch.files.get()) is not None:
            rank, event = entry
            if event["event"] == "files_read":
                self.near += event["near"]
                self.far += event["far"]
                continue
            uri = event["uri"]
            answer: dict[str, Any] = {"op": "files", "to": rank, "ask": event["ask"]}
            try:
                if uri not in plans:
                    plans[uri] = self._plan(uri, nodes)
                answer["share"] = plans[uri][_place(nodes, rank)]
            except Exception as error:  # whatever it is, the node must hear of it
                answer["error"] = str(error) or type(error).__name__
            with suppress(RuntimeError):  # the cluster may be over
                running.broadcast(answer)
        if total := self.near + self.far:
            share = 100 * self.near / total
            logger.info("nodes read %d bytes of files, %.0f %% on their own hosts", total, share)

    def _plan(self, uri: str, nodes: Sequence[Mapping[str, Any]]) -> list[str]:
        """The packed share of each node that takes rows."""
        if uri not in self._listings:
            self._listings[uri] = list_stored(self._session, uri)
        files = self._listings[uri]
        hosts = [frozenset((node["host"], node["host_name"])) for node in roles.fed_nodes(nodes)]
        first = [file.uri for file in files if file.size][:_SCHEMA_FILES] or [files[0].uri]
        parts = shares(files, hosts, reads_whole(files[0].uri))
        near = sum(part.bytes for share in parts for part in share if part.near)
        total = sum(file.size for file in files)
        logger.info(
            "%s: %d files with %d bytes for %d nodes, %.0f %% of it on their own hosts",
            uri, len(files), total, len(parts), 100 * near / max(1, total),
        )  # fmt: skip
        return [packed(uri, share, first) for share in parts]


def _place(nodes: Sequence[Mapping[str, Any]], rank: int) -> int:
    for place, node in enumerate(roles.fed_nodes(nodes)):
        if node["executor_id"] == rank:
            return place
    raise ValueError("a node of this role takes no rows, so it has no share of the files")
