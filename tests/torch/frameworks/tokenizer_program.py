"""The recipe examples/torch/text_classifier.py with a tokenizer of the package tokenizers."""

import json
import os
import random
import sys
from pathlib import Path

import pyarrow as pa
from rank_main import run_rank

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


def main(_, folder):
    report = Path(folder, "report.json")
    args = text_classifier.parse(["--bpe", "--report", str(report), "--words", "60"])
    labels, texts = sentences()
    args.tokenizer = text_classifier.trained_tokenizer(texts[:600], args.words)
    rows = pa.record_batch({"text": texts, "label": pa.array(labels, pa.int64())})
    run_rank(text_classifier.main_fun, args, {"train": rows[:600], "test": rows[600:]})
    if os.environ["RANK"] == "0":
        found = json.loads(report.read_text())
        print(found)
        assert found["accuracy"] >= 0.9, found


if __name__ == "__main__":
    main(*sys.argv[1:])
