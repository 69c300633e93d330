"""Checks the package name `caffe`. Other distributions also contain a package `caffe`: installing
one overwrites files of the others, and uninstalling one removes files that it shares with the
others.
"""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

# The files of python/caffe.
OUR_FILES = {
    "__init__.py", "_caffe.py", "classifier.py", "coord_map.py", "detector.py", "draw.py", "io.py",
    "net_spec.py", "proto", "pycaffe.py",
}  # fmt: skip
_REMEDY = "write `import hearth.caffe as caffe`, or uninstall the other and reinstall hearth-spark"


def warn_of_another_caffe() -> None:
    """Warns if another package hides this package `caffe`, or has files in its folder."""
    spec = importlib.util.find_spec("caffe")
    if spec is None:  # no package shadows ours
        return
    if spec.origin is None or "hearth.caffe" not in Path(spec.origin).read_text("utf-8", "replace"):
        where = spec.origin or ", ".join(spec.submodule_search_locations or ())
        warnings.warn(f"`import caffe` finds another package, {where}: {_REMEDY}", stacklevel=3)
        return
    folder = Path(spec.origin).parent
    others = sorted({path.name for path in folder.iterdir()} - OUR_FILES - {"__pycache__"})
    if others:
        warnings.warn(
            f"another package named caffe is installed in {folder} (it has {others[0]}), and "
            f"uninstalling it removes hearth's files: {_REMEDY}",
            stacklevel=3,
        )
