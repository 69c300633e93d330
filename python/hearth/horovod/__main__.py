"""`python -m hearth.horovod -np 2 python train.py`: runs a program as ranks on this machine."""

from __future__ import annotations

import argparse
import sys

from hearth.horovod.launcher import run_command


def main() -> None:
    """Runs the command line; the exit status is 1 if a rank failed."""
    parser = argparse.ArgumentParser(prog="python -m hearth.horovod", description=__doc__)
    parser.add_argument("-np", "--num-proc", type=int, default=1, help="number of ranks")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the program and its arguments")
    given = parser.parse_args()
    if not given.command:
        parser.error("pass a command to run")
    try:
        run_command(given.num_proc, given.command)
    except RuntimeError as error:
        sys.exit(f"hearth.horovod: {error}")


if __name__ == "__main__":
    main()
