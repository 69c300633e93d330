"""Pages of the site that are not files of docs/, and changes to its Markdown (mkdocs hooks).

`make docs` builds the site from docs/ with mkdocs.yml. GitHub shows the same files, so they may
link to files outside of docs/; the site does not have these, and shows their paths instead.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The page of the site that shows each file of the repository.
COPIED = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
# Packages whose docstrings make a page each, with that page's introduction.
PACKAGES = {
    "hearth.errors": "The errors that Hearth raises ([by message](../troubleshooting.md)).",
    "hearth.torch": "PyTorch programs on Spark executors ([guide](../pytorch.md)).",
    "hearth.cluster": "Main functions on Spark executors ([guide](../cluster.md)).",
    "hearth.data": "Datasets of files and tables ([guide](../data.md)).",
    "hearth.ml": "Stages of Spark ML Pipelines, and inference ([guide](../ml.md)).",
    "hearth.tensorflow": "Keras and TensorFlow on several nodes ([guide](../keras.md)).",
    "hearth.tensorflowonspark": "TensorFlowOnSpark's API ([guide](../tensorflow.md)).",
    "hearth.caffeonspark": "CaffeOnSpark's API ([guide](../caffeonspark.md)).",
    "hearth.doctor": "Examines a cluster ([guide](../platforms.md)).",
}
# Classes of arguments and results of a package's functions, documented on the package's page.
OTHERS = {
    "hearth.torch": ("hearth.torch.loader.TensorLoader",),
    "hearth.cluster": (
        "hearth.data.loader.Loader",
        "hearth.cluster.driver.reports.reports.Shown",
        "hearth.cluster.driver.reports.reports.Report",
    ),
    "hearth.data": ("hearth.data.image.ImageTransform",),
}
# Public modules of packages whose __init__.py names nothing.
MODULES = {
    "hearth.tensorflowonspark": (
        "TFCluster",
        "TFNode",
        "TFParallel",
        "compat",
        "dfutil",
        "pipeline",
    )
}
GENERATED = (*COPIED.values(), *(f"api/{name}.md" for name in PACKAGES))

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE_WITH_FILE = re.compile(r"(?m)^(```+)(\w+) ([\w./-]+)$")


def public_names(package: str) -> list[tuple[str, str]]:
    """(name, module that defines it) for each name in a package's `_HOMES`."""
    init = ROOT / "python" / Path(*package.split(".")) / "__init__.py"
    text = init.read_text(encoding="utf-8") if init.exists() else ""  # a module has no list
    found = re.findall(r'^    "([\w.]+)": ("[\w "\n]+"),', text, re.MULTILINE)
    whole = [(package + home if home[0] == "." else home, names) for home, names in found]
    return [(name, home) for home, names in whole for name in re.findall(r"\w+", names)]


def api_page(package: str) -> str:
    """Markdown of a package's page, for mkdocstrings."""
    names = public_names(package) or [(name, package) for name in MODULES.get(package, ())]
    lines = [f"# {package}", "", PACKAGES[package], ""]
    if not names:
        lines += [f"::: {package}", ""]
    for name, home in names:
        owner = next((one for one in PACKAGES if one != package and home.startswith(f"{one}.")), "")
        if owner:  # a name has one page
            lines += [f"## {name}", "", f"Of [{owner}]({owner}.md#{home}.{name}).", ""]
        else:
            lines += [f"::: {home}.{name}", ""]
    lines += [line for other in OTHERS.get(package, ()) for line in (f"::: {other}", "")]
    return "\n".join(lines)


def without_outer_links(text: str, page: str) -> str:
    """The text of docs/PAGE. Links that leave docs/ become paths, unless the file is copied."""

    def replaced(found: re.Match[str]) -> str:
        label, target = found[1], found[2]
        if "://" in target or target.startswith(("#", "mailto:")):
            return found[0]
        path, _, anchor = target.partition("#")
        outer = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
        if outer.startswith("docs/"):
            return found[0]
        if outer in COPIED:
            up = posixpath.relpath(COPIED[outer], posixpath.dirname(page) or ".")
            return f"[{label}]({up}{'#' if anchor else ''}{anchor})"
        return f"`{outer}`" if label.strip("`") in outer else f"{label} (`{outer}`)"

    return _LINK.sub(replaced, text)


def _as_page_of_docs(text: str) -> str:
    """Text of a file in the repository's root, with links and images relative to docs/."""

    def replaced(found: re.Match[str]) -> str:
        target = found[1]
        if "://" in target or target.startswith("#"):
            return found[0]
        return f"]({posixpath.relpath(target, 'docs')})"

    return re.sub(r"\]\(([^)\s]+)\)", replaced, text)


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are not files of docs/."""
    from mkdocs.structure.files import File

    for source, page in COPIED.items():
        text = _as_page_of_docs((ROOT / source).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    for package in PACKAGES:
        files.append(File.generated(config, f"api/{package}.md", content=api_page(package)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text as the site needs it."""
    text = without_outer_links(markdown, page.file.src_uri)
    return _FENCE_WITH_FILE.sub(r'\1text title="\3"', text)
