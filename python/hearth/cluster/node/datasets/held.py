"""The supervisor's side of datasets: holds partition files and starts readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hearth.cluster.channel import Channel, Message
from hearth.cluster.node.datasets.files import PartitionFiles
from hearth.cluster.node.datasets.keeper import keep, take_over
from hearth.cluster.node.datasets.reader import OnError, Reader


class HeldDatasets:
    """The partition files and readers of a node's datasets. Only the supervisor's thread calls
    these methods; threads that serve writers use `files`."""

    def __init__(self, job: Mapping[str, Any], program: Channel, report: Callable[[Message], None]):
        """`program`: the channel to the node's program; `report` sends an event to the driver.
        Adopts files that an earlier start of the cluster left on this host."""
        self._job = job
        self.files = PartitionFiles(program, report)
        self._readers: list[Reader] = []
        if job["restart_count"]:
            self.files.adopt(take_over(job["cluster"], job["keep_key"]))

    def plan(self, message: Message, node: Message, on_error: OnError) -> Message:
        """Handles the driver's assignment of a dataset's partitions. Starts a reader of this node's
        splits if the source consists of files.

        Args:
            message: the driver's message.
            node: this node's fields, for readers to connect.
            on_error: see Reader.

        Returns:
            the message for the program.
        """
        job, name, nodes = self._job, message["dataset"], message["nodes"]
        own = job["executor_id"]
        rank = nodes.index(own) if own in nodes else None
        owned = [split for split, owner in enumerate(message["owners"]) if owner == rank]
        for_program = {**message, "rank": rank, "world": len(nodes)}
        held = job["sources"][name]
        if not held["spool"]:
            return {**for_program, "source": held["source"]}
        complete = self.files.show_adopted(name, owned if message["keeps"] else ())
        splits = [split for split in owned if split not in complete]
        if splits and held["source"]:
            task = {"name": name, "splits": splits, "node": node, "token": job["token"]}
            self._readers.append(Reader(task, held["source"], on_error))
        return for_program

    def close(self) -> None:
        """Ends the readers."""
        for reader in self._readers:
            reader.close()

    def keep(self) -> None:
        """Offers complete files to the cluster's next start until they are no longer needed."""
        job = self._job
        keep(self.files.complete(), job["cluster"], job["keep_key"], job["executor_pid"])
