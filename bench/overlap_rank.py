"""A rank of bench/overlap.py: steps of a net whose layers are products of matrices."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

# A rank computes on one core; its collective uses the rest of the machine.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from hearth.native import _core

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hosts"))

import rank

_LAYERS, _FLOATS, _WIDTH = 32, (2 << 20) // 4, 192


class Net:
    """Layers whose backward pass takes `products` matrix products each."""

    def __init__(self, group: _core.Group, timeout_s: float) -> None:
        self._group, self._timeout_s = group, timeout_s
        self._queue = _core.Queue(group, timeout_s)
        self._requests = []
        for layer in range(_LAYERS):
            request = _core.Request("all_reduce", np.ones(_FLOATS, dtype=np.float32))
            request.op, request.name = "mean", f"layer {layer}"
            self._requests.append(request)
        self._left = np.ones((_WIDTH, _WIDTH), dtype=np.float32)
        self._out = np.empty_like(self._left)
        self._products = 1
        self._layer_s = 0.0  # seconds of a layer on a device

    def calibrate(self) -> None:
        """Makes the backward pass take as long as the communication, on all ranks."""
        self.communication()
        goal = min(self.communication() for _ in range(2))
        self._layer_s = goal / 1e3 / _LAYERS
        for _ in range(3):
            taken = min(self.backward() for _ in range(2))
            ratio = np.array([goal / taken * self._products], dtype=np.float64)
            self._run(_core.Request("all_reduce", ratio), op="mean")
            self._products = max(1, round(float(ratio[0])))

    def step(self) -> float:
        """Milliseconds of a backward pass with all-reduces of its gradients."""
        return self._step(self._layer)

    def backward(self) -> float:
        """Milliseconds of a backward pass without communication."""
        return self._backward(self._layer)

    def device_step(self) -> float:
        """The same for a backward pass on a device, for which this thread only waits."""
        return self._step(self._device_layer)

    def device_backward(self) -> float:
        """A backward pass without communication."""
        return self._backward(self._device_layer)

    def communication(self) -> float:
        """Milliseconds of the all-reduces without computation."""
        begun = self._begin()
        for handle in [self._queue.submit(request) for request in self._requests]:
            handle.wait(self._timeout_s)
        return (time.perf_counter() - begun) * 1e3

    def _step(self, layer: Callable[[], object]) -> float:
        begun, handles = self._begin(), []
        for request in self._requests:
            layer()
            handles.append(self._queue.submit(request))
        for handle in handles:
            handle.wait(self._timeout_s)
        return (time.perf_counter() - begun) * 1e3

    def _backward(self, layer: Callable[[], object]) -> float:
        begun = self._begin()
        for _ in self._requests:
            layer()
        return (time.perf_counter() - begun) * 1e3

    def _device_layer(self) -> None:
        time.sleep(self._layer_s)

    def _begin(self) -> float:
        self._run(_core.Request("barrier"))
        return time.perf_counter()

    def _run(self, request: _core.Request, **how: str) -> None:
        for name, value in how.items():
            setattr(request, name, value)
        self._queue.submit(request).wait(self._timeout_s)

    def _layer(self) -> None:
        for _ in range(self._products):
            np.dot(self._left, self._left, out=self._out)


def steps(group: _core.Group, timeout_s: float) -> dict[str, object]:
    """For each input line {"what"} prints how long that took; ends with its input."""
    net = Net(group, timeout_s)
    for line in sys.stdin:
        rank.say(ms=getattr(net, json.loads(line)["what"])() or 0.0)
    return {}


if __name__ == "__main__":
    rank.main({"steps": steps})
