"""A Python as a cluster's nodes have it: numpy, pyarrow and pandas, and no trace of hearth."""

from __future__ import annotations

import sysconfig
import venv
from pathlib import Path

_PACKAGES = ("numpy", "pyarrow", "pandas", "dateutil", "python_dateutil", "six", "pytz", "tzdata")


def bare_python(folder: Path) -> str:
    """Makes an environment in `folder`, of links, and returns its interpreter's path."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if path.name.replace(".", "-").split("-")[0] in _PACKAGES:
            (packages / path.name).symlink_to(path)
    return str(folder / "bin" / "python")
