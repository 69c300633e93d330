"""`python -m hearth.demo`: the job of run.py, in a folder of its own."""

import sys
import tempfile
from pathlib import Path

from hearth.demo import run

if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp(prefix="hearth-demo-"))
    print(f"in {folder}: prototxts, tables, model and features")
    sys.exit(run.main(folder))
