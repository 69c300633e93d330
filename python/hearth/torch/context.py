"""The context of a PyTorch main function: rank, device, feeds of tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from hearth.cluster import roles
from hearth.cluster.node.context import NodeContext
from hearth.spark.links import check_nccl
from hearth.torch import returned

if TYPE_CHECKING:
    import torch

    from hearth.torch.feeds import DataFeed, FileFeed
    from hearth.torch.loader import TensorLoader


class TorchContext(NodeContext):
    """The second argument of a main function.

    `rank`, `world_size`, `local_rank` and `local_world_size` match the environment; a node whose
    role takes no rows has the rank None.
    """

    @property
    def rank(self) -> int | None:
        """This node's rank in the process group; None if its role takes no rows."""
        return None if self.role in roles.UNFED_ROLES else self.share()[0]

    @property
    def world_size(self) -> int:
        """The number of ranks in the process group."""
        return self.num_workers

    @property
    def local_rank(self) -> int:
        """This node's rank among the ranks on its host; 0 if this node has GPUs, because only it
        sees them."""
        return 0 if self.rank is None or _own_gpus() else self._neighbours().index(self.rank)

    @property
    def local_world_size(self) -> int:
        """The number of ranks on this host; 1 if this node has GPUs, because only it sees them."""
        return 1 if self.rank is None or _own_gpus() else len(self._neighbours())

    @property
    def group_rank(self) -> int:
        """The number of this node's host. With GPUs it is this node's rank, as if each node were a
        host."""
        if _own_gpus():
            return self.rank or 0
        hosts = list(dict.fromkeys(self.hosts))
        return 0 if self.rank is None else hosts.index(self.hosts[self.rank])

    @property
    def master(self) -> tuple[str, int]:
        """Host and port of rank 0, the rendezvous of the ranks."""
        host, _, port = self._addresses()[0].rpartition(":")
        return host, int(port)

    @property
    def device(self) -> torch.device:
        """The torch.device to use: the node's first GPU, or the CPU if it has none."""
        import torch

        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")

    @property
    def backend(self) -> str:
        """The backend for init_process_group(): "hearth", with GPUs "cpu:hearth,cuda:nccl".

        Raises HearthError if ranks with GPUs are on several hosts and Spark's settings require
        encryption, which NCCL lacks.
        """
        if self.device.type != "cuda":
            return "hearth"
        check_nccl(self.hosts)
        return "cpu:hearth,cuda:nccl"

    def get_data_feed(
        self,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Mapping[str, str] | None = None,
    ) -> DataFeed:
        """Rows from Spark; see hearth.torch.feeds.DataFeed."""
        from hearth.torch.feeds import DataFeed

        return DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def dataset(
        self,
        name: str,
        batch_size: int,
        columns: Sequence[str] | None = None,
        shuffle: bool | str = True,
        *,
        pin_memory: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        **options: Any,
    ) -> TensorLoader:
        """The minibatches of a dataset of run(), each {column: tensor} or a tuple of tensors.

        Strings and binaries are lists. The program owns the tensors and may write to them.

        Args:
            name, batch_size, columns, shuffle: as for NodeContext.dataset().
            pin_memory: puts tensors into page-locked memory, if there is a GPU.
            collate_fn: makes the batch from a list of its rows, each a dict or a tuple.
            options: as for NodeContext.dataset().

        Raises:
            ValueError: no such dataset, or an invalid argument.
            ClusterError: the cluster failed.
        """
        from hearth.data.options import check_known
        from hearth.torch.loader import TensorLoader

        check_known(options, ("pin_memory", "collate_fn"))
        kind = partial(TensorLoader, pin_memory=pin_memory, collate_fn=collate_fn)
        return self._loader(kind, name, batch_size, columns, {"shuffle": shuffle, **options})

    def get_file_feed(self, path: str, columns: Sequence[str] = (), epochs: int = 1) -> FileFeed:
        """A feed of this node's share of the rows of files; see NodeContext.get_file_feed."""
        from hearth.torch.feeds import FileFeed

        return FileFeed(path, columns, self.share(), epochs, self.mgr)

    def checkpoint(
        self, step: int, *, folder: str = "", keep: int = 2, background: bool = False, **parts: Any
    ) -> None:
        """Saves the state of all ranks after `step` steps, atomically; all ranks call it.

            ctx.checkpoint(step, model=model, optimizer=optimizer, data=loader)

        Rank 0 writes the state that is equal on all ranks, and each rank writes its shards of an
        FSDP2 model. Each rank's random state of torch is included. A checkpoint resets the count of
        restarts.

        Args:
            step: how many steps the model has made.
            folder: path or URI; empty: the checkpoint_dir of TorchCluster.run().
            keep: how many of the newest checkpoints to keep; older ones are removed.
            background: return once the state is copied to main memory (each shard on its rank);
                threads write the copies. The next checkpoint() or restore(), or the end of
                main_fun, waits for these threads and raises their errors.
            parts: model, optimizer, data, and any others: objects with state_dict() and
                load_state_dict(), or dicts; None: left out.

        Raises:
            HearthError: on all ranks: the state cannot be saved or written (older checkpoints
                remain), or the ranks, or model and data, are at different steps.
        """
        self._checkpoints.save(step, parts, folder, keep, background)

    def restore(self, *, folder: str = "", **parts: Any) -> int | None:
        """Restores the parts from the newest intact checkpoint, the same on all ranks, and returns
        its step. Returns None, and changes nothing, if there is no checkpoint. All ranks call it.

        Damaged checkpoints are skipped, each with a warning that the driver logs. Arguments are
        those of checkpoint(); a dict is cleared and filled.

        Raises:
            HearthError: on all ranks: the checkpoint is of another model, lacks a part, or has
                parts of different steps; or the folder cannot be read.
        """
        step = self._checkpoints.restore(parts, folder)
        if step is not None:
            self._reports.resume(step)
        return step

    @property
    def should_stop(self) -> bool:
        """Whether the driver has requested a stop; the same on all ranks of the process group. With
        a process group, each call is an all-reduce of one number, so all ranks must call it equally
        often."""
        from hearth.torch.metrics import on_any_rank

        return on_any_rank(self._reports.should_stop)

    def pack_result(self, value: Any) -> bytes:
        """The bytes of a result for the driver; the result may contain tensors."""
        return returned.packed_result(value)

    def reduce_metrics(self, metrics: Mapping[str, Any], weight: Any = 1.0) -> dict[str, float]:
        """The mean of each metric over all ranks, as Python numbers; all ranks call it.

            ctx.reduce_metrics({"loss": loss, "accuracy": right / rows}, weight=rows)

        Args:
            metrics: numbers, or tensors of one value, with the same names on all ranks.
            weight: this rank's weight, such as its number of rows: the sum of weight times value
                over the ranks is divided by the sum of the weights. Values of ranks with weight 0
                are ignored; if all weights are 0, each mean is nan.

        Raises:
            HearthError: on all ranks: names differ, or a value is not a single number.
        """
        from hearth.torch.metrics import reduced
        from hearth.torch.peers import Peers

        return reduced(metrics, weight, Peers())

    @cached_property
    def _checkpoints(self) -> Any:
        from hearth.torch.checkpoints import Checkpoints

        return Checkpoints(self)

    def end(self) -> None:
        """Waits for a checkpoint that is being written in the background."""
        if "_checkpoints" in vars(self):
            self._checkpoints.finish()

    def _addresses(self) -> list[str]:
        """host:port of every rank, in rank order."""
        fed = [n for role, n in self.cluster_spec.items() if role not in roles.UNFED_ROLES]
        return [address for nodes in fed for address in nodes]

    @property
    def hosts(self) -> list[str]:
        """The address of each rank's host, in rank order."""
        return [address.rpartition(":")[0] for address in self._addresses()]

    def _neighbours(self) -> list[int]:
        """The ranks on this node's host."""
        hosts, own = self.hosts, self.rank or 0
        return [rank for rank, host in enumerate(hosts) if host == hosts[own]]


def _own_gpus() -> bool:
    return bool(os.environ.get("CUDA_VISIBLE_DEVICES"))
