"""Measures a group's all-reduce speed by transport and size, and formats the table. Runs in each
process of `hearth bench-collective`.

As a program (`python -m hearth.ranks.bench`) it runs one of several ranks on this machine.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from typing import Any

from hearth import HearthError
from hearth.errors import invalid
from hearth.ranks.group import Ranks, Rendezvous
from hearth.ranks.place import Place

# Size in bytes of a float32 array, and number of consecutive operations.
SIZES = {
    "4 KB": (4 << 10, 300),
    "256 KB": (256 << 10, 100),
    "4 MB": (4 << 20, 20),
    "64 MB": (64 << 20, 4),
}
TRANSPORTS = ("auto", "shm", "tcp", "rdma")
_ROUNDS = 5
_TIMEOUT_S = 120.0

# Receives a rank's messages: {"transport", "size", ...} for each result, {"transport", "problem"}
# if the transport is unavailable.
Say = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Selection:
    """The measurements to make: names of SIZES and of TRANSPORTS."""

    sizes: Sequence[str] = tuple(SIZES)
    transports: Sequence[str] = TRANSPORTS


def parsed(sizes: str, transports: str) -> Selection:
    """Parses the command line's comma-separated lists; "4KB" stands for "4 KB".

    Raises:
        ValueError: an unknown name.
    """
    names = {name.replace(" ", "").lower(): name for name in SIZES}
    wanted = [size.strip().replace(" ", "").lower() for size in sizes.split(",")]
    ways = [way.strip().lower() for way in transports.split(",")]
    for selected, known in ((wanted, list(names)), (ways, list(TRANSPORTS))):
        for value in selected:
            if value not in known:
                raise invalid(f"'{value}': it must be one of {', '.join(known)}")
    return Selection([names[size] for size in wanted], ways)


def measure(place: Place, selection: Selection, say: Say) -> None:
    """Measures on this rank; all ranks call it with the same arguments. Only rank 0 reports.

    Raises ConnectionError, TimeoutError or HearthError if a rank is lost.
    """
    before = os.environ.get("HEARTH_TRANSPORT")
    try:
        for transport in selection.transports:
            os.environ["HEARTH_TRANSPORT"] = transport
            try:
                rendezvous = place.rendezvous_of(f"bench-collective/{transport}")
                ranks = Ranks(rendezvous, place.rank, place.world, _TIMEOUT_S)
            except (HearthError, ConnectionError, TimeoutError, ValueError) as error:
                if place.rank == 0:
                    say({"transport": transport, "problem": str(error).splitlines()[0]})
                continue
            try:
                for size in selection.sizes:
                    figures = _measure_size(ranks, *SIZES[size])
                    if place.rank == 0:
                        way = {"transport": transport, "means": ranks.description}
                        say({**way, "size": size, **figures})
            finally:
                ranks.close()
    finally:
        os.environ.pop("HEARTH_TRANSPORT")
        if before is not None:
            os.environ["HEARTH_TRANSPORT"] = before


def _measure_size(ranks: Ranks, size: int, calls: int) -> dict[str, float]:
    """The best and median time of several rounds, through the queue that frameworks use."""
    import numpy as np

    from hearth.native._core import Request

    array = np.full(size // 4, ranks.rank + 1, np.float32)
    request = Request("all_reduce", array)
    request.op = "mean"
    barrier = Request("barrier")

    def run(count: int) -> float:
        ranks.submit(barrier)(_TIMEOUT_S)
        start = time.perf_counter()
        for _ in range(count):
            ranks.submit(request)(_TIMEOUT_S)
        return (time.perf_counter() - start) / count

    run(2)
    if not np.array_equal(array, np.full_like(array, (ranks.world + 1) / 2)):
        raise HearthError(f"an all-reduce of {size} bytes returned wrong values ({array[:4]}...)")
    rounds = [run(calls) for _ in range(_ROUNDS)]
    # Bytes that each rank's link must carry at least, with any algorithm.
    moved = 2 * (ranks.world - 1) / ranks.world * size
    best, median = min(rounds), statistics.median(rounds)
    return {"best_us": best * 1e6, "median_us": median * 1e6, "bus_gb_s": moved / best / 1e9}


def row(figures: dict[str, Any]) -> str:
    """One line of the table."""
    if "problem" in figures:
        return f"{figures['transport']:<9} unavailable: {figures['problem']}"
    return (
        f"{figures['transport']:<9} {figures['size']:>7} {figures['best_us']:>12,.1f} "
        f"{figures['median_us']:>12,.1f} {figures['bus_gb_s']:>10.2f}  {figures['means']}"
    )


def heading(ranks: int) -> str:
    """The header of the table."""
    return (
        f"all-reduce of float32 between {ranks} ranks; each of {_ROUNDS} rounds has several calls\n"
        f"{'transport':<9} {'bytes':>7} {'best us':>12} {'median us':>12} {'bus GB/s':>10}  over"
    )


def between_processes(ranks: int, selection: Selection) -> Iterator[dict[str, Any]]:
    """Yields rank 0's messages as they arrive, with `ranks` processes on this machine.

    Raises:
        HearthError: a process failed.
    """
    from hearth.native._core import new_token

    key = new_token()
    with ExitStack() as ends:
        processes = []
        for rank in range(ranks):
            process = subprocess.Popen(
                [sys.executable, "-m", "hearth.ranks.bench"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            ends.callback(_end, process)
            processes.append(process)
            _write(process, {"rank": rank, "world": ranks, "key": key, **asdict(selection)})
        for line in processes[0].stdout:
            message = json.loads(line)
            if "published" not in message:
                yield message
                continue
            for process in processes[1:]:
                _write(process, message)
        for rank, process in enumerate(processes):
            if (status := process.wait(_TIMEOUT_S)) != 0:
                raise HearthError(f"rank {rank} ended with status {status}: see its error above")


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):  # close() flushes data that the process did not read
            stream.close()


def _write(process: subprocess.Popen[str], message: dict[str, Any]) -> None:
    try:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass  # the process has ended; its exit status is reported


def main() -> None:
    """Runs one rank; reads its measurements and rank 0's address from standard input."""
    arguments = json.loads(sys.stdin.readline())

    def say(message: dict[str, Any]) -> None:
        print(json.dumps(message), flush=True)

    def rendezvous_of(_: str) -> Rendezvous:
        return Rendezvous(
            publish=lambda text: say({"published": text}),
            read=lambda: json.loads(sys.stdin.readline())["published"],
            withdraw=lambda: None,
            key=arguments["key"],
        )

    place = Place(arguments["rank"], arguments["world"], rendezvous_of)
    measure(place, Selection(arguments["sizes"], arguments["transports"]), say)


if __name__ == "__main__":
    main()
