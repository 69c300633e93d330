"""One line of the doctor's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        check: its name.
        found: what there is, and on which hosts where they differ.
        level: "ok"; "warning" where some programs will have trouble; "problem" where a training
            cannot run as it should; "unknown" where it could not be checked.
        advice: what to do; empty where all is in order.
    """

    check: str
    found: str
    level: Literal["ok", "warning", "problem", "unknown"] = "ok"
    advice: str = ""
