"""`ctx.mgr` of a node: its named feeds and a few values, inside the node's own process."""

from __future__ import annotations

from typing import Any

from hearth.cluster.node.datasets.program import NodeDatasets
from hearth.cluster.node.feed_server import FeedServer
from hearth.cluster.node.meetings import Meetings
from hearth.cluster.node.reports.program import ProgramReports
from hearth.cluster.node.split_requests import SplitRequests


class NodeManager:
    """What a TFManager is elsewhere: queues by name and key/value pairs. Any thread may use it."""

    def __init__(self, server: FeedServer):
        self._server = server
        self._values: dict[str, Any] = {"state": "running"}

    def get_queue(self, name: str) -> Any:
        """The feed of that name, a FeedQueue; None where the cluster has none."""
        return self._server.queues.get(name)

    @property
    def files(self) -> SplitRequests:
        """By which the node asks for its share of files."""
        return self._server.files

    @property
    def datasets(self) -> NodeDatasets:
        """The node's datasets by name."""
        return self._server.datasets

    @property
    def meetings(self) -> Meetings:
        """Texts that nodes leave for each other."""
        return self._server.meetings

    @property
    def reports(self) -> ProgramReports:
        """Metrics on their way to the driver."""
        return self._server.reports

    def get(self, key: str) -> Any:
        return self._values.get(key)

    def set(self, key: str, value: Any) -> None:
        self._values[key] = value

    def wait_failed(self, timeout_s: float) -> bool:
        """Waits until it is known here that a node of the cluster has failed; whether it has."""
        return self._server.failed.wait(timeout_s)

    def note_commit(self) -> None:
        """Reports to the driver that the program has made a checkpoint in this life."""
        self._server.note_commit()

    def beat(self) -> None:
        """Shows the tasks that feed this node that its program goes on; see FeedSpec.beat_s."""
        self._server.beat()

    def warn(self, text: str) -> None:
        """Has the driver log a warning of this node."""
        self._server.report({"event": "warning", "text": text})

    def report_value(self, piece: str) -> None:
        """Sends the driver a piece, of less than a megabyte, of what the main function gives."""
        self._server.report({"event": "value", "piece": piece})
