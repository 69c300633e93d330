"""The recipe examples/torch/lora.py with peft and transformers: FSDP2, background checkpoints."""

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
import lora

ROWS = 800


class Context(TorchContext):
    """A rank's, without a cluster."""

    def dataset(self, name, batch_size, columns):
        firsts = [(7 * row) % 1000 for row in range(ROWS)]
        texts = [[(n * 2 + first) % lora.LETTERS for n in range(10)] for first in firsts]
        kind = pa.list_(pa.int64())
        parts = [pa.record_batch({"tokens": pa.array(texts[part::4], kind)}) for part in range(4)]
        data = rank_dataset(parts, self.rank, self.world_size)
        return TensorLoader(data, LoaderOptions(batch_size, columns))


def main(_, folder):
    report, checkpoints = Path(folder, "report.json"), Path(folder, "checkpoints")
    given = ["--peft", "--report", str(report), "--checkpoints", str(checkpoints)]
    rank = int(os.environ["RANK"])
    spec = {"worker": ["127.0.0.1:1"] * int(os.environ["WORLD_SIZE"])}
    ctx = Context(
        node_id=rank, role="worker", index=rank, cluster_spec=spec, default_fs="file://",
        working_dir="/", mgr=None,
    )  # fmt: skip
    lora.main_fun(lora.parse(given), ctx)
    ctx.end()
    if rank == 0:
        names = sorted(path.name for path in checkpoints.iterdir())
        assert names == ["checkpoint-000002-step-2", "checkpoint-000003-step-3"], names
        found = json.loads(report.read_text())
        print({name: found[name] for name in ("loss", "trained", "all")})
        assert found["loss"] < 0.3, found
        assert found["changed"] and all("lora_" in name for name in found["changed"]), found


if __name__ == "__main__":
    main(*sys.argv[1:])
