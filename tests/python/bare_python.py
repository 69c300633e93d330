"""A Python like that of a cluster's nodes: it has numpy, pyarrow and pandas, but not hearth."""

from __future__ import annotations

import sysconfig
import venv
from pathlib import Path

_PACKAGES = ("numpy", "pyarrow", "pandas", "dateutil", "python_dateutil", "six", "pytz", "tzdata")


def bare_python(folder: Path) -> str:
    """Makes a virtual environment of links in `folder`; returns its interpreter's path."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if path.name.replace(".", "-").split("-")[0] in _PACKAGES:
            (packages / path.name).symlink_to(path)
    return str(folder / "bin" / "python")
