"""`python -m hearth.demo`: runs run.py's job in a new folder."""

import sys
import tempfile
from pathlib import Path

from hearth.demo import run

if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp(prefix="hearth-demo-"))
    print(f"in {folder}: prototxts, tables, model and features")
    sys.exit(run.main(folder))
