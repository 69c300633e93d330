"""Draws nets: pycaffe's names for hearth.tools.draw_net."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from hearth.caffe import proto
from hearth.caffe.modes import phase_name
from hearth.errors import invalid
from hearth.native._core import message_schema
from hearth.tools import draw_net as _draw_net

__all__ = [
    "choose_color_by_layertype",
    "draw_net",
    "draw_net_to_file",
    "get_edge_label",
    "get_layer_label",
    "get_layer_lr_mult",
    "get_pooling_types_dict",
    "get_pydot_graph",
]


def __getattr__(name: str) -> Any:
    # Imports caffe.draw.caffe_pb2 on first access, because that module needs protobuf.
    if name == "caffe_pb2":
        return proto.caffe_pb2
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _read(caffe_net: Any, phase: int | None) -> dict[str, Any]:
    return _draw_net.read_net(str(caffe_net), "ALL" if phase is None else phase_name(phase))


def _layer(layer: Any) -> dict[str, Any]:
    """The fields of one LayerParameter."""
    lines = "".join(f"  {line}\n" for line in str(layer).splitlines())
    return _draw_net.read_net(f"layer {{\n{lines}}}")["layer"][0]


def get_pydot_graph(
    caffe_net: Any,
    rankdir: str,
    label_edges: bool = True,
    phase: int | None = None,
    display_lrm: bool = False,
) -> Any:
    """Returns the graph that draw_net_to_file draws, as a pydot.Dot to modify or to write.

    Args:
        caffe_net, rankdir, phase, display_lrm: see draw_net_to_file.
        label_edges: write outputs and batch sizes on the edges.

    Raises:
        ImportError: pydot is not installed; the other functions do not need it.
        ValueError: `caffe_net` is not a net.
    """
    try:
        import pydot
    except ImportError:
        raise ImportError(
            "get_pydot_graph needs pydot: pip install pydot; draw_net_to_file works without it"
        ) from None
    dot = _draw_net.to_dot(_read(caffe_net, phase), rankdir, label_edges, display_lrm)
    (graph,) = pydot.graph_from_dot_data(dot)
    return graph


def get_pooling_types_dict() -> dict[int, str]:
    """The names of PoolingParameter's pooling methods by number."""
    methods = message_schema()["enums"]["PoolingParameter.PoolMethod"]
    return {number: name for name, number in methods.items()}


def get_edge_label(layer: Any) -> str:
    """The label on edges to a layer's tops: the number of outputs, or a data layer's batch size."""
    return _draw_net.edge_label(_layer(layer))


def get_layer_lr_mult(layer: Any) -> tuple[float, float]:
    """The lr_mult of weights and bias.

    Raises:
        ValueError: the layer is not a Convolution, Deconvolution or InnerProduct layer.
    """
    if layer.type not in ("Convolution", "Deconvolution", "InnerProduct"):
        raise invalid(f"layers of type {layer.type} have no weights and bias")
    weights, bias, *_ = [*(param.lr_mult for param in layer.param), 1.0, 1.0]
    return weights, bias


def get_layer_label(layer: Any, rankdir: str, display_lrm: bool = False) -> str:
    """The text in a layer's box: name, type and, if it has one, its window."""
    return _draw_net.box_text(_layer(layer), rankdir, display_lrm)


def choose_color_by_layertype(layertype: str) -> str:
    """The color of a layer type's boxes, as #rrggbb."""
    return _draw_net.color_of_type(layertype)


def draw_net_to_file(
    caffe_net: Any,
    filename: str | os.PathLike[str],
    rankdir: str = "LR",
    phase: int | None = None,
    display_lrm: bool = False,
) -> None:
    """Draws the net to a file, whose suffix selects the format (.svg, .png, .dot, ...).

    Args:
        caffe_net: an object whose `str()` is prototxt: NetSpec().to_proto() or a
            caffe_pb2.NetParameter.
        filename: the image.
        rankdir: LR, TB, BT or RL.
        phase: caffe.TRAIN or caffe.TEST for the layers of that phase; None for all.
        display_lrm: show each lr_mult in the layer's box.

    Raises:
        FileNotFoundError: Graphviz is not installed.
        ValueError: `caffe_net` is not a net, or Graphviz cannot write the format.
    """
    dot = _draw_net.to_dot(_read(caffe_net, phase), rankdir, display_lr=display_lrm)
    _draw_net.write_image(dot, os.fspath(filename))


def draw_net(
    caffe_net: Any,
    rankdir: str,
    ext: str = "png",
    phase: int | None = None,
    display_lrm: bool = False,
) -> bytes:
    """Returns the image that draw_net_to_file writes, in the format `ext`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"net.{ext}"
        draw_net_to_file(caffe_net, file, rankdir, phase, display_lrm)
        return file.read_bytes()
