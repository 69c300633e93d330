"""The recipe examples/torch/jpeg_tuning.py with torchvision's ResNet-18."""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
from dataset_ranks import rank_dataset

from hearth.data.options import LoaderOptions
from hearth.torch.context import TorchContext
from hearth.torch.loader import TensorLoader

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "torch"))
import jpeg_tuning


class Context(TorchContext):
    """A rank's, without a cluster."""

    rows = None  # files and labels

    def dataset(self, name, batch_size, columns, shuffle=True, **options):
        files, labels = (each[:600] if name == "train" else each[600:] for each in self.rows)
        whole = pa.record_batch({"jpeg": pa.array(files, pa.binary()), "label": labels})
        share = -(-len(files) // 4)
        parts = [whole.slice(at, share) for at in range(0, len(files), share)]
        data = rank_dataset(parts, self.rank, self.world_size)
        return TensorLoader(data, LoaderOptions(batch_size, columns, shuffle, **options))


def main(_, folder):
    rank, report = int(os.environ["RANK"]), Path(folder, "report.json")
    given = ["--torchvision", "--trunk", f"{folder}/trunk{rank}.pt", "--report", str(report)]
    args = jpeg_tuning.parse(given)
    files, labels = jpeg_tuning.digits()
    low = [file for file, label in zip(files, labels, strict=True) if label < 5]
    jpeg_tuning.train_trunk(low, labels[labels < 5], args.trunk, args.torchvision)
    high = [file for file, label in zip(files, labels, strict=True) if label >= 5]
    Context.rows = high, labels[labels >= 5] - 5
    spec = {"worker": ["127.0.0.1:1"] * int(os.environ["WORLD_SIZE"])}
    ctx = Context(
        node_id=rank, role="worker", index=rank, cluster_spec=spec, default_fs="file://",
        working_dir="/", mgr=None,
    )  # fmt: skip
    jpeg_tuning.main_fun(args, ctx)
    ctx.end()
    if rank == 0:
        found = json.loads(report.read_text())
        print(found)
        assert found["trunk"] == "ResNet" and found["trunk_is_kept"], found
        assert found["accuracy"] >= 0.8, found  # chance: 0.2


if __name__ == "__main__":
    main(*sys.argv[1:])
