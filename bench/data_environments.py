#!/usr/bin/env python3
"""Creates an environment for each peer of data.py, once, with pip in ~/.cache/hearth/bench-data.

`bench/data_environments.py` creates all of them and prints their interpreters, for machines that
are offline when they measure. An environment contains the peer and the versions that it needs. A
path file adds everything else (pyspark, torch, ...) from the running Python's packages.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

FOLDER = Path.home() / ".cache" / "hearth" / "bench-data"
REQUIREMENTS = {
    # Without aiohttp, two of its reading threads race to detect its absence, and one fails.
    "ray": ["ray[data,train]==2.60.0", "aiohttp==3.14.5"],
    # petastorm imports pyarrow.filesystem, which pyarrow 16 removed; pyarrow 14 requires NumPy 1.
    "petastorm": [
        "petastorm==0.13.1",
        "pyarrow==14.0.2",
        "numpy==1.26.4",
        "pandas==2.2.3",
        "setuptools<70",
    ],
    "mds": ["mosaicml-streaming==0.13.0"],
}


def python(name: str) -> Path:
    """Returns the interpreter of a peer's environment.

    Raises SystemExit if pip cannot install the packages.
    """
    home = FOLDER / name
    program = home / "bin" / "python"
    complete = home / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS[name])
    made = complete.exists() and complete.read_text() == wanted
    if not made:
        venv.create(home, clear=True, with_pip=True)
    # Another checkout may have made the environment, so its path file is always rewritten. Packages
    # added by addsitedir() come after the environment's own.
    rest = sysconfig.get_path("purelib")
    _packages(home).joinpath("zz-rest.pth").write_text(f"import site; site.addsitedir({rest!r})\n")
    if not made:
        print(f"data_environments: fetching {', '.join(REQUIREMENTS[name])}", file=sys.stderr)
        command = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*command, *REQUIREMENTS[name]]).returncode != 0:
            raise SystemExit(
                f"pip could not install {', '.join(REQUIREMENTS[name])} into {home}: run "
                "bench/data_environments.py once where it can, or bench others by --contenders"
            )
        complete.write_text(wanted)
    return program


def _packages(environment: Path) -> Path:
    """The site-packages folder of an environment."""
    variables = {"base": str(environment), "platbase": str(environment)}
    return Path(sysconfig.get_path("purelib", "venv", variables))


if __name__ == "__main__":
    for peer in REQUIREMENTS:
        print(peer, python(peer))
