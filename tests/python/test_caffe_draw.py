"""caffe.draw: `hearth draw` under pycaffe's names."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hearth import caffe
from hearth.caffe import layers as L
from hearth.caffe.message import Message


def net() -> Message:
    n = caffe.NetSpec()
    n.data, n.label = L.Data(
        batch_size=64, source="db", ntop=2, include=dict(phase=caffe.TRAIN), name="data"
    )
    n.conv = L.Convolution(
        n.data, kernel_size=3, num_output=20, param=[dict(lr_mult=1), dict(lr_mult=2)]
    )
    n.pool = L.Pooling(n.conv, kernel_size=2, stride=2, pool=caffe.params.Pooling.AVE)
    n.ip = L.InnerProduct(n.pool, num_output=10, param=dict(lr_mult=3))
    n.relu = L.ReLU(n.ip, in_place=True)
    return n.to_proto()


def as_protobuf(message: Message) -> object:
    text_format = pytest.importorskip("google.protobuf.text_format")
    return text_format.Merge(str(message), caffe.proto.caffe_pb2.NetParameter())


@pytest.mark.parametrize("kind", [lambda message: message, as_protobuf], ids=["light", "protobuf"])
def test_labels_match_the_drawing(kind) -> None:
    data, conv, pool, ip, relu = kind(net()).layer
    assert caffe.draw.get_layer_label(pool, "TB") == ("pool (AVE Pooling) kernel 2 stride 2 pad 0")
    assert caffe.draw.get_layer_label(conv, "LR", display_lrm=True) == (
        "conv\n(Convolution)\nkernel 3 stride 1 pad 0\nlr mult 1, 2"
    )
    edges = [caffe.draw.get_edge_label(layer) for layer in (data, conv, ip, relu)]
    assert edges == ["batch 64", "20", "10", ""]
    assert caffe.draw.get_layer_lr_mult(conv) == (1, 2)
    assert caffe.draw.get_layer_lr_mult(ip) == (3, 1)
    with pytest.raises(ValueError, match="Pooling"):
        caffe.draw.get_layer_lr_mult(pool)


def test_colors_and_kinds_of_pooling() -> None:
    colors = {caffe.draw.choose_color_by_layertype(t) for t in ("Convolution", "Pooling", "ReLU")}
    assert len(colors) == 3
    assert caffe.draw.get_pooling_types_dict() == {0: "MAX", 1: "AVE", 2: "STOCHASTIC"}


def test_the_graph_is_pydots_of_the_same_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = SimpleNamespace(graph_from_dot_data=lambda text: [text])
    monkeypatch.setitem(sys.modules, "pydot", read)
    graph = caffe.draw.get_pydot_graph(net(), "LR")
    caffe.draw.draw_net_to_file(net(), tmp_path / "net.dot", "LR")
    assert graph == (tmp_path / "net.dot").read_text()
    assert 'label="batch 64"' in graph
    bare = caffe.draw.get_pydot_graph(net(), "TB", False, caffe.TEST, display_lrm=True)
    assert 'label="20"' not in bare
    assert "(Data)" not in bare  # the layer is only in phase TRAIN
    assert "lr mult 1, 2" in bare


def test_without_pydot_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(ImportError, match=r"pip install pydot; draw_net_to_file works without it"):
        caffe.draw.get_pydot_graph(net(), "LR")
