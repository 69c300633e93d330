"""Merges the timelines of all processes of a training, on one clock, into a file for Perfetto.

`hearth timeline FOLDER` runs this module as a program. Each process that ran with
HEARTH_TIMELINE=FOLDER or `-timeline FOLDER` has left a file *.trace.json.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hearth.errors import invalid

_PATTERN = "*.trace.json"
# Synchronizing operations: no rank ends one before the last rank has started it.
_SYNCHRONIZING = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "barrier")

Event = dict[str, Any]
# Exceptions for lines that are not valid events.
_GARBLED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass
class Process:
    """The timeline of one process.

    Attributes:
        machine: processes on the same machine share a clock.
        wall_us: offset of the timeline's times to the process's wall clock, in microseconds.
    """

    file: Path
    machine: str
    host: str
    wall_us: float
    name: str = ""
    events: list[Event] = field(default_factory=list)


@dataclass(frozen=True)
class Clock:
    """A machine's clock offset, and its maximum error; None: unknown, because the offset is based
    only on wall clocks."""

    shift_us: float
    error_us: float | None


def read(file: Path) -> Process:
    """Reads the timeline of one process. Ignores invalid lines, and the incomplete last line of a
    killed process.

    Raises:
        ValueError: the file is not a timeline. OSError: it cannot be read.
    """
    process: Process | None = None
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.endswith("},"):
            continue
        try:
            event = json.loads(line[:-1])
            kind = event["name"] if event["ph"] == "M" else ""
            if kind == "hearth_clock":
                clock = event["args"]
                wall = clock["wall_us"] - clock["monotonic_us"]
                process = Process(file, clock["boot"] or clock["host"], clock["host"], wall)
            elif process is not None and kind == "process_name":
                process.name = str(event["args"]["name"])
            elif process is not None:
                process.events.append(_checked(event))
        except (*_GARBLED, RecursionError):
            continue
    if process is None:
        raise invalid(f"{file} is not a timeline of hearth")
    process.name = process.name or f"process {file.name.removesuffix(_PATTERN[1:])}"
    return process


def _checked(event: Event) -> Event:
    """Validates an event for merging; raises one of _GARBLED if it is invalid."""
    if event["ph"] != "X" and "ts" not in event:
        return event
    details = event.setdefault("args", {})
    times = event["ts"], event.setdefault("dur", 0.0)
    sound = all(map(math.isfinite, times)) and isinstance(event["name"], str)
    if "step" in details:
        sound &= isinstance(details["group"], str) and isinstance(details["step"], int)
    if not sound:
        raise invalid(event)
    return event


def read_all(folder: Path) -> list[Process]:
    """The timelines in a folder, sorted by rank.

    Raises:
        ValueError: there are no timelines, or a file is not a timeline. OSError: a file cannot be
            read.
    """
    files = sorted(folder.glob(_PATTERN))
    if not files:
        raise invalid(
            f"{folder} has no timelines ({_PATTERN}): run with HEARTH_TIMELINE={folder}, and copy "
            "the files of all hosts there"
        )
    return sorted(map(read, files), key=lambda process: _natural(process.name))


def clocks(processes: Sequence[Process]) -> dict[str, Clock]:
    """The clock offset of each machine to the first one.

    Wall clocks of hosts differ by milliseconds. Each collective operation limits the offset: no
    rank ends it before the last rank has started it, so the offset between two machines is between
    the largest (begin - end) and the smallest (end - begin) of all operations.
    """
    found: dict[str, Clock] = {}
    spans = {machine: _operation_times(processes, machine) for machine in _machines(processes)}
    walls = {process.machine: process.wall_us for process in reversed(processes)}
    for first in spans:  # a new group if `first` shares no operation with earlier machines
        if first in found:
            continue
        base = walls[next(iter(spans))]
        found[first] = Clock(walls[first] - base, None if found else 0.0)
        waiting = [first]
        while waiting:
            known = waiting.pop(0)
            for other in spans:
                limits = _limits(spans[known], spans[other]) if other not in found else None
                if limits is None:
                    continue
                lowest, highest = limits
                start = found[known]
                error = None
                if start.error_us is not None:
                    error = start.error_us + abs(highest - lowest) / 2
                found[other] = Clock(start.shift_us + (lowest + highest) / 2, error)
                waiting.append(other)
    return found


def merged(processes: Sequence[Process], by: Mapping[str, Clock]) -> dict[str, Any]:
    """All events as one trace, whose time starts with the first event; each process has a track."""
    shifts = {process.file: by[process.machine].shift_us for process in processes}
    begins = [e["ts"] + shifts[p.file] for p in processes for e in p.events if e["ph"] == "X"]
    zero = min(begins, default=0.0)
    events: list[Event] = []
    for number, process in enumerate(processes, start=1):
        process_row = {"ph": "M", "pid": number, "tid": 0}
        events.append({**process_row, "name": "process_name", "args": {"name": process.name}})
        events.append({**process_row, "name": "process_sort_index", "args": {"sort_index": number}})
        for event in process.events:
            moved = {**event, "pid": number}
            if "ts" in event:
                moved["ts"] = round(event["ts"] + shifts[process.file] - zero, 3)
            events.append(moved)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _machines(processes: Sequence[Process]) -> list[str]:
    return list(dict.fromkeys(process.machine for process in processes))


def _operation_times(processes: Sequence[Process], machine: str) -> dict[Any, tuple[float, float]]:
    """For each operation: when the last rank of the machine starts it, and when the first rank ends
    it."""
    begins: dict[Any, float] = defaultdict(lambda: float("-inf"))
    ends: dict[Any, float] = defaultdict(lambda: float("inf"))
    for process in processes:
        if process.machine != machine:
            continue
        for event in process.events:
            details = event.get("args", {})
            if event.get("cat") != "collective" or "step" not in details or "error" in details:
                continue
            if event["name"].startswith(_SYNCHRONIZING):
                key = details["group"], details["step"]
                begins[key] = max(begins[key], event["ts"])
                ends[key] = min(ends[key], event["ts"] + event["dur"])
    return {key: (begins[key], ends[key]) for key in begins}


def _limits(
    known: Mapping[Any, tuple[float, float]], other: Mapping[Any, tuple[float, float]]
) -> tuple[float, float] | None:
    """The limits of the offset of `other` to `known`; None without common operations."""
    shared = known.keys() & other.keys()
    if not shared:
        return None
    lowest = max(known[key][0] - other[key][1] for key in shared)
    highest = min(known[key][1] - other[key][0] for key in shared)
    return lowest, highest


def _natural(name: str) -> list[Any]:
    """A sort key that orders "rank 2" before "rank 10"."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def describe(processes: Sequence[Process], by: Mapping[str, Clock]) -> str:
    """Describes the merged trace, and the accuracy of its clocks."""
    count = sum(len(process.events) for process in processes)
    hosts = len(by)
    text = f"{count} events of {len(processes)} processes on {hosts} host{'s' * (hosts > 1)}"
    if hosts == 1:
        return text
    if any(clock.error_us is None for clock in by.values()):
        return (
            f"{text}; some hosts have no common operations: their clocks may differ by milliseconds"
        )
    worst = max(clock.error_us or 0.0 for clock in by.values())
    return f"{text}, with clocks aligned to {worst:.0f} us"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Prints an error in one line on stderr, and returns status 1."""
    parser = argparse.ArgumentParser(prog="hearth timeline", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder with *.trace.json")
    parser.add_argument("-o", "--output", type=Path, help="default: FOLDER/timeline.json")
    options = parser.parse_args(arguments)
    output = options.output or options.folder / "timeline.json"
    try:
        processes = read_all(options.folder)
        by = clocks(processes)
        output.write_text(json.dumps(merged(processes, by)), encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"hearth timeline: {error}", file=sys.stderr)
        return 1
    print(f"Wrote {output}: {describe(processes, by)}. Open it at https://ui.perfetto.dev")
    return 0


if __name__ == "__main__":
    sys.exit(main())
