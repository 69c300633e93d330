"""Parses times in Spark's settings, in Spark's syntax."""

from __future__ import annotations

import re
from typing import Any

from hearth.errors import HearthError

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def time_setting_s(session: Any, name: str, default: str) -> float:
    """Converts a setting such as "90s" or "10min" to seconds; HearthError if it is invalid."""
    said = session.conf.get(name, None) or default
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", said.lower())
    if found is None or found[2] not in _UNITS:
        raise HearthError(f"{name} is {said!r}: set a time such as 90s or 10min")
    return float(int(found[1]) * _UNITS[found[2]])
