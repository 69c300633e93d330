"""Draws a net as an image: layers as boxes, blobs as octagons, like Caffe's draw_net.

`hearth draw NET.prototxt OUT.svg` runs this module as a program.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hearth.errors import NotFoundError, invalid
from hearth.native._core import parse_prototxt

Layer = Mapping[str, Any]

RANKDIRS = ("LR", "TB", "BT", "RL")
PHASES = ("TRAIN", "TEST", "ALL")
_TIMEOUT_S = 300
_BLOB_COLOR = "#e8e8e8"
_IN_PLACE_COLOR = "#a8dba8"
_COLORS = {
    "Convolution": "#f7a8a8",
    "Deconvolution": "#f7a8a8",
    "Pooling": "#f9d08b",
    "InnerProduct": "#d3b5e5",
}
_LAYER_COLOR = "#9fc3f0"


def _axes(param: Mapping[str, Any], name: str, default: int) -> str:
    """A kernel size, stride or pad as text: one number, or height x width if they differ."""
    if f"{name}_h" in param or f"{name}_w" in param:
        return f"{param.get(f'{name}_h', default)}x{param.get(f'{name}_w', default)}"
    sizes = param.get("kernel_size" if name == "kernel" else name, default)
    values = sizes if isinstance(sizes, list) else [sizes]
    return "x".join(str(value) for value in values or [default])


def _window(param: Mapping[str, Any]) -> str:
    if param.get("global_pooling"):
        return "global"
    sizes = {"kernel": _axes(param, "kernel", 0), "stride": _axes(param, "stride", 1)}
    sizes["pad"] = _axes(param, "pad", 0)
    return " ".join(f"{name} {size}" for name, size in sizes.items())


def _multipliers(layer: Layer) -> str:
    return ", ".join(f"{spec.get('lr_mult', 1.0):g}" for spec in layer.get("param", []))


def layer_label(layer: Layer, display_lr: bool = False) -> list[str]:
    """The lines in a layer's box: its name, its type and, if it has one, its window."""
    kind = layer.get("type", "")
    lines = [layer.get("name", ""), f"({kind})"]
    if kind in ("Convolution", "Deconvolution"):
        lines.append(_window(layer.get("convolution_param", {})))
    elif kind == "Pooling":
        param = layer.get("pooling_param", {})
        lines[1] = f"({param.get('pool', 'MAX')} {kind})"
        lines.append(_window(param))
    if display_lr and _multipliers(layer):
        lines.append(f"lr mult {_multipliers(layer)}")
    return lines


def box_text(layer: Layer, rankdir: str, display_lr: bool = False) -> str:
    """The text in a layer's box: several lines in a horizontal net, one line in a vertical net."""
    return ("\n" if rankdir in ("LR", "RL") else " ").join(layer_label(layer, display_lr))


def edge_label(layer: Layer) -> str:
    """The label of the edges to a layer's tops: the number of outputs, or a data layer's batch
    size."""
    for param in ("convolution_param", "inner_product_param", "embed_param", "recurrent_param"):
        if "num_output" in layer.get(param, {}):
            return str(layer[param]["num_output"])
    for name, param in layer.items():
        if name.endswith("data_param") and "batch_size" in param:
            return f"batch {param['batch_size']}"
    return ""


def _quote(text: str) -> str:
    """DOT's string literal; line breaks are preserved in the image."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def color_of_type(kind: str) -> str:
    """The box color of a layer type that does not compute in place."""
    return _COLORS.get(kind, _LAYER_COLOR)


def _color(layer: Layer) -> str:
    in_place = layer.get("bottom", []) == layer.get("top", []) != []
    return _IN_PLACE_COLOR if in_place else color_of_type(layer.get("type", ""))


def to_dot(
    net: Mapping[str, Any],
    rankdir: str = "LR",
    label_edges: bool = True,
    display_lr: bool = False,
) -> str:
    """The net as text in Graphviz's DOT language.

    Args:
        net: the fields of a NetParameter in the current format, as parse_prototxt returns them.
        rankdir: direction: LR (left to right), TB (top to bottom), BT or RL.
        label_edges: label edges with outputs and batch sizes.
        display_lr: show each parameter's lr_mult in its layer's box.
    """
    lines = [f"digraph {_quote(net.get('name', '') or 'net')} {{", f"  rankdir={rankdir};"]
    lines.append('  node [style=filled, fontname="sans-serif"];')
    lines.append('  edge [fontname="sans-serif"];')
    blobs: dict[str, str] = {}

    def blob_node(name: str) -> str:
        if name not in blobs:
            blobs[name] = f"blob_{len(blobs)}"
            lines.append(
                f'  {blobs[name]} [label={_quote(name)}, shape=octagon, fillcolor="{_BLOB_COLOR}"];'
            )
        return blobs[name]

    for index, layer in enumerate(net.get("layer", [])):
        label = _quote(box_text(layer, rankdir, display_lr))
        lines.append(f'  layer_{index} [label={label}, shape=box, fillcolor="{_color(layer)}"];')
        for bottom in layer.get("bottom", []):
            lines.append(f"  {blob_node(bottom)} -> layer_{index};")
        said = edge_label(layer) if label_edges else ""
        for top in layer.get("top", []):
            lines.append(f"  layer_{index} -> {blob_node(top)} [label={_quote(said)}];")
    return "\n".join([*lines, "}", ""])


def read_net(prototxt: str, phase: str = "ALL") -> dict[str, Any]:
    """Parses a net in the current or an old format; returns the layers of one phase, or all layers.

    Raises:
        ValueError: the text is not a net.
    """
    from hearth.native import _caffe

    if phase == "ALL":
        text = _caffe.upgrade_net(prototxt)
    else:
        text = _caffe.filter_net(prototxt + f"\nstate {{ phase: {phase} }}\n")
    return parse_prototxt(text, "net", "NetParameter")


def write_image(dot: str, path: str) -> None:
    """Converts DOT text to an image in the format of the path's extension; `.dot` is the text
    itself.

    Raises:
        FileNotFoundError: Graphviz is not installed.
        ValueError: Graphviz does not support the format.
    """
    ending = Path(path).suffix.removeprefix(".")
    if ending in ("dot", "gv"):
        Path(path).write_text(dot)
        return
    try:
        done = subprocess.run(
            ["dot", f"-T{ending or 'svg'}", "-o", path],
            input=dot,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    except FileNotFoundError:
        raise NotFoundError(
            f"{path} needs Graphviz's `dot`, which is not installed (apt-get install graphviz); "
            "an output with the extension .dot does not need it"
        ) from None
    if done.returncode != 0:
        raise invalid(f"dot cannot write {path}: {done.stderr.strip()}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hearth draw", description=__doc__.splitlines()[0])
    parser.add_argument("net", help="net prototxt")
    parser.add_argument("output", help="image: .svg, .png, .pdf, or .dot")
    parser.add_argument("--rankdir", choices=RANKDIRS, default="LR", help="direction of the net")
    parser.add_argument(
        "--phase", choices=PHASES, default="ALL", help="phase of the layers to draw"
    )
    parser.add_argument("--display_lrm", action="store_true", help="show lr_mult in the boxes")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Prints an error in one line on stderr, and returns status 1."""
    options = _parser().parse_args(arguments)
    try:
        net = read_net(Path(options.net).read_text(), options.phase)
        dot = to_dot(net, options.rankdir, display_lr=options.display_lrm)
        write_image(dot, options.output)
    except (OSError, ValueError, RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"hearth draw: {error}", file=sys.stderr)
        return 1
    print(f"Drawing net to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
