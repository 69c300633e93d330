"""The page of a training: one HTML file that needs nothing else, live or with its data in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_TEMPLATE = Path(__file__).with_name("page.html")
_PLACE = "/*DATA*/null"


def live_page() -> str:
    """Asks for its data, at `data` beside it, again and again."""
    return _TEMPLATE.read_text(encoding="utf-8")


def report(snapshot: dict[str, Any]) -> str:
    """Has the data of History.snapshot() in it."""
    # A text in it must not end the script that it stands in.
    data = json.dumps(snapshot, allow_nan=False).replace("<", "\\u003c")
    return _TEMPLATE.read_text(encoding="utf-8").replace(_PLACE, data)
