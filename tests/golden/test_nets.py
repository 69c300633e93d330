"""Every net that was run with BVLC Caffe: values, gradients, parameters, structure."""

from __future__ import annotations

import numpy as np
import pytest
from golden import Case, cases, computed_on  # noqa: F401 (a fixture)

from hearth.native import _caffe

# Cases in which Caffe is wrong: what is not compared, and why.
DEFECTS = {
    # Caffe's in-place Power overwrites the gradient that it should multiply, and Sigmoid and Power
    # overwrite the values that ReLU's gradient needs. hearth/caffe/layers checks ours.
    "net_inplace_chain": {"diff/x", "diff/c", "paramdiff/c/0", "paramdiff/c/1"},
}

NETS = cases("net")

pytestmark = pytest.mark.usefixtures("computed_on")


def make_net(case: Case) -> _caffe.Net:
    """The case's net with the weights and arrays of Caffe's net before its first forward."""
    net = _caffe.Net(case["prototxt"], case["phase"])
    arrays = case.arrays()
    for key, value in arrays.items():
        if key.startswith("param/"):
            _, layer, index = key.split("/")
            net.params[layer][int(index)].data[...] = value
    if "memory/data" in arrays:
        net.set_input_arrays(arrays["memory/data"], arrays["memory/label"])
    return net


def set_inputs(net: _caffe.Net, step: dict[str, np.ndarray]) -> None:
    """Sets the shapes and values of the inputs for this step."""
    for key, value in step.items():
        if key.startswith("input/"):
            net.blobs[key.removeprefix("input/")].reshape(value.shape)
    net.reshape()
    for key, value in step.items():
        if key.startswith("input/"):
            net.blobs[key.removeprefix("input/")].data[...] = value


def compare(case: Case, net: _caffe.Net, step: dict[str, np.ndarray], prefix: str) -> None:
    """Compares the blobs (or parameters) of one kind with the arrays below `prefix`."""
    for key, expected in step.items():
        head, _, rest = key.partition("/")
        if head != prefix or key in DEFECTS.get(case.name, ()):
            continue
        if prefix == "data":
            got = net.blobs[rest].data
        elif prefix == "diff":
            got = net.blobs[rest].diff
        else:
            layer, index = rest.split("/")
            param = net.params[layer][int(index)]
            got = param.diff if prefix == "paramdiff" else param.data
        case.close(got, expected, key)


def run_step(case: Case, net: _caffe.Net, step: dict[str, np.ndarray]) -> None:
    """Runs one step of the README's procedure, and compares it with Caffe's results."""
    set_inputs(net, step)
    if not case.get("accumulate_param_diffs"):
        net.clear_param_diffs()
    case.close(np.float32(net.forward()), step["loss"], "loss")
    compare(case, net, step, "data")
    if not case["backward"]:
        return
    for key, value in step.items():
        if key.startswith("topdiff/"):
            net.blobs[key.removeprefix("topdiff/")].diff[...] = value
    net.backward()
    for prefix in ("diff", "paramdiff", "param_after"):
        compare(case, net, step, prefix)


@pytest.mark.parametrize("case", NETS, ids=lambda case: case.name)
def test_a_net_computes_the_values_of_caffe(case: Case) -> None:
    if case.get("stochastic"):
        pytest.skip("depends on Caffe's random numbers; see test_dropout_keeps_its_promises")
    net = make_net(case)
    arrays = case.arrays()
    for step in range(case["steps"]):
        prefix = f"step{step}/" if case["steps"] > 1 else ""
        of_step = {
            key.removeprefix(prefix): value for key, value in arrays.items()
            if key.startswith(prefix)
        }  # fmt: skip
        run_step(case, net, of_step)


@pytest.mark.parametrize("case", NETS, ids=lambda case: case.name)
def test_net_is_built_as_caffe_built_it(case: Case) -> None:
    net = make_net(case)
    assert list(net.layer_names) == [layer["name"] for layer in case["net_layers"]]
    assert list(net.outputs) == case["outputs"]


def test_dropout_keeps_its_promises() -> None:
    case = next(case for case in NETS if case.name == "dropout_train")
    net = make_net(case)
    step = case.arrays()
    set_inputs(net, step)
    net.forward()
    x, y = step["input/x"], net.blobs["y"].data
    kept = y != 0
    np.testing.assert_allclose(y[kept], x[kept] / 0.75, rtol=1e-6)
    assert 0.15 < 1 - kept.mean() < 0.35
    net.blobs["y"].diff[...] = step["topdiff/y"]
    net.backward()
    expected = np.where(kept, step["topdiff/y"] / 0.75, 0)
    np.testing.assert_allclose(net.blobs["x"].diff, expected, rtol=1e-6)


def test_every_type_of_the_cases_is_registered() -> None:
    needed = set().union(*(case.types for case in cases("net", "net_files")))
    assert needed <= set(_caffe.layer_types())
