"""Reads numbers from environment variables."""

from __future__ import annotations

import math
import os

from hearth.errors import invalid


def number(name: str, usual: float, unit: str) -> float:
    """A variable's number; `usual` if it is not set or empty.

    Raises:
        ValueError: not a number, or below 0.
    """
    text = os.environ.get(name)
    if not text:
        return usual
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise invalid(f"{name}={text} in the environment: it must be a number of {unit}")
    return found
