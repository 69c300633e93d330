"""Rewrites links of docstrings for mkdocstrings: they name pages from the repository's root."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Links(griffe.Extension):
    """Rewrites the links relative to api/, where the pages of the docstrings are."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = re.sub(r"\]\(docs/", "](../", obj.docstring.value)
