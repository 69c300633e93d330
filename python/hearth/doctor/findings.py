"""A line of the doctor's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        check: the check's name.
        found: the values, with their hosts if they differ.
        level: "ok"; "warning": some programs will fail; "problem": a training cannot run properly;
            "unknown": not checked.
        advice: the remedy; empty if none is needed.
    """

    check: str
    found: str
    level: Literal["ok", "warning", "problem", "unknown"] = "ok"
    advice: str = ""
