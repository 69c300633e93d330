"""The examples, as a user runs them, on the tests' Spark session."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark import cloudpickle

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "torch"
sys.path.insert(0, str(EXAMPLES))


def test_a_dataframe_trains_a_ddp_model_on_two_nodes(spark, tmp_path):
    import ddp_digits

    # Functions are pickled by value, like those of a program's main module.
    cloudpickle.register_pickle_by_value(ddp_digits)
    arguments = ddp_digits.parse(["--model", str(tmp_path / "digits.pt")])
    assert ddp_digits.run(spark, arguments) >= 0.95
