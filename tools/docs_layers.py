"""The table of layer types in the site's page on Caffe, from the layers' files (a mkdocs hook)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LAYERS = Path(__file__).resolve().parents[1] / "hearth" / "caffe" / "layers"
MARKER = "<!-- table of layer types -->"  # in docs/caffe.md


def families(folder: Path = LAYERS) -> dict[tuple[str, ...], str]:
    """Maps the layer types of each file to the file's first comment."""
    found = {}
    for path in folder.glob("*.cc"):
        text = path.read_text(encoding="utf-8")
        if types := sorted(re.findall(r'registry\.Add(?:<\w+>)?\("(\w+)"', text), key=str.lower):
            comment = re.match(r"(?:// .*\n)*", text)
            found[tuple(types)] = re.sub(r"\s*// ", " ", comment[0] if comment else "").strip()
    return dict(sorted(found.items(), key=lambda row: row[0][0].lower()))


def table() -> str:
    """A table row per file, sorted by the first of its types."""
    rows = [f"| {', '.join(types)} | {text} |\n" for types, text in families().items()]
    return "| types | |\n|---|---|\n" + "".join(rows)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page's text with the table in place of the marker."""
    return markdown.replace(MARKER, table())
