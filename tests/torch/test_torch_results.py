"""Results with tensors, transferred to the driver."""

from __future__ import annotations

import numpy as np
import pytest

from hearth.torch import returned


def test_nested_results_with_tensors_are_returned():
    import torch

    model = torch.nn.Linear(2, 1)
    value = {"state": model.state_dict(), "loss": np.float32(0.5), "parts": (torch.tensor(1), "x")}
    found = returned.result_of(returned.packed_result(value))
    assert found["loss"] == 0.5 and found["parts"] == (torch.tensor(1), "x")
    model.load_state_dict(found["state"])
    assert not any(v.requires_grad for v in found["state"].values())
    assert returned.result_of(returned.packed_result([1])) == [1]


def test_a_model_is_refused():
    import torch

    with pytest.raises(TypeError, match=r"torch\.nn\.modules\.linear\.Linear"):
        returned.packed_result({"model": torch.nn.Linear(1, 1)})
