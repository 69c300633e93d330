"""`ctx.mgr` of a node: its named feeds and key/value pairs, in the node's process."""

from __future__ import annotations

from typing import Any

from hearth.cluster import results
from hearth.cluster.node.feed_server import FeedServer


class NodeManager:
    """A node's named queues and key/value pairs, the counterpart of TensorFlowOnSpark's TFManager.
    Thread-safe.

    Attributes:
        files: requests the node's share of files.
        datasets: the node's datasets by name.
        store: the nodes' key-value store.
        reports: sends metrics to the driver.
    """

    def __init__(self, server: FeedServer):
        self._server = server
        self.files, self.datasets = server.files, server.datasets
        self.store, self.reports = server.store, server.reports
        self._values: dict[str, Any] = {"state": "running"}

    def get_queue(self, name: str) -> Any:
        """The feed named `name`, a FeedQueue; None if no feed has this name."""
        return self._server.queues.get(name)

    def get(self, key: str) -> Any:
        """The value of `key`; None if it was not set."""
        return self._values.get(key)

    def set(self, key: str, value: Any) -> None:
        """Sets the value of `key`, for this node."""
        self._values[key] = value

    def await_cause(self, timeout_s: float) -> None:
        """Waits until the cause of a lost rank is reported; see FeedServer.await_cause()."""
        self._server.await_cause(timeout_s)

    def note_commit(self) -> None:
        """Reports to the driver that the program has made a checkpoint since this start."""
        self._server.note_commit()

    def beat(self) -> None:
        """Sends heartbeats to the tasks that feed this node; see FeedSpec.beat_s."""
        self._server.beat()

    def warn(self, text: str) -> None:
        """Sends a warning to the driver's log."""
        self._server.report({"event": "warning", "text": text})

    def report_value(self, data: bytes) -> None:
        """Sends the driver the main function's return value, or a part of it."""
        for piece in results.pieces(data):
            self._server.report({"event": "value", "piece": piece})
