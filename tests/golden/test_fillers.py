"""The values that fillers write: statistics for random fillers, exact values for others."""

from __future__ import annotations

import numpy as np
import pytest
from golden import Case, cases

from hearth.native import _caffe


@pytest.mark.parametrize("case", cases("filler"), ids=lambda case: case.name)
def test_random_filler_has_the_same_statistics(case: Case) -> None:
    net = _caffe.Net(case["prototxt"], case["phase"])
    (name,) = net.outputs
    net.forward()
    values = net.blobs[name].data.astype(np.float64)
    mean, deviation, low, high, zeros = case.arrays()["stats"]
    tolerance = case["tolerance"]
    assert abs(values.mean() - mean) <= tolerance["mean_abs"]
    assert abs(values.std() - deviation) <= tolerance["std_rel"] * max(deviation, 1e-12)
    spread = max(high - low, 1e-12)
    assert low - 0.5 * spread <= values.min() <= values.max() <= high + 0.5 * spread
    assert abs((values == 0).mean() - zeros) <= 0.02
    before = values.copy()
    net.forward()
    assert case["statistics"]["refilled_each_forward"] == (
        not np.array_equal(before, net.blobs[name].data)
    )


@pytest.mark.parametrize("case", cases("filler_exact"), ids=lambda case: case.name)
def test_exact_filler_has_the_same_values(case: Case) -> None:
    net = _caffe.Net(case["prototxt"], case["phase"])
    net.forward()
    for key, expected in case.arrays().items():
        if key.startswith("data/"):
            case.close(net.blobs[key.removeprefix("data/")].data, expected, key)
