"""caffe.NetSpec: nets written in Python become prototxt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hearth import caffe
from hearth.caffe import layers as L
from hearth.caffe import params as P
from hearth.caffe.message import Message


def lenet(batch_size: int) -> Message:
    n = caffe.NetSpec()
    n.data, n.label = L.DummyData(
        shape=[dict(dim=[batch_size, 1, 28, 28]), dict(dim=[batch_size])],
        transform_param=dict(scale=1.0 / 255),
        ntop=2,
    )
    xavier = dict(type="xavier")
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler=xavier)
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.ip1 = L.InnerProduct(
        n.pool1, num_output=10, weight_filler=xavier, param=[dict(lr_mult=1), dict(lr_mult=2.5)]
    )
    n.relu1 = L.ReLU(n.ip1, in_place=True)
    n.loss = L.SoftmaxWithLoss(n.relu1, n.label, loss_param=dict(normalization=P.Loss.BATCH_SIZE))
    return n.to_proto()


def test_net_is_written_as_prototxt() -> None:
    text = str(lenet(50))
    assert text.startswith('layer {\n  name: "data"\n  type: "DummyData"\n  top: "data"\n')
    for line in ('top: "label"', "dim: 50", "kernel_size: 5", "pool: MAX", "lr_mult: 2.5",
                 "normalization: BATCH_SIZE"):  # fmt: skip
        assert line in text
    assert caffe.net_spec.Message.from_text("NetParameter", text) == lenet(50)


def test_a_written_net_runs(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(str(lenet(3)))
    net = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TRAIN)
    assert net.blobs["conv1"].data.shape == (3, 20, 24, 24)
    np.testing.assert_allclose(net.forward()["loss"], np.log(10), rtol=1e-5)


def test_layers_are_connected_by_their_tops() -> None:
    proto = lenet(1)
    names = [layer.name for layer in proto.layer]
    assert names == ["data", "conv1", "pool1", "ip1", "relu1", "loss"]
    assert list(proto.layer[2].bottom) == list(proto.layer[1].top) == ["conv1"]
    assert list(proto.layer[4].top) == ["ip1"]  # works in place
    assert list(proto.layer[5].bottom) == ["ip1", "label"]
    assert proto.layer[2].pooling_param.pool == 0
    assert proto.layer[1].convolution_param.bias_term  # the default


def test_missing_names_are_generated() -> None:
    data = L.DummyData(shape=dict(dim=[1, 2]))
    proto = caffe.to_proto(L.ReLU(L.InnerProduct(L.InnerProduct(data, num_output=1), num_output=2)))
    assert [layer.name for layer in proto.layer] == [
        "DummyData1", "InnerProduct1", "InnerProduct2", "ReLU1",
    ]  # fmt: skip
    assert L.ReLU(data).to_proto().layer[1].type == "ReLU"


def test_layers_without_tops_and_with_their_own_name() -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 2]), name="given")
    n.silence = L.Silence(n.data, ntop=0)
    n["twice"] = L.Power(n.data, power_param=dict(scale=2), loss_weight=3)
    assert [layer.name for layer in n.to_proto().layer] == ["given", "silence", "twice"]
    assert list(n.to_proto().layer[2].loss_weight) == [3]
    assert n.keys() == list(n) == ["data", "silence", "twice"]
    assert n.vals() == [n.data, n.silence, n.twice]
    n.update("twice", dict(loss_weight=5))
    assert list(n.to_proto().layer[2].loss_weight) == [5]
    assert "twice" in n and n["twice"] is n.twice
    del n.twice
    with pytest.raises(AttributeError, match="no top 'twice'"):
        n.twice  # noqa: B018


def test_python_layers_take_text() -> None:
    top = L.Python(L.Input(shape=dict(dim=[1])), module="m", layer="My", param_str='a "b"\n')
    assert '    param_str: "a \\"b\\"\\012"' in str(top.to_proto())
    assert Message.from_text("NetParameter", str(top.to_proto())) == top.to_proto()


def test_include_rules_and_enums_by_number() -> None:
    top = L.Input(shape=dict(dim=[1]), include=dict(phase=caffe.TEST))
    assert "include {\n    phase: TEST\n  }" in str(top.to_proto())
    assert P.Data.LMDB == 1
    with pytest.raises(AttributeError, match="PoolingParameter has no enum value 'MEAN'"):
        P.Pooling.MEAN  # noqa: B018


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda d: L.Convolution(d, num_outputt=1), AttributeError, "did you mean 'num_output'"),
        (lambda d: L.Convolution(d, num_output="a"), TypeError, "'num_output' expects uint32"),
        (lambda d: L.Convolution(d, num_output=-1), ValueError, "negative"),
        (lambda d: L.Convolution(d, num_output=1.5), TypeError, "num_output"),
        (lambda d: L.Pooling(d, pool="MAXX"), ValueError, "did you mean 'MAX'"),
        (lambda d: L.Pooling(d, pool=7), ValueError, "field 'pool'"),
    ],
)
def test_wrong_parameters_are_named(make, error, said) -> None:
    with pytest.raises(error, match=said):
        make(L.Input(shape=dict(dim=[1]))).to_proto()


def test_an_input_that_is_not_a_top_is_a_type_error() -> None:
    tops = L.DummyData(shape=[dict(dim=[1])], ntop=2)
    said = r"^Silence input 0 is not a Top \(type is <class 'tuple'>\)$"
    with pytest.raises(TypeError, match=said):
        L.Silence(tops, ntop=0)


def test_net_spec_needs_no_protobuf() -> None:
    code = (
        "import sys; sys.modules['google'] = sys.modules['google.protobuf'] = None\n"
        "import caffe\n"
        "print(caffe.layers.Input(shape=dict(dim=[1, 2])).to_proto())\n"
        "try: caffe.proto.caffe_pb2\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'type: "Input"' in done.stdout
    assert "caffe_pb2 needs the protobuf package" in done.stdout


def test_helpers_of_pycaffes_module() -> None:
    assert caffe.net_spec.param_name_dict()["InnerProduct"] == "inner_product"
    layer = Message("LayerParameter")
    caffe.net_spec.assign_proto(layer, "include", dict(phase=0, stage="a"))
    assert str(layer) == 'include {\n  phase: TRAIN\n  stage: "a"\n}\n'


def test_messages_are_edited_as_protobufs_are() -> None:
    net = Message("NetParameter", name="a")
    net.layer.add(name="one", type="ReLU").relu_param.negative_slope = 0.5
    net.layer.extend([Message("LayerParameter", name="two")])
    assert not net.HasField("state")
    assert net.state.level == 0  # reading does not set the field
    assert not net.HasField("state")
    copy = Message("NetParameter")
    copy.CopyFrom(net)
    copy.layer[0].name = "changed"
    assert net.layer[0].name == "one"
    net.MergeFrom(copy)
    assert [layer.name for layer in net.layer] == ["one", "two", "changed", "two"]
    net.ClearField("layer")
    assert str(net) == 'name: "a"\n'
    with pytest.raises(AttributeError, match="did you mean 'layer'"):
        net.layr  # noqa: B018
    with pytest.raises(TypeError, match="field 'name' expects string"):
        net.name = 3
    with pytest.raises(TypeError, match="field 'input' is repeated"):
        net.input = "data"
    with pytest.raises(ValueError, match="prototxt:1:"):
        Message.from_text("NetParameter", "nme: 'x'")


def test_text_of_numbers_reads_back_exactly() -> None:
    values = dict(base_lr=0.1, power=1e-30, momentum=np.float32(1) / 3, random_seed=2**40)
    solver = Message("SolverParameter", **values, test_iter=(1, 2), test_initialization=np.False_)
    back = Message.from_text("SolverParameter", str(solver))
    assert back.base_lr == solver.base_lr == np.float32(0.1)
    assert "base_lr: 0.1\n" in str(solver)
    assert np.float32(back.momentum) == values["momentum"]
    assert back.random_seed == 2**40
    assert list(back.test_iter) == [1, 2]
    assert back.test_initialization is False
