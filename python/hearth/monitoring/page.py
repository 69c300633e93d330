"""The page of a training: one self-contained HTML file, live or with embedded data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_TEMPLATE = Path(__file__).with_name("page.html")
_PLACEHOLDER = "/*DATA*/null"


def live_page() -> str:
    """Returns the page that polls `data` in its folder."""
    return _TEMPLATE.read_text(encoding="utf-8")


def report(snapshot: dict[str, Any]) -> str:
    """Returns the page with embedded data, from History.snapshot()."""
    # Escaped, because a string in the data must not end the script element.
    data = json.dumps(snapshot, allow_nan=False).replace("<", "\\u003c")
    return _TEMPLATE.read_text(encoding="utf-8").replace(_PLACEHOLDER, data)
