"""Published deploy nets, and solvers that contain their nets."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from program import messages, run
from published_nets import net_text

from hearth.native import _caffe

pytestmark = pytest.mark.slow

# The last layer before the classes, and a blob whose size depends on Caffe's rounding up.
DEPLOYED = {
    "alexnet": ("fc8", "pool5", (1, 256, 6, 6)),
    "caffenet": ("fc8", "pool5", (1, 256, 6, 6)),
    "googlenet": ("loss3/classifier", "inception_5b/output", (1, 1024, 7, 7)),
}
_LAYER = re.compile(r"(?ms)^layer \{\n.*?^\}\n")

CONSOLIDATED = """
test_iter: 3 test_state { stage: "small" }
test_iter: 2 test_state { stage: "large" }
test_interval: 5 base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" max_iter: 10 random_seed: 1701
snapshot_after_train: false solver_mode: CPU
net_param {
  name: "one_file"
  layers { name: "rows" type: DUMMY_DATA top: "x" top: "t" include { phase: TRAIN }
    dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
      data_filler { value: 1 } data_filler { value: 2 } } }
  layers { name: "rows" type: DUMMY_DATA top: "x" top: "t" include { phase: TEST stage: "small" }
    dummy_data_param { shape { dim: 5 dim: 3 } shape { dim: 5 dim: 2 }
      data_filler { value: 1 } data_filler { value: 2 } } }
  layers { name: "rows" type: DUMMY_DATA top: "x" top: "t" include { phase: TEST stage: "large" }
    dummy_data_param { shape { dim: 9 dim: 3 } shape { dim: 9 dim: 2 }
      data_filler { value: 1 } data_filler { value: 2 } } }
  layers { name: "ip" type: INNER_PRODUCT bottom: "x" top: "y" blobs_lr: 1 blobs_lr: 2
    weight_decay: 1 weight_decay: 0
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layers { name: "loss" type: EUCLIDEAN_LOSS bottom: "y" bottom: "t" top: "loss" }
}
"""


def deployed(name: str, classes: str) -> str:
    """The net with a Softmax of the classes instead of the label and the layers that read it."""

    def stays(layer: str) -> bool:
        return not re.search(r'type: "(SoftmaxWithLoss|Accuracy)"|name: "label"', layer)

    text = "".join(filter(stays, _LAYER.findall(net_text(name, 1, {}))))
    return f'{text}layer {{ name: "prob" type: "Softmax" bottom: "{classes}" top: "prob" }}\n'


@pytest.mark.parametrize("name", DEPLOYED)
def test_a03_deployed_nets_give_probabilities_and_have_caffes_sizes(name: str) -> None:
    classes, rounded, shape = DEPLOYED[name]
    net = _caffe.Net(deployed(name, classes), "TEST")
    net.blobs["data"].data[...] = np.random.default_rng(1).uniform(
        -100, 100, net.blobs["data"].data.shape
    )
    net.forward()
    assert net.blobs[rounded].data.shape == shape
    prob = net.blobs["prob"].data
    assert prob.shape == (1, 1000)
    np.testing.assert_allclose(prob.sum(axis=1), 1, rtol=1e-5)
    assert prob.min() >= 0


def test_a02_a_solver_with_old_layers_in_it_has_both_test_nets(tmp_path: Path) -> None:
    (tmp_path / "one_file.prototxt").write_text(CONSOLIDATED)
    solver = _caffe.Solver(CONSOLIDATED)
    assert solver.net.blobs["x"].data.shape == (4, 3)
    assert [net.blobs["x"].data.shape for net in solver.test_nets] == [(5, 3), (9, 3)]
    log = messages(run("train", "-solver", "one_file.prototxt", cwd=tmp_path))
    tests = [line for line in log if "Testing net" in line]
    assert tests == [f"Iteration {i}, Testing net (#{net})" for i in (0, 5, 10) for net in (0, 1)]
    assert "Optimization Done." in log
