"""Time of each layer in a train step of the Caffe engine, against its bound on this machine.

The bound is the larger of two times: that of the layer's floating-point operations at the speed of
the engine's product of large matrices, and that of reading and writing the minimum of bytes at the
speed of the engine's element-wise layers on arrays of 8 MB. Times are the best of all steps, in ms;
the last lines are the update of the weights and the whole step.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine import NETS, our_solver

RATES = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2048 dim: 2048 } } }
layer { name: "product" type: "InnerProduct" bottom: "data" top: "product"
        inner_product_param { num_output: 2048 bias_term: false } }
layer { name: "array" type: "Input" top: "array" input_param { shape { dim: 2 dim: 1048576 } } }
layer { name: "copy" type: "ReLU" bottom: "array" top: "copy" }
"""


def best_seconds(call: Callable[[], object], rounds: int = 10) -> float:
    def once() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    once()
    return min(once() for _ in range(rounds))


@dataclass
class Rates:
    """Peak rates of the machine: operations and bytes per ms."""

    operations: float
    bytes: float

    @staticmethod
    def measure() -> Rates:
        from hearth.native import _caffe

        net = _caffe.Net(RATES, "TRAIN")
        net.blobs["data"].data[...] = 1
        net.forward()
        product, copy = (net.layer_names.index(name) for name in ("product", "copy"))
        product_ms = 1000 * best_seconds(lambda: net.forward(product, product))
        copy_ms = 1000 * best_seconds(lambda: net.forward(copy, copy))
        return Rates(2 * 2048**3 / product_ms, 2 * 4 * 2 * 2**20 / copy_ms)


@dataclass
class Work:
    """The operations and bytes of one direction of a layer."""

    operations: float = 0
    bytes: float = 0

    def bound(self, rates: Rates) -> float:
        return max(self.operations / rates.operations, self.bytes / rates.bytes)


@dataclass
class Row:
    name: str
    type: str
    forward: Work
    backward: Work
    times: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: math.inf))


def products_per_weight(layer: dict[str, Any], net: Any) -> int:
    """Number of uses of each weight in a forward pass."""
    bottom, top = (net.blobs[layer[side][0]].shape for side in ("bottoms", "tops"))
    if layer["type"] == "Convolution":
        return top[0] * math.prod(top[2:])
    if layer["type"] in ("LSTM", "RNN"):
        return bottom[0] * bottom[1]
    return bottom[0]


def row_of(layer: dict[str, Any], net: Any) -> Row:
    """The minimal work: every array once, and in place only if the layer is in place."""
    count = lambda names: sum(math.prod(net.blobs[name].shape) for name in names)  # noqa: E731
    parameters = net.params.get(layer["name"], [])
    weights = sum(math.prod(blob.shape) for blob in parameters)
    matrices = sum(math.prod(blob.shape) for blob in parameters if len(blob.shape) > 1)
    uses = products_per_weight(layer, net) if matrices else 0
    bottoms, tops = count(layer["bottoms"]), count(layer["tops"])
    wanted = count(
        name
        for name, needed in zip(layer["bottoms"], layer["bottom_need_backward"], strict=True)
        if needed
    )
    forward = Work(2 * matrices * uses, 4 * (bottoms + tops + weights))
    backward = Work()
    if layer["need_backward"]:
        passes = (1 if matrices else 0) + (1 if matrices and wanted else 0)
        read = bottoms if matrices else 0
        backward = Work(passes * forward.operations, 4 * (tops + wanted + read + 2 * weights))
    return Row(layer["name"], layer["type"], forward, backward)


def measure(net_name: str, classes: int, precision: str, steps: int) -> tuple[list[Row], float]:
    """The rows of all layers, and the time of a whole step."""
    solver = our_solver(net_name, classes, precision)
    solver.step(1)
    net = solver.net
    rows = [row_of(layer, net) for layer in net.layers]
    begun = 0.0

    def begin(_: int) -> None:
        nonlocal begun
        begun = time.perf_counter()

    def end(direction: str) -> Callable[[int], None]:
        def note(index: int) -> None:
            times = rows[index].times
            times[direction] = min(times[direction], 1000 * (time.perf_counter() - begun))

        return note

    for direction in ("forward", "backward"):
        net.add_layer_callback(f"before_{direction}", begin)
        net.add_layer_callback(f"after_{direction}", end(direction))
    return rows, 1000 * best_seconds(lambda: solver.step(1), steps)


def print_table(rows: list[Row], step: float, rates: Rates) -> None:
    columns = ("ms", "bound", "share")
    print(f"{'layer':<28} {'type':<16}" + "".join(
        f" {direction + ' ' + column:>15}"
        for direction in ("forward", "backward") for column in columns
    ))  # fmt: skip
    total, bounds = 0.0, 0.0
    for row in rows:
        line = f"{row.name[:28]:<28} {row.type:<16}"
        for direction, work in (("forward", row.forward), ("backward", row.backward)):
            taken, bound = row.times[direction], work.bound(rates)
            total, bounds = total + taken, bounds + bound
            line += f" {taken:>15.3f} {bound:>15.3f} {bound / taken:>15.2f}"
        print(line)
    print(f"layers {total:.2f}, their bounds {bounds:.2f} ({bounds / total:.2f}); "
          f"update and rest {step - total:.2f}; step {step:.2f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="*", help="of examples/nets; default: those of engine.py")
    parser.add_argument("--precision", default="float32", choices=("float32", "bf16"))
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    rates = Rates.measure()
    print(f"{rates.operations / 1e6:.0f} GFLOP/s in products, {rates.bytes / 1e6:.1f} GB/s")
    for net, _, classes in NETS:
        if not options.nets or net in options.nets:
            print(f"\n{net}, {options.precision}")
            print_table(*measure(net, classes, options.precision, options.steps), rates)


if __name__ == "__main__":
    main()
