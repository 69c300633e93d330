"""What a main function knows of its node and cluster."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hearth.cluster import results, roles
from hearth.cluster.node.data_feed import DataFeed
from hearth.cluster.node.reports.program import ProgramReports
from hearth.files.uri import absolute_uri

if TYPE_CHECKING:
    from hearth.cluster.node.file_feed import FileFeed
    from hearth.data.loader import Loader

logger = logging.getLogger(__name__)


@dataclass
class NodeContext:
    """The second argument of a main function.

    Attributes:
        node_id: this node's number among all of the cluster.
        role, index: its role, and its number among the nodes of that role.
        cluster_spec: {role: ["host:port", ...]}; a port is kept for each node's own server.
        default_fs: the cluster's default file system; working_dir: the driver's folder.
        restart_count: how often the cluster has started again.
        mgr: the node's feeds by name, and a few values of its own.
        port: this node's socket, where it was not released before the main function.
        collective_key: a secret of this start of the cluster, by which its nodes know each other;
            empty for nodes that have nothing to do with each other.
        checkpoint_dir: the folder for checkpoints that the cluster was started with, if any.
    """

    node_id: int
    role: str
    index: int
    cluster_spec: Mapping[str, Sequence[str]]
    default_fs: str
    working_dir: str
    restart_count: int = 0
    mgr: Any = None
    port: socket.socket | None = None
    collective_key: str = field(default="", repr=False)
    checkpoint_dir: str = ""

    @property
    def num_workers(self) -> int:
        """How many nodes take rows."""
        fed = [n for role, n in self.cluster_spec.items() if role not in roles.UNFED_ROLES]
        return sum(map(len, fed))

    def report(
        self, metrics: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any
    ) -> None:
        """Sends metrics of a step to the driver, which shows them while the program goes on.

            ctx.report(step=step, loss=loss, accuracy=right / rows)
            ctx.report({"val/loss": loss}, step=step)

        It does not wait for the driver. Where a program reports more than the connection carries,
        some reports are left out, and counted, but never the last one of a metric. Rank 0's are
        shown, and written to the event file; all are in the cluster's `history`.

        Args:
            metrics: values by names that are no names of arguments.
            step: which step they belong to; None: the one after the last.
            more: values by name: numbers, NaN included, scalars of NumPy, tensors without
                dimensions.

        Raises:
            TypeError: a value is not one number, or the step is not a whole one.
            ValueError: there is no value, a name is empty, or the step is negative.
        """
        self._reports.report({**(metrics or {}), **more}, step)

    @property
    def should_stop(self) -> bool:
        """Whether the driver asked for the end of training: its `on_report` returned False, or
        stop_training() was called. Nodes learn of it at different times."""
        return self._reports.should_stop

    @cached_property
    def _reports(self) -> ProgramReports:
        return getattr(self.mgr, "reports", None) or ProgramReports()

    def pack_result(self, value: Any) -> bytes:
        """What main_fun returned as bytes for Cluster.result(). Raises TypeError where it cannot
        be carried."""
        return results.packed(value)

    def absolute_path(self, path: str) -> str:
        """`path` as an absolute URI of the cluster's default file system; see absolute_uri()."""
        return absolute_uri(path, self.default_fs, self.working_dir)

    def get_data_feed(
        self,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Mapping[str, str] | None = None,
    ) -> DataFeed:
        """The rows that Spark brings; see DataFeed."""
        return DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def get_file_feed(self, path: str, columns: Sequence[str] = (), epochs: int = 1) -> FileFeed:
        """A feed of this worker's share of the rows of Parquet, Arrow or TFRecord files.

        Args:
            path: a file or folder that this host sees, as it is or by absolute_path(); or one of
                HDFS, of which each node gets what lies on its host first.
            columns: which to read; none: all.
            epochs: how often each row is given.

        Raises:
            FileNotFoundError: nothing is there.
            HearthError: files in HDFS cannot be listed.
            ValueError: another file system, or a column that the files do not have.
        """
        from hearth.cluster.node.file_feed import FileFeed

        return FileFeed(path, columns, self.share(), epochs, self.mgr)

    def dataset(
        self,
        name: str,
        batch_size: int,
        columns: Sequence[str] | None = None,
        shuffle: bool | str = True,
        **options: Any,
    ) -> Loader:
        """This rank's share of a dataset in minibatches, equally many on all ranks.

        Used as a DataLoader of PyTorch: `for batch in loader` gives an epoch of {column: array},
        len() its steps, set_epoch() chooses it, state_dict() and load_state_dict() go on from a
        checkpoint at the next row. See docs/data.md.

        Args:
            name: of run(datasets=).
            batch_size: rows of a batch; an epoch's last one may be smaller.
            columns: which to give, as a tuple; None: all, by name.
            shuffle: True: rows of windows, then of blocks from everywhere; "full": single rows,
                for which the first epoch waits for all of them; False: not at all.

        Keyword Args:
            seed (int): of the order, 0.
            uneven (str): what a rank with fewer rows does at an epoch's end: "repeat" gives some of
                its rows again, "drop" has all ranks leave out what one of them lacks, "weight"
                repeats with a column row_weight of 1 and 0.
            drop_last (bool): whether a last, smaller batch is left out.
            ragged (Sequence[str]): columns of lists of different lengths.
            transforms (Mapping[str, hearth.data.image]): of columns of encoded images.
            map (Callable): map(batch), or map(batch, seeds) with one seed for each row, which
                follows from the loader's seed, the epoch and the row; makes the batch.
            workers (int): threads that transform and map; 0: one that also reads.
            map_in (str): "threads", or "processes": map runs in so many processes as `workers`
                says, for which it is pickled.
            prefetch (int): batches made ahead, 2, or as many as there are workers.

        Raises:
            ValueError: there is no such dataset, or an argument is not one of the above.
            ClusterError: the cluster failed.
        """
        from hearth.data.loader import Loader

        return self._loader(Loader, name, batch_size, columns, {"shuffle": shuffle, **options})

    def _loader(
        self,
        kind: Callable[..., Any],
        name: str,
        batch_size: int,
        columns: Sequence[str] | None,
        options: Mapping[str, Any],
    ) -> Any:
        from hearth.cluster.node.datasets.program import mgr_datasets
        from hearth.data.options import LoaderOptions

        for option, named in (("columns", columns), ("ragged", options.get("ragged"))):
            if isinstance(named, str):
                raise ValueError(f"{option} is {named!r}: give a sequence of names, ({named!r},)")
        if "ragged" in options:
            options = {**options, "ragged": tuple(options["ragged"])}
        chosen = None if columns is None else tuple(columns)
        made = LoaderOptions(batch_size, chosen, **options)
        return kind(mgr_datasets(self.mgr).open(name), made)

    def place(self) -> Any:
        """This node's Place among those that take rows, for the collective; None for the others,
        and outside of a running node."""
        from hearth.ranks.place import Place

        meetings = getattr(self.mgr, "meetings", None)
        if self.role in roles.UNFED_ROLES or meetings is None or not self.collective_key:
            return None
        return Place(*self.share(), self._meeting)

    def _meeting(self, name: str) -> Any:
        from hearth.ranks.group import Meeting

        own = self.cluster_spec[self.role][self.index].rpartition(":")[0]
        meetings = self.mgr.meetings
        return Meeting(
            publish=lambda text: meetings.publish(name, text),
            read=lambda: meetings.read(name),
            withdraw=lambda: None,  # a name serves once
            host=own,
            key=self.collective_key,
        )

    def share(self) -> tuple[int, int]:
        """(this node's number among those that take rows, their number)."""
        before = 0
        for role, nodes in self.cluster_spec.items():
            if role in roles.UNFED_ROLES:
                continue
            if role == self.role:
                break
            before += len(nodes)
        return before + self.index, max(1, self.num_workers)

    def release_port(self) -> None:
        """Frees the port that was kept for this node's server, where release_port=False kept it."""
        if self.port is not None:
            self.port.close()
            self.port = None
        else:
            logger.warning("release_port: this node's port was released before its main function")
