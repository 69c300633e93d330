"""Writes a training's curves from its event files to a self-contained HTML file.

`hearth report RUN` runs this module as a program.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hearth.errors import invalid
from hearth.monitoring.history import History
from hearth.monitoring.page import report


def event_files(run: Path) -> list[Path]:
    """The event files in a folder, in order of creation; if `run` is a file, only that file.

    Raises:
        ValueError: there are no event files.
    """
    if run.is_file():
        return [run]
    files = sorted(file for file in run.glob("*tfevents*") if file.is_file())
    if not files:
        raise invalid(
            f"{run} has no event files (events.out.tfevents.*): pass the folder that the training "
            "had as -logDir or --log_dir"
        )
    return files


def read_run(run: Path) -> History:
    """Merges the event files of a run: a later file replaces values from its first step on."""
    from hearth.native._core import read_events

    history = History(run.resolve().name)
    last, when = 0, 0.0
    for file in event_files(run):
        points = read_events(file.read_bytes(), str(file))
        if points:
            first = min(step for _, step, _, _ in points)
            history.add(first - 1, points)
            last = max(step for _, step, _, _ in points)
            when = points[-1][0]
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(when))
    history.set_facts(state=f"as of {day}", iteration=last)
    return history


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Prints an error in one line on stderr, and returns status 1."""
    parser = argparse.ArgumentParser(prog="hearth report", description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="folder with a run's event files")
    parser.add_argument("-o", "--output", type=Path, help="default: RUN/report.html")
    options = parser.parse_args(arguments)
    folder = options.run.parent if options.run.is_file() else options.run
    output = options.output or folder / "report.html"
    try:
        output.write_text(report(read_run(options.run).snapshot()), encoding="utf-8")
    except (OSError, ValueError, RuntimeError) as error:
        print(f"hearth report: {error}", file=sys.stderr)
        return 1
    print(f"Wrote {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
