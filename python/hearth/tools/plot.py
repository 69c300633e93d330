"""Draws the loss and the other outputs (accuracy) of training logs in Caffe's format.

`hearth plot LOG... -o OUT.svg` runs this module as a program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hearth.errors import invalid
from hearth.tools.parse_log import Row, TrainingLog, read_log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"iterations": "iteration", "seconds": "seconds"}

# A line of the plot: (label, x, y, whether it is of a test).
Curve = tuple[str, list[float], list[float], bool]


def _x_value(row: Row, x: str) -> float:
    return row.seconds if x == "seconds" else row.iteration


def _output_curve(rows: Sequence[Row], name: str, label: str, x: str, test: bool) -> Curve:
    having = [row for row in rows if name in row.outputs]
    values = [row.outputs[name] for row in having]
    return label, [_x_value(row, x) for row in having], values, test


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.outputs))


def curves(log: TrainingLog, prefix: str, x: str) -> tuple[list[Curve], list[Curve]]:
    """The loss curves, and the curves of all other outputs in the log.

    The training loss is the loss that the log displays, smoothed over average_loss iterations.
    """
    losses: list[Curve] = []
    others: list[Curve] = []
    points = [(_x_value(row, x), row.loss) for row in log.train if row.loss is not None]
    if points:
        x_values, values = zip(*points, strict=True)
        losses.append((f"{prefix}train loss", list(x_values), list(values), False))
    for name in _names(log.train):
        if name not in log.loss_names:
            others.append(_output_curve(log.train, name, f"{prefix}train {name}", x, False))
    for index, rows in sorted(log.test.items()):
        net = "test" if len(log.test) == 1 else f"test #{index}"
        for name in _names(rows):
            curve = _output_curve(rows, name, f"{prefix}{net} {name}", x, True)
            (losses if name in log.loss_names else others).append(curve)
    return losses, others


def _draw(axes: Axes, lines: Sequence[Curve], title: str) -> None:
    for label, x, y, test in lines:
        # Only tests get dots, because they have few points. Training has so many points that dots
        # would hide the line.
        axes.plot(x, y, label=label, linestyle="--" if test else "-", marker="o" if test else "",
                  markersize=4, linewidth=1.5)  # fmt: skip
    axes.set_ylabel(title)
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize="small")


def plot_logs(
    logs: dict[str, TrainingLog], x: str = "iterations", log_scale: bool = False
) -> Figure:
    """Plots the logs in one figure: losses above, the other outputs below.

    Args:
        logs: logs by their names in the legend.
        x: "iterations" or "seconds" (since the start of each training).
        log_scale: a logarithmic loss axis.
    """
    from matplotlib.figure import Figure

    losses: list[Curve] = []
    others: list[Curve] = []
    for name, log in logs.items():
        of_losses, of_others = curves(log, f"{name}: " if len(logs) > 1 else "", x)
        losses += of_losses
        others += of_others
    panels = [(lines, title) for lines, title in ((losses, "loss"), (others, "output")) if lines]
    figure = Figure(figsize=(8, 4 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
    for panel, (lines, title) in zip(axes, panels, strict=True):
        accuracies = all("accuracy" in label.lower() for label, *_ in lines)
        _draw(panel, lines, "accuracy" if accuracies else title)
    if log_scale and losses:
        axes[0].set_yscale("log")
    axes[-1].set_xlabel(AXES[x])
    return figure


def _read(paths: Sequence[str]) -> dict[str, TrainingLog]:
    logs = {}
    for path in paths:
        log = read_log(Path(path).read_text(errors="replace").splitlines())
        if not log.train and not log.test:
            raise invalid(f"{path} has no line such as 'Iteration 100, loss = 0.5'")
        # Uses the path for a second log of this name, because runs often differ only in their
        # folders.
        name = Path(path).name if Path(path).name not in logs else path
        logs[name] = log
    return logs


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Prints an error in one line on stderr, and returns status 1."""
    parser = argparse.ArgumentParser(prog="hearth plot", description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="+", metavar="LOG", help="log of a training")
    parser.add_argument("-o", "--output", required=True, help="image: .svg, .png or .pdf")
    parser.add_argument("--x", choices=AXES, default="iterations", help="the horizontal axis")
    parser.add_argument("--log-scale", action="store_true", help="logarithmic loss axis")
    options = parser.parse_args(arguments)
    try:
        plot_logs(_read(options.logs), options.x, options.log_scale).savefig(options.output)
    except ImportError:
        print("hearth plot needs matplotlib: pip install 'hearth-spark[plot]'", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"hearth plot: {error}", file=sys.stderr)
        return 1
    print(f"Wrote {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
