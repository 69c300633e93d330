"""tensorflow, torch and caffe in one process, in every order: nothing clashes."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

WORK = {
    "tensorflow": """
import tensorflow as tf
assert float(tf.reduce_sum(tf.matmul(tf.ones((2, 3)), tf.ones((3, 2))))) == 12
from tensorflow.core.framework import graph_pb2
assert graph_pb2.GraphDef.FromString(graph_pb2.GraphDef().SerializeToString()) is not None
""",
    "torch": """
import torch
assert float((torch.ones(2, 3) @ torch.ones(3, 2)).sum()) == 12
x = torch.ones(3, requires_grad=True)
(x * x).sum().backward()
assert float(x.grad.sum()) == 6
""",
    "caffe": """
import tempfile
import caffe
from caffe import layers as L
from caffe.proto import caffe_pb2
from google.protobuf import text_format
n = caffe.NetSpec()
n.data = L.Input(shape=dict(dim=[2, 3]))
n.ip = L.InnerProduct(n.data, num_output=2, weight_filler=dict(type="constant", value=2))
text_format.Merge(str(n.to_proto()), caffe_pb2.NetParameter())
with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as file:
    print(n.to_proto(), file=file, flush=True)
    net = caffe.Net(file.name, caffe.TEST)
    net.blobs["data"].data[...] = 1
    assert float(net.forward()["ip"].sum()) == 24
    with tempfile.TemporaryDirectory() as folder:
        net.save(folder + "/w.caffemodel")
        model = open(folder + "/w.caffemodel", "rb").read()
assert len(caffe_pb2.NetParameter.FromString(model).layer) == 2
""",
}
MISSING = [name for name in ("tensorflow", "torch") if importlib.util.find_spec(name) is None]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.parametrize("order", list(itertools.permutations(WORK)), ids="_".join)
def test_modules_work_when_imported_in_any_order(order: tuple[str, ...]) -> None:
    # Every library works again after all of them are loaded.
    code = "\n".join([*(WORK[name] for name in order), *(WORK[name] for name in order)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
