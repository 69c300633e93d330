"""Tables without labels: adds columns that the requested blobs do not depend on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_unread_columns(
    frame: DataFrame, net: dict[str, Any], layer: dict[str, Any], blobs: list[str]
) -> DataFrame:
    """Adds a column of zeros for each missing column that none of `blobs` depends on.

    Adds no image columns, because zeros are not an image.
    """
    from pyspark.sql import functions

    needed = needed_tops(net, blobs)
    for top, (name, count) in zip(layer.get("top", []), _numbers_of(layer), strict=False):
        if name is None or top in needed or name in frame.columns:
            continue
        zero = functions.lit(0.0).cast("float")
        frame = frame.withColumn(name, zero if count < 0 else functions.array([zero] * count))
    return frame


def needed_tops(net: dict[str, Any], blobs: list[str]) -> set[str]:
    """`blobs` and all blobs of the net's TEST phase that they depend on."""
    needed = set(blobs)
    for layer in reversed(net.get("layer", [])):
        rules = layer.get("include", [])
        if rules and all(rule.get("phase") == "TRAIN" for rule in rules):
            continue
        if needed.intersection(layer.get("top", [])):
            needed.update(layer.get("bottom", []))
    return needed


def _numbers_of(layer: dict[str, Any]) -> list[tuple[str | None, int]]:
    """For each top: its column's name (None for images), and the length of the column's lists (-1
    for single numbers)."""
    if layer["type"] == "MemoryData":
        return [(None, 0), ("label", -1)]
    return [_numbers_of_top(top) for top in layer.get("cos_data_param", {}).get("top", [])]


def _numbers_of_top(top: dict[str, Any]) -> tuple[str | None, int]:
    kind = top.get("type", "STRING")
    if kind.endswith(("_IMAGE", "_DIM")):
        return None, 0
    if not kind.endswith("_ARRAY"):
        return top["name"], -1
    sizes = [top.get(f"out_{name}") or top.get(name, 0) for name in ("channels", "height", "width")]
    return top["name"], math.prod(sizes[: top.get("sample_num_axes", 3)])
