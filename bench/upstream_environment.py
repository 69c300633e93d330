"""Creates the environment of the real TensorFlowOnSpark, build/bench-upstream, once, with pip.

`bench/upstream_environment.py` creates it and prints its interpreter, for machines that are offline
when they measure. It contains three packages; a path file adds pyspark, TensorFlow and NumPy from
.venv, so that both sides of a bench run the same versions. Upstream's code is unchanged.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "build" / "bench-upstream"
REQUIREMENTS = (
    "tensorflowonspark==2.2.5",
    # It imports pkg_resources, which later setuptools lack, and six, which it does not declare.
    "setuptools<81",
    "six",
)


def python() -> Path:
    """The environment's interpreter. Raises SystemExit if pip cannot fetch the packages."""
    program = FOLDER / "bin" / "python"
    complete = FOLDER / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS)
    if not complete.exists() or complete.read_text() != wanted:
        venv.create(FOLDER, clear=True, with_pip=True)
        command = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*command, *REQUIREMENTS]).returncode != 0:
            raise SystemExit(
                f"pip could not install {', '.join(REQUIREMENTS)} into {FOLDER}: run "
                "bench/upstream_environment.py once where it can, or bench other rows by --only"
            )
        _site_of(FOLDER).joinpath("checkout.pth").write_text(sysconfig.get_path("purelib") + "\n")
        complete.write_text(wanted)
    return program


def _site_of(environment: Path) -> Path:
    """The site-packages of an environment like the running one in another folder."""
    variables = {"base": str(environment), "platbase": str(environment)}
    return Path(sysconfig.get_path("purelib", "venv", variables))


if __name__ == "__main__":
    print(python(), file=sys.stdout)
