"""The recipe examples/torch/text_classifier.py with a tokenizer of the package tokenizers."""

import json
import os
import random
import sys
from pathlib import Path

import pyarrow as pa
from dataset_ranks import rank_dataset

from hearth.data.options import LoaderOptions
from hearth.torch.context import TorchContext
from hearth.torch.loader import TensorLoader

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "torch"))
import text_classifier

WORDS = (
    ["rain", "wind", "snow", "cloud", "storm", "frost"],
    ["price", "bank", "market", "share", "loan", "profit"],
)
ROWS = 800


def sentences():
    """Labels and texts."""
    draw = random.Random(1)
    labels = [row % 2 for row in range(ROWS)]
    return labels, [" ".join(["today", *draw.choices(WORDS[k], k=2), "more"]) for k in labels]


class Context(TorchContext):
    """A rank's, without a cluster."""

    def dataset(self, name, batch_size, columns, shuffle=True, **options):
        labels, texts = sentences()
        rows = {"text": texts, "label": pa.array(labels, pa.int64())}
        whole = pa.record_batch(rows)
        first, count = (0, 600) if name == "train" else (600, 200)
        parts = [whole.slice(first + at, count // 4) for at in range(0, count, count // 4)]
        data = rank_dataset(parts, self.rank, self.world_size)
        return TensorLoader(data, LoaderOptions(batch_size, columns, shuffle, **options))


def main(_, folder):
    report = Path(folder, "report.json")
    args = text_classifier.parse(["--bpe", "--report", str(report), "--words", "60"])
    args.tokenizer = text_classifier.trained_tokenizer(sentences()[1][:600], args.words)
    rank = int(os.environ["RANK"])
    spec = {"worker": ["127.0.0.1:1"] * int(os.environ["WORLD_SIZE"])}
    ctx = Context(
        node_id=rank, role="worker", index=rank, cluster_spec=spec, default_fs="file://",
        working_dir="/", mgr=None,
    )  # fmt: skip
    text_classifier.main_fun(args, ctx)
    ctx.end()
    if rank == 0:
        found = json.loads(report.read_text())
        print(found)
        assert found["accuracy"] >= 0.9, found


if __name__ == "__main__":
    main(*sys.argv[1:])
