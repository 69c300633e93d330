"""CaffeOnSpark's command line: `python -m hearth.caffeonspark`, or pass this file to spark-submit.

It imports almost nothing itself, so Ctrl-C works from the start.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hearth.caffeonspark.interrupts import INTERRUPTED, exit_with, run_interruptibly

if TYPE_CHECKING:
    from hearth.caffeonspark.interrupts import Started


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the flags' commands. Returns the exit status; prints a user's error as one line."""

    def work(started: Started) -> int:
        from hearth.caffeonspark import command_line

        return command_line.run(sys.argv[1:] if arguments is None else arguments, started)

    try:
        return run_interruptibly(work)
    except KeyboardInterrupt:
        print("caffeonspark: interrupted", file=sys.__stderr__)
        return INTERRUPTED
    except Exception as error:
        from hearth.caffeonspark.command_line import is_expected, one_line

        if not is_expected(error):
            raise
        print(f"caffeonspark: {one_line(error)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    exit_with(main())
