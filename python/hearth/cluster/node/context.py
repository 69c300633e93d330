"""The context of a main function: its node and cluster."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from hearth.cluster import results, roles
from hearth.cluster.node.data_feed import DataFeed
from hearth.cluster.node.reports.program_reports import ProgramReports
from hearth.errors import invalid
from hearth.files.uri import absolute_uri

if TYPE_CHECKING:
    from hearth.cluster.node.file_feed import FileFeed
    from hearth.data.loader import Loader

logger = logging.getLogger(__name__)


@dataclass
class NodeContext:
    """The second argument of a main function.

    Attributes:
        node_id: this node's number in the cluster.
        role, index: its role, and its number within the role.
        cluster_spec: {role: ["host:port", ...]}; a port is reserved for each node's server.
        default_fs: the cluster's default file system; working_dir: the driver's working directory.
        restart_count: how often the cluster has restarted.
        mgr: the node's feeds by name, and a few key/value pairs.
        port: this node's bound socket, unless it was released before the main function was called.
        collective_key: a secret that authenticates the nodes, new at each start of the cluster;
            empty for nodes of independent clusters.
        checkpoint_dir: the cluster's folder for checkpoints, if any.
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
        """Sends a step's metrics to the driver, which shows them while the program runs.

            ctx.report(step=step, loss=loss, accuracy=right / rows)
            ctx.report({"val/loss": loss}, step=step)

        Does not wait for the driver. If a program reports faster than the connection can send, some
        reports are dropped and counted, but never a metric's latest one. Rank 0's metrics are
        shown, and written to the event file; all are in the cluster's `history`.

        Args:
            metrics: values by name, for names that are not valid argument names.
            step: the step; None: the one after the last.
            more: values by name: numbers, NaN included, NumPy scalars, or zero-dimensional tensors.

        Raises:
            TypeError: a value is not a single number, or the step is not an integer.
            ValueError: no value is given, a name is empty, or the step is negative.
        """
        self._reports.report({**(metrics or {}), **more}, step)

    @property
    def should_stop(self) -> bool:
        """Whether the driver requested the end of training: its `on_report` returned False, or
        stop_training() was called. Nodes see it at different times."""
        return self._reports.should_stop

    @cached_property
    def _reports(self) -> ProgramReports:
        return getattr(self.mgr, "reports", None) or ProgramReports()

    def pack_result(self, value: Any) -> bytes:
        """Serializes main_fun's return value for Cluster.result(). Raises TypeError for unsupported
        types."""
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
        """A feed of the rows that Spark sends; see DataFeed."""
        return DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def get_file_feed(self, path: str, columns: Sequence[str] = (), epochs: int = 1) -> FileFeed:
        """A feed of this worker's share of the rows of Parquet, Arrow or TFRecord files.

        Args:
            path: a file or folder on this host, as a path or a URI of absolute_path(); or in HDFS,
                where each node is assigned blocks on its own host first.
            columns: names of columns to read; empty: all.
            epochs: how often each row is delivered.

        Raises:
            FileNotFoundError: the path does not exist.
            HearthError: files in HDFS cannot be listed.
            ValueError: an unsupported file system, or a column that is not in the files.
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
        """This rank's share of a dataset in minibatches, with equal counts on all ranks.

        Works like a PyTorch DataLoader: `for batch in loader` iterates over one epoch of {column:
        array} batches, len() returns its number of steps, set_epoch() selects the epoch, and
        state_dict() and load_state_dict() save and restore the position, exact to the row. See
        docs/data.md.

        Args:
            name: the dataset's name in run(datasets=).
            batch_size: rows per batch; the last one of an epoch may be smaller.
            columns: names of columns: batches are tuples of their arrays; None: batches are dicts
                of all columns.
            shuffle: True: shuffles rows within windows in the first epoch, and blocks of all rows
                in later ones; "full": shuffles single rows, so the first epoch waits until all rows
                have arrived; False: no shuffle.

        Keyword Args:
            seed (int): seed of the order, default 0.
            uneven (str): how ranks with fewer rows end an epoch: "repeat" repeats some of
                their rows, "drop" drops the excess rows of other ranks, "weight" repeats rows
                and adds a column row_weight of 1 and 0.
            drop_last (bool): whether to drop a smaller last batch.
            ragged (Sequence[str]): columns of lists with different lengths.
            transforms (Mapping[str, hearth.data.image]): transforms of encoded images by column.
            map (Callable): map(batch), or map(batch, seeds) with one seed per row, derived from
                the loader's seed, the epoch and the row; returns the batch.
            workers (int): threads for transforms and map; 0: one thread, which also reads the rows.
            map_in (str): "threads", or "processes": map is pickled and runs in `workers`
                processes.
            prefetch (int): batches prepared ahead; default 2, or the number of workers.

        Raises:
            ValueError: an unknown dataset, or an invalid argument.
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
        from hearth.data.options import LoaderOptions, check_known

        check_known(options)
        for option, named in (("columns", columns), ("ragged", options.get("ragged"))):
            if isinstance(named, str):
                raise invalid(
                    f"{option} is {named!r}: pass a sequence of names, such as ({named!r},)"
                )
        if "ragged" in options:
            options = {**options, "ragged": tuple(options["ragged"])}
        chosen = None if columns is None else tuple(columns)
        made = LoaderOptions(batch_size, chosen, **options)
        return kind(mgr_datasets(self.mgr).open(name, chosen), made)

    def place(self) -> Any:
        """This node's Place among the nodes that take rows, for the collective; None for other
        nodes, and outside of a running node."""
        from hearth.ranks.place import Place, by_store

        store = getattr(self.mgr, "store", None)
        if self.role in roles.UNFED_ROLES or store is None or not self.collective_key:
            return None
        own = self.cluster_spec[self.role][self.index].rpartition(":")[0]
        return Place(*self.share(), partial(by_store, store, key=self.collective_key, host=own))

    def share(self) -> tuple[int, int]:
        """(this node's number among the nodes that take rows, their count)."""
        before = 0
        for role, nodes in self.cluster_spec.items():
            if role in roles.UNFED_ROLES:
                continue
            if role == self.role:
                break
            before += len(nodes)
        return before + self.index, max(1, self.num_workers)

    def release_port(self) -> None:
        """Releases the port reserved for this node's server, if release_port=False kept it."""
        if self.port is not None:
            self.port.close()
            self.port = None
        else:
            logger.warning("release_port: this node's port was released before its main function")
