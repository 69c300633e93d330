"""Layers written in Python (`type: "Python"`)."""

from __future__ import annotations

from collections.abc import Sequence

from hearth.errors import UnimplementedError
from hearth.native._caffe import Blob, BlobVec

__all__ = ["Layer"]


class Layer:
    """The base class of layers that run Python code.

    A prototxt names the class: `python_param { module: "my_layers" layer: "MyLayer" }`; the module
    is imported like any other (`__main__` works too). Bottoms and tops are lists of Blob, whose
    `data` and `diff` are NumPy views: write into them, do not replace them. If a method raises an
    exception, the net's call raises HearthError with the layer's name and the traceback.

    Attributes, set before `setup`:
        name, type: as in the prototxt.
        param_str: `python_param.param_str`, any text.
        phase: caffe.TRAIN or caffe.TEST.
        blobs: the layer's parameters; `blobs.add_blob(3, 4)` in `setup` adds one, of zeros.
    """

    name: str
    type: str
    param_str: str
    phase: int
    blobs: BlobVec

    def __init__(self, prototxt: str = "") -> None:
        """`prototxt`: the whole LayerParameter as text."""

    def setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """Called once: check the numbers of bottoms and tops, read `param_str`, add parameters."""

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """Called before each forward: `top[0].reshape(*shape)`."""
        raise UnimplementedError(f"{type(self).__name__} has no method reshape(bottom, top)")

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """Fills `top[i].data` from `bottom[i].data`."""
        raise UnimplementedError(f"{type(self).__name__} has no method forward(bottom, top)")

    def backward(
        self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]
    ) -> None:
        """Fills `bottom[i].diff` if `propagate_down[i]`, and adds to the parameters' diffs."""
        raise UnimplementedError(f"{type(self).__name__} has no method backward")
