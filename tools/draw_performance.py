#!/usr/bin/env python3
"""Draws docs/performance.svg from the ratios of docs/performance.json."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
# Writes the same bytes in every run, and text as text.
matplotlib.rcParams |= {"svg.hashsalt": "hearth", "svg.fonttype": "none"}
from matplotlib import pyplot as plt  # noqa: E402

DOCS = Path(__file__).resolve().parents[1] / "docs"
_BETTER, _WORSE = "#e4572e", "#9aa5b1"


def main() -> None:
    """One panel per question; its bars start at 1 on a logarithmic scale."""
    questions = json.loads((DOCS / "performance.json").read_text(encoding="utf-8"))
    figure, panels = plt.subplots(2, 2, figsize=(11, 6), layout="constrained")
    for panel, (title, rows) in zip(panels.flat, questions.items(), strict=True):
        names, ratios = zip(*reversed(rows), strict=True)
        colors = [_BETTER if ratio >= 1 else _WORSE for ratio in ratios]
        bars = panel.barh(names, [ratio - 1 for ratio in ratios], left=1, color=colors)
        panel.bar_label(bars, [f" {ratio:g} x" for ratio in ratios])
        panel.set_xscale("log", base=2)
        panel.set_xlim(0.5, max(8, 2 * max(ratios)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.axvline(1, color="black", linewidth=0.8)
        panel.set_title(title, loc="left", fontsize=11, fontweight="bold")
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(DOCS / "performance.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
