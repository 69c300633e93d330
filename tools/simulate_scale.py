#!/usr/bin/env python3
"""Predicts all-reduce and step times of 8 to 1,000 ranks from measurements with few ranks.

`tools/simulate_scale.py` compares the model with measurements, exits with 1 if a row that
counts is off by more than 20 %, and prints the tables that docs/scale.md sums up; `--plot
docs/scale.png` draws them. `bench/scale.py` measures; tools/scale_model.py has the arithmetic.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import scale_model as model

_MEASURED = Path(__file__).resolve().parents[1] / "docs" / "scale.json"
RANKS = (8, 16, 32, 64, 128, 256, 512, 1000)
# Gbit/s and latency (in seconds) of networks in a data centre.
NETWORKS = {"1 Gbit/s": (1, 50e-6), "10 Gbit/s": (10, 30e-6), "100 Gbit/s": (100, 15e-6)}
SIZES = {"4 KB": 4 << 10, "256 KB": 256 << 10, "4 MB": 4 << 20, "64 MB": 64 << 20}
PER_HOST = 8
# Bytes of float32 parameters, and the time of a minibatch on 8 cores or a GPU, both rounded.
STEPS = {
    "CaffeNet, 1 s": model.Step(244e6, 1.0, bucket_bytes=4 << 20),
    "ResNet-50, 0.2 s": model.Step(102e6, 0.2, bucket_bytes=4 << 20),
    "LeNet, 5 ms": model.Step(1.7e6, 0.005, bucket_bytes=1 << 20),
}
LIMIT = 0.2
_LINK_BOUND = 256 << 10


def check(constants: model.Constants, rows: list[dict[str, float]]) -> list[tuple[str, float]]:
    """Returns (row, predicted / measured) for each measured all-reduce that the links limit.

    Smaller ones are printed only: their times depend on how this machine's scheduler handles more
    ranks than cores.
    """
    found = []
    for row in rows:
        hosts, per_host = int(row["hosts"]), int(row["per_host"])
        predicted = model.hierarchical(constants, hosts, per_host, row["bytes"])
        name, took = f"{hosts} x {per_host}, {_size(row['bytes'])}", row["seconds"]
        print(f"| {name} | {took * 1e3:.3g} | {predicted * 1e3:.3g} | {predicted / took:.2f} |")
        if row["bytes"] >= _LINK_BOUND and hosts > 1:
            found.append((name, predicted / took))
    return found


def print_tables(constants: model.Constants) -> None:
    """All-reduce by algorithm, and steps, for each network."""
    for network, terms in NETWORKS.items():
        of = model.on_own_cores(constants, *terms)
        for size, count in SIZES.items():
            print(f"\n{size} over {network}, ms:\n\n| algorithm |{_columns()}")
            for name, algorithm in model.ALGORITHMS.items():
                print(_line(name, [algorithm(of, n, count) * 1e3 for n in RANKS]))
            hosts = [model.hierarchical(of, n // PER_HOST, PER_HOST, count) * 1e3 for n in RANKS]
            print(_line(f"{PER_HOST} ranks a host", hosts))
    for network, terms in NETWORKS.items():
        of = model.on_own_cores(constants, *terms)
        print(f"\nSteps over {network}: the share of the time that one rank alone needs\n")
        print(f"| net |{_columns()}")
        for name, step in STEPS.items():
            alone = step.seconds(of, 1)
            print(_line(name, [alone / step.seconds(of, n) for n in RANKS]))
    print("\n| |" + _columns())
    of = model.on_own_cores(constants, 10, 30e-6)
    print(_line("connecting, s", [model.connect(of, n) for n in RANKS]))


def draw(constants: model.Constants, rows: list[dict[str, float]], path: Path) -> None:
    """Plots all-reduce of 4 MB and 4 KB, measured and predicted, and the model at 10 Gbit/s."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    few = range(2, 65)
    for number, size in enumerate(sorted({int(row["bytes"]) for row in rows})):
        alike = [row for row in rows if row["bytes"] == size and row["per_host"] == 1]
        line = [model.chosen(constants, n, size) * 1e3 for n in few]
        left.plot(few, line, color=f"C{number}", label=f"{_size(size)}, model")
        hosts, took = zip(*((row["hosts"], row["seconds"] * 1e3) for row in alike), strict=True)
        left.plot(hosts, took, "o", color=f"C{number}", label=f"{_size(size)}, measured")
    left.set(title="Emulated hosts on one machine, 200 Mbit/s", xlabel="ranks", ylabel="ms")
    of = model.on_own_cores(constants, 10, 30e-6)
    for name, algorithm in model.ALGORITHMS.items():
        style = "k--" if name == "chosen" else "-"
        line = [algorithm(of, n, SIZES["4 MB"]) * 1e3 for n in RANKS]
        right.plot(RANKS, line, style, label=name)
    hosts = [model.hierarchical(of, n // PER_HOST, PER_HOST, SIZES["4 MB"]) * 1e3 for n in RANKS]
    right.plot(RANKS, hosts, label=f"{PER_HOST} ranks a host")
    right.set(title="Model: 4 MB at 10 Gbit/s, a core for each rank", xlabel="ranks", ylabel="ms")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(RANKS if axes is right else (2, 4, 8, 16, 32, 64))
        axes.minorticks_off()
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=110)


def _size(count: float) -> str:
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"


def _columns() -> str:
    return "".join(f" {n} |" for n in RANKS) + "\n|---|" + "--:|" * len(RANKS)


def _line(name: str, values: list[float]) -> str:
    return f"| {name} |" + "".join(f" {value:.3g} |" for value in values)


def main() -> int:
    """Prints and draws; returns 1 if the check fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measured", type=Path, default=_MEASURED, help="output of bench/scale.py")
    parser.add_argument("--plot", type=Path, help="file to draw to")
    options = parser.parse_args()
    measured = json.loads(options.measured.read_text())
    constants = model.Constants(**measured["constants"])
    print(
        "| hosts x ranks, array | measured, ms | model, ms | model / measured |\n|---|--:|--:|--:|"
    )
    found = check(constants, measured["measured"])
    print_tables(constants)
    if options.plot:
        draw(constants, measured["measured"], options.plot)
    wrong = [name for name, ratio in found if abs(ratio - 1) > LIMIT]
    if wrong:
        print(f"off by more than {LIMIT:.0%}: {'; '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
