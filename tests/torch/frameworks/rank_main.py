"""Runs a rank's main function without a cluster; record batches replace its datasets."""

import os

from dataset_ranks import rank_dataset

from hearth.data.options import LoaderOptions
from hearth.torch.context import TorchContext
from hearth.torch.loader import TensorLoader

PARTITIONS = 4


class Context(TorchContext):
    """A rank's context without a cluster."""

    batches = None  # {dataset's name: record batches}

    def dataset(self, name, batch_size, columns, shuffle=True, **options):
        whole = self.batches[name]
        share = -(-len(whole) // PARTITIONS)
        parts = [whole.slice(at, share) for at in range(0, len(whole), share)]
        data = rank_dataset(parts, self.rank, self.world_size)
        return TensorLoader(data, LoaderOptions(batch_size, columns, shuffle, **options))


def run_rank(main_fun, args, batches):
    """Runs main_fun(args, ctx) as the rank that the environment variables define."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    ctx = Context(
        node_id=rank, role="worker", index=rank, cluster_spec={"worker": ["127.0.0.1:1"] * world},
        default_fs="file://", working_dir="/", mgr=None,
    )  # fmt: skip
    ctx.batches = batches
    main_fun(args, ctx)
    ctx.end()
