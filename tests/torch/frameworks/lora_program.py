"""The recipe examples/torch/lora.py with peft and transformers: FSDP2, background checkpoints."""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
from rank_main import run_rank

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "torch"))
import lora

ROWS = 800


def main(_, folder):
    report, checkpoints = Path(folder, "report.json"), Path(folder, "checkpoints")
    given = ["--peft", "--report", str(report), "--checkpoints", str(checkpoints)]
    firsts = [(7 * row) % 1000 for row in range(ROWS)]
    texts = [[(n * 2 + first) % lora.LETTERS for n in range(10)] for first in firsts]
    rows = pa.record_batch({"tokens": pa.array(texts, pa.list_(pa.int64()))})
    run_rank(lora.main_fun, lora.parse(given), {"train": rows})
    if os.environ["RANK"] == "0":
        names = sorted(path.name for path in checkpoints.iterdir())
        assert names == ["checkpoint-000002-step-2", "checkpoint-000003-step-3"], names
        found = json.loads(report.read_text())
        print({name: found[name] for name in ("loss", "trained", "all")})
        assert found["loss"] < 0.3, found
        assert found["changed"] and all("lora_" in name for name in found["changed"]), found


if __name__ == "__main__":
    main(*sys.argv[1:])
