"""Solvers with data written into their blobs, as for the computation of the reference arrays."""

from __future__ import annotations

import itertools

import numpy as np

from hearth.native import _caffe


def set_params(net: _caffe.Net, arrays: dict[str, np.ndarray], prefix: str) -> None:
    """Sets the parameters from the arrays below `prefix`, which ends with a slash."""
    for key, value in arrays.items():
        if key.startswith(prefix):
            layer, index = key.removeprefix(prefix).split("/")
            net.params[layer][int(index)].data[...] = value


def fed_solver(prototxt: str, arrays: dict[str, np.ndarray], start: int = 0) -> _caffe.Solver:
    """A solver whose forward pass j (counted from `start`) reads entry j of each feed array."""
    feeds = {
        key.removeprefix("feed/"): value for key, value in arrays.items() if key.startswith("feed/")
    }
    passes = itertools.count(start)

    def fill_inputs(net: _caffe.Net) -> None:
        number = next(passes)
        for name, entries in feeds.items():
            net.blobs[name].data[...] = entries[number % len(entries)]

    return _caffe.Solver(prototxt, before_forward=fill_inputs)
