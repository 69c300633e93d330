"""The recipe examples/torch/jpeg_tuning.py with torchvision's ResNet-18."""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
from rank_main import run_rank

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "torch"))
import jpeg_tuning


def main(_, folder):
    rank, report = os.environ["RANK"], Path(folder, "report.json")
    given = ["--torchvision", "--trunk", f"{folder}/trunk{rank}.pt", "--report", str(report)]
    args = jpeg_tuning.parse(given)
    files, labels = jpeg_tuning.digits()
    low = [file for file, label in zip(files, labels, strict=True) if label < 5]
    jpeg_tuning.train_trunk(low, labels[labels < 5], args.trunk, args.torchvision)
    high = [file for file, label in zip(files, labels, strict=True) if label >= 5]
    rows = {"jpeg": pa.array(high, pa.binary()), "label": labels[labels >= 5] - 5}
    whole = pa.record_batch(rows)
    batches = {"train": whole[:600], "test": whole[600:]}
    run_rank(jpeg_tuning.main_fun, args, batches)
    if rank == "0":
        found = json.loads(report.read_text())
        print(found)
        assert found["trunk"] == "ResNet" and found["trunk_is_kept"], found
        assert found["accuracy"] >= 0.8, found  # a random guess has 0.2


if __name__ == "__main__":
    main(*sys.argv[1:])
