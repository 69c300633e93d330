"""The `hearth` command: hands over to the native program of the same name."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from hearth import native


def main() -> NoReturn:
    """Replaces this process by the native program, with the same arguments."""
    try:
        program = str(native.program())
    except (FileNotFoundError, ImportError) as error:
        sys.exit(f"hearth: {error}")
    # The program starts `python3 -m hearth.reader` for Parquet sources: by this interpreter.
    environment = {"HEARTH_PYTHON": sys.executable, **native.environment()}
    os.execve(program, [program, *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
