"""Nets as pictures: pycaffe's names for hearth.draw."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from hearth import draw as _draw
from hearth.caffe.modes import phase_name

__all__ = ["draw_net", "draw_net_to_file"]


def draw_net_to_file(
    caffe_net: Any,
    filename: str | os.PathLike[str],
    rankdir: str = "LR",
    phase: int | None = None,
    display_lrm: bool = False,
) -> None:
    """Writes the net as a picture; the file's ending chooses the format (.svg, .png, .dot, ...).

    Args:
        caffe_net: what `str()` gives as prototxt: NetSpec().to_proto() or a caffe_pb2.NetParameter.
        filename: the picture.
        rankdir: LR, TB, BT or RL.
        phase: caffe.TRAIN or caffe.TEST for the layers of that phase; None for all of them.
        display_lrm: write the lr_mult in the layers' boxes.

    Raises:
        FileNotFoundError: Graphviz is not installed.
        ValueError: it is no net, or Graphviz cannot write such a picture.
    """
    net = _draw.read_net(str(caffe_net), "ALL" if phase is None else phase_name(phase))
    _draw.write_picture(_draw.to_dot(net, rankdir, display_lr=display_lrm), os.fspath(filename))


def draw_net(
    caffe_net: Any,
    rankdir: str,
    ext: str = "png",
    phase: int | None = None,
    display_lrm: bool = False,
) -> bytes:
    """The picture that draw_net_to_file writes, in the format `ext`."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / f"net.{ext}"
        draw_net_to_file(caffe_net, picture, rankdir, phase, display_lrm)
        return picture.read_bytes()
