"""The published networks of examples/nets, reduced for tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "nets"


def net_text(name: str, rows: int, narrowed: Mapping[int, int]) -> str:
    """The net with `rows` per minibatch; `narrowed` maps sizes in its text to smaller ones."""
    text = (FOLDER / f"{name}.prototxt").read_text()
    recurrent = name in ("lrcn", "lstm3")
    first = r"(shape \{ dim: 20 dim: )\d+" if recurrent else r"(input_param \{ shape \{ dim: )\d+"
    text = re.sub(first, rf"\g<1>{rows}", text)
    text = text.replace("shape { dim: 16 dim: 256 }", f"shape {{ dim: {rows} dim: 256 }}")
    for wide, narrow in narrowed.items():
        text = re.sub(rf"(num_output|input_dim): {wide}\b", rf"\g<1>: {narrow}", text)
    return text
