"""The `hearth` command: hands over to the native program of the same name."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

PROGRAM = Path(__file__).parent / "native" / "hearth"


def main() -> NoReturn:
    """Replaces this process by the native program, with the same arguments."""
    if not PROGRAM.exists():
        sys.exit(f"hearth: {PROGRAM} is missing: reinstall the package, or run `make build`")
    # The program starts `python3 -m hearth.reader` for Parquet sources: by this interpreter.
    os.environ.setdefault("HEARTH_PYTHON", sys.executable)
    os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])


if __name__ == "__main__":
    main()
